# SPDX-License-Identifier: MIT
"""HTML reduced to what a person would read on the page."""

import re
from html.parser import HTMLParser

SILENT = ("script", "style", "head", "template", "noscript", "svg", "math", "object", "select")
SPACED = ("h1", "h2", "h3", "h4", "h5", "h6", "p", "table", "pre", "blockquote")
# Elements that begin and end a line.
BLOCK = re.compile(
    "address|article|aside|body|caption|dd|details|div|dl|dt|fieldset|figcaption|figure|footer"
    "|form|header|html|li|main|nav|ol|section|summary|tbody|tfoot|thead|tr|ul|" + "|".join(SPACED)
)
CELL_MAX = 60  # characters of a table's cell


class Table:
    """Cells gathered row by row, then set in columns."""

    def __init__(self) -> None:
        self.caption = ""
        self.rows: list[list[str]] = []
        self.cell: list[str] | None = None

    def text(self) -> str:
        rows = [row for row in self.rows if any(row)]
        widths = [0] * max((len(row) for row in rows), default=0)
        for row in rows:
            for i, cell in enumerate(row):
                widths[i] = max(widths[i], len(cell))
        lines = [self.caption] if self.caption else []
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self.silent: list[str] = []  # open elements that show nothing
        self.tables: list[Table] = []
        self.lists: list[int | None] = []  # the next number; None: bullets
        self.links: list[tuple[str, int]] = []
        self.verbatim = 0
        self.active = False  # there is something that only a browser shows

    # What comes out.

    def say(self, text: str) -> None:
        if self.silent:
            return
        cell = self.tables[-1].cell if self.tables else None
        if cell is not None:
            cell.append(text)
        elif not self.tables:
            self.parts.append(text)

    def end_line(self, blank: bool = False) -> None:
        """blank: leave a line free as well."""
        if self.tables and self.tables[-1].cell is not None:
            self.say(" ")
            return
        ended = re.search(r"\n*\Z", "".join(self.parts[-3:])) if self.parts else None
        self.say("\n" * (1 + blank - min(1 + blank, len(ended[0]) if ended else 2)))

    # What comes in.

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in ("script", "iframe", "canvas", "svg"):
            self.active = True
        if tag in SILENT:
            self.silent.append(tag)
        if self.silent:
            return
        if BLOCK.fullmatch(tag):
            self.end_line(tag in SPACED)
        if tag == "table":
            self.tables.append(Table())
        elif self.tables and tag == "tr":
            self.end_cell()
            self.tables[-1].rows.append([])
        elif self.tables and tag in ("td", "th", "caption"):
            self.end_cell()
            self.tables[-1].cell = []
        else:
            self.begin_inline(tag, given)

    def begin_inline(self, tag: str, given: dict[str, str]) -> None:
        if tag == "br":
            self.end_line()
        elif tag == "hr":
            self.say("\n---\n")
        elif tag in ("ul", "ol"):
            self.lists.append(1 if tag == "ol" else None)
        elif tag == "li":
            self.begin_item()
        elif tag == "pre":
            self.verbatim += 1
        elif tag == "a":
            self.links.append((given.get("href", ""), len(self.parts)))
        elif tag == "img":
            self.say(f"[image: {given['alt']}]" if given.get("alt") else "[image]")
        elif tag in ("audio", "video", "iframe", "embed"):
            self.begin_embedded(tag, given.get("src", ""))
        elif tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self.say("#" * int(tag[1]) + " ")

    def begin_item(self) -> None:
        number = self.lists[-1] if self.lists else None
        indent = "  " * max(0, len(self.lists) - 1)
        self.say(indent + ("- " if number is None else f"{number}. "))
        if number is not None:
            self.lists[-1] = number + 1

    def begin_embedded(self, tag: str, source: str) -> None:
        shown = "" if source.startswith("data:") else source
        if shown or tag != "iframe":
            self.say(f"[{'page' if tag == 'iframe' else tag}{': ' if shown else ''}{shown}]")
        if tag in ("audio", "video"):
            self.silent.append(tag)  # what is in it is for browsers that cannot

    def handle_endtag(self, tag: str) -> None:
        if tag in self.silent:
            while self.silent.pop() != tag:
                pass
            return
        if self.silent:
            return
        if tag in ("td", "th") and self.tables:
            self.end_cell()
        elif tag == "caption" and self.tables:
            self.end_caption()
        elif tag == "table" and self.tables:
            self.end_table()
        elif tag in ("ul", "ol") and self.lists:
            self.lists.pop()
        elif tag == "pre" and self.verbatim:
            self.verbatim -= 1
        elif tag == "a" and self.links:
            self.end_link()
        if BLOCK.fullmatch(tag):
            self.end_line(tag in SPACED)

    def end_cell(self) -> None:
        table = self.tables[-1]
        if table.cell is not None and table.rows:
            text = " ".join("".join(table.cell).split())
            table.rows[-1].append(text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + "…")
        table.cell = None

    def end_caption(self) -> None:
        table = self.tables[-1]
        table.caption = " ".join("".join(table.cell or []).split())
        table.cell = None

    def end_table(self) -> None:
        self.end_cell()
        text = self.tables.pop().text()
        # Within a cell of another table there are no lines.
        self.say(text if not self.tables else " ".join(text.split()))

    def end_link(self) -> None:
        target, start = self.links.pop()
        shown = "".join(self.parts[start:]).strip()
        if target.startswith(("http:", "https:", "mailto:")) and target != shown:
            self.say(f" ({target})")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)  # of an element without content it does nothing

    def handle_data(self, data: str) -> None:
        self.say(data if self.verbatim else re.sub(r"\s+", " ", data))


def read(html: str) -> tuple[str, bool]:
    """The text, and whether there is something that only a browser can show."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    while reader.tables:  # it ends within a table
        reader.end_table()
    lines = "".join(reader.parts).split("\n")
    text = "\n".join(line.rstrip() if line[:2] == "  " else line.strip(" ") for line in lines)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n"), reader.active
