# SPDX-License-Identifier: MIT
"""Text as it must be handed to matplotlib: fonts for each script, order of letters, lines."""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import matplotlib
from matplotlib import font_manager

from .errors import note

FIRST = "DejaVu Sans"
CJK = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "FULLWIDTH", "IDEOGRAPHIC", "HALFWIDTH")
REST = ("Symbola", "Noto Sans Symbols", "Noto Sans Symbols2", "Noto Sans Math", "Noto Sans")
# Before 3.11 matplotlib lays letters side by side as they come: none is joined, none reordered.
SHAPES = tuple(int(part) for part in matplotlib.__version__.split(".")[:2]) >= (3, 11)
JOINING = {"Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu"}
JOINING |= {"Kannada", "Malayalam", "Sinhala", "Khmer", "Myanmar", "Tibetan", "Mongolian"}
INVISIBLE = re.compile("[\ufe00-\ufe0f\u200b\u2060\ufeff\u200e\u200f\u202a-\u202e\u2066-\u2069]")
JOINED_PICTURES = re.compile("(?<=[\u2600-\u27bf\U0001f000-\U0001faff])\u200d")
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def families(texts: Iterable[str]) -> list[str]:
    """DejaVu Sans and, for what it has not, fonts that have it; says what none has."""
    text = "".join(texts)
    missing = {c for c in text if is_visible(c)} - letters(FIRST)
    found = [FIRST]
    for family in candidates(missing):
        drawable = missing & letters(family)
        if drawable:
            found.append(family)
            missing -= drawable
        if not missing:
            break
    if missing:
        shown = ", ".join(f"{c} (U+{ord(c):04X})" for c in sorted(missing)[:5])
        note(f"no font here can draw {shown}: a box stands for it")
    return found


def is_visible(char: str) -> bool:
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp", "Mn")


def candidates(missing: set[str]) -> Iterable[str]:
    """Families that are installed, likely ones first."""
    if not missing:
        return
    known = {font.name for font in font_manager.fontManager.ttflist}
    scripts = {unicodedata.name(c, "").partition(" ")[0] for c in missing}
    likely = cjk_families(scripts) if scripts & set(CJK) else []
    likely += [f"Noto Sans {script.title()}" for script in sorted(scripts)]
    likely += REST
    for family in likely:
        if family in known:
            yield family
    for family in sorted(known - set(likely)):  # slow: each font is opened
        if "Emoji" not in family and "Last Resort" not in family:
            yield family


def cjk_families(scripts: set[str]) -> list[str]:
    """Han characters are drawn as the rest of the text suggests."""
    first = "JP" if scripts & {"HIRAGANA", "KATAKANA"} else "KR" if "HANGUL" in scripts else "SC"
    return [f"Noto Sans CJK {place}" for place in dict.fromkeys([first, "SC", "JP"])]


@cache
def letters(family: str) -> frozenset[str]:
    path = font_manager.findfont(font_manager.FontProperties(family=[family]))
    try:
        return frozenset(map(chr, font_manager.get_font(path).get_charmap()))
    except (RuntimeError, OSError):  # a format that matplotlib cannot read
        return frozenset()


def drawn(text: str) -> str:
    """The text as matplotlib must be given it."""
    text = JOINED_PICTURES.sub("", INVISIBLE.sub("", UNSAFE.sub(" ", text)))
    if SHAPES:
        return text
    scripts = {unicodedata.name(c, "").partition(" ")[0].title() for c in text} & JOINING
    if scripts:
        say_unshaped(", ".join(sorted(scripts)))
    if not any(unicodedata.bidirectional(c) in ("R", "AL") for c in text):
        return text
    reshape, reorder = shaping()
    return "\n".join(reorder(reshape(line)) for line in text.split("\n"))


@cache
def say_unshaped(scripts: str) -> None:
    note(f"matplotlib {matplotlib.__version__} draws letters of {scripts} unjoined and unordered")


@cache
def shaping() -> tuple[Any, Any]:
    """arabic_reshaper and python-bidi, for matplotlib before 3.11."""
    try:
        return (
            importlib.import_module("arabic_reshaper").reshape,
            importlib.import_module("bidi.algorithm").get_display,
        )
    except ImportError:
        note(
            f"matplotlib {matplotlib.__version__} cannot join letters or write from right to left; "
            "arabic-reshaper and python-bidi, which do it, are not installed"
        )
        return str, str


def width(text: str) -> float:
    """About how many average letters wide it is."""
    return max((sum(map(char_width, line)) for line in text.split("\n")), default=0)


def char_width(char: str) -> float:
    if unicodedata.category(char) in ("Mn", "Cf", "Me"):
        return 0
    return 1.8 if unicodedata.east_asian_width(char) in "WF" else 1


def wrapped(text: str, most: float, lines: int) -> str:
    """In at most so many lines of at most so many letters; an ellipsis for what is left over."""
    made: list[str] = []
    for paragraph in text.strip().split("\n"):
        line = ""
        for word in words_of(paragraph):
            if line and width(line + word.rstrip()) > most:
                made.append(line.strip())
                line = ""
            rest = word
            while width(rest.rstrip()) > most:
                made.append(cut(rest, most))
                rest = rest[len(made[-1]) :]
            line += rest
        made.append(line.strip())
    if len(made) > lines:
        made = [*made[: lines - 1], cut(made[lines - 1], most - 1) + "…"]
    return "\n".join(made)


def in_one_line(names: Sequence[str], most: int) -> list[str]:
    """Shortened at the end; in the middle, where names would become the same."""
    ends = [wrapped(name, most, 1) for name in names]
    if len(set(ends)) == len(set(names)):
        return ends
    flat = [" ".join(name.split()) for name in names]
    return [
        name if width(name) <= most else f"{cut(name, most / 2)}…{cut(name[::-1], most / 2)[::-1]}"
        for name in flat
    ]


def words_of(text: str) -> list[str]:
    """Between two ideographs a line may end anywhere."""
    found: list[str] = []
    for word in re.findall(r"\S+\s*|^\s+", text):
        part = ""
        for char in word:
            if part and (char_width(char) > 1 or char_width(part[-1]) > 1) and not closes(char):
                found.append(part)
                part = ""
            part += char
        found.append(part)
    return found


def closes(char: str) -> bool:
    return unicodedata.category(char) in ("Pe", "Pf", "Po", "Mn", "Zs", "Lm")


def cut(text: str, most: float) -> str:
    wide = 0.0
    for at, char in enumerate(text):
        wide += char_width(char)
        if wide > most and at:
            return text[:at]
    return text
