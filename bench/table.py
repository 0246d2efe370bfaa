# SPDX-License-Identifier: MIT
"""Rows of a Markdown table, printed as they are found."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Section:
    """One comparison: a table with a few words below it."""

    title: str
    heads: list[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    goals: list[tuple[str, bool]] = field(default_factory=list)  # what was aimed at, and met

    def row(self, *cells: str) -> None:
        self.rows.append(list(cells))

    def goal(self, words: str, met: bool) -> None:
        self.goals.append((words, met))
        self.notes.append(f"Goal: {words} - **{'met' if met else 'missed'}**.")

    def markdown(self) -> str:
        lines = [f"## {self.title}", ""]
        for row in (self.heads, ["---"] + ["---:"] * (len(self.heads) - 1), *self.rows):
            lines.append(
                "| " + " | ".join(row) + " |" if row[0] != "---" else "|" + "|".join(row) + "|"
            )
        for note in self.notes:
            lines += ["", note]
        return "\n".join([*lines, ""])


def goals_of(sections: list[Section]) -> Section:
    """What all of them come to, for the beginning of a document."""
    found = Section("Goals", ["measured", "goal", ""])
    for section in sections:
        for words, met in section.goals:
            found.row(section.title, words, "met" if met else "**missed**")
    return found
