# SPDX-License-Identifier: MIT
"""One text that may mean a number: its parts, and its value once the decimal sign is known."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

# As statistics offices, spreadsheets and programs write that there is no value.
MISSING = re.compile(
    r"(?:\(?na\)?|n/[ad]|n\.[ad]\.?|nan|<na>|nat|null|none|nil|missing|[:.*?/-]|\.{2,3}|-{2,3}"
    r"|#(?:n/a|value!|ref!|num!|null!|div/0!|name\?))?",
    re.IGNORECASE,
)
DASHES = dict.fromkeys([0x2010, 0x2011, 0x2012, 0x2013, 0x2014, 0x2212, 0xFE63, 0xFF0D], "-")
SIGNS = DASHES | {0x066B: ",", 0x066C: "'", 0x2019: "'", 0x066A: "%", 0xFF05: "%", 0x2026: "..."}
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹⁽⁾†‡§"
CODES = "USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|KRW|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|BRL|MXN|ZAR"
WORDS = r"US\$|A\$|C\$|R\$|HK\$|kr\.?|zł|Kč|Ft|Rs\.?|lei"
CURRENCY = re.compile(rf"^(?:{CODES}|{WORDS})(?=[\s\d+\-(.])|(?<=[\s\d).])(?:{CODES}|{WORDS})$")
# p provisional, e estimated, b break in the series, ...; Eurostat, OECD and others share them.
FOOTNOTE = re.compile(
    r"(?<=[\d)%.])\s*(?:\(?(?:[bcdefinprsuz]|(?!rd)[bcdepruz]{2})\)?|\*+|\[\w{1,3}\]|#)$"
)
FLAGGED_MISSING = re.compile(r"^(?::|\.\.?|-)\s*\(?[a-z]{1,2}\)?$")  # ": c", confidential
SPACED = re.compile(r"^\d{1,3}(?:[ ']\d{3})+(?=[.,]|$)")
GROUPS = {
    sign: re.compile(rf"^\d{{1,3}}(?:{re.escape(sign)}\d{{2,3}})*{re.escape(sign)}\d{{3}}$")
    for sign in ",."
}
PLAIN = re.compile(r"^(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?$")
BOTH = re.compile(r"^\d{1,3}(?:([.,])\d{2,3})+(?!\1)[.,]\d*$")
ENDLESS = re.compile(r"^inf(?:inity)?$", re.IGNORECASE)


@dataclass(frozen=True)
class Numeral:
    """A number's text without signs and marks; `missing` when it says that there is none."""

    body: str = ""  # digits, at most with one kind of group sign and one decimal sign
    negative: bool = False
    percent: bool = False
    currency: bool = False
    footnote: str = ""
    missing: bool = False

    @property
    def is_code(self) -> bool:
        """007 and 4006381333931 name something; they count nothing."""
        digits = self.body.isdigit()
        return digits and (len(self.body) > 15 or (len(self.body) > 1 and self.body[0] == "0"))


def numeral(text: str) -> Numeral | None:
    """None: it means no number."""
    rest = " ".join(text.translate(SIGNS).split())
    if MISSING.fullmatch(rest) or FLAGGED_MISSING.match(rest):
        return Numeral(missing=True)
    bare = rest.rstrip(SUPERSCRIPTS).rstrip()
    mark = rest[len(bare) :].strip()
    rest = unicodedata.normalize("NFKC", bare) if not bare.isascii() else bare
    found = FOOTNOTE.search(rest)
    if found:
        mark, rest = found[0].strip(" ()") + mark, rest[: found.start()]
    rest, percent = without(rest, "%‰")
    rest, currency = without_currency(rest)
    rest, inside = without_brackets(rest)
    rest, outside = without_sign(rest)
    rest, more = without_currency(rest)
    if inside:  # ($5), (-5)
        rest, within = without_sign(rest)
        outside = outside or within
        rest, percent = without(rest, "%‰") if not percent else (rest, percent)
    body = SPACED.sub(lambda match: re.sub("[ ']", "", match[0]), rest.strip())
    if not is_number(body):
        return None
    return Numeral(body, inside or outside, percent, currency or more, mark)


def without(text: str, signs: str) -> tuple[str, bool]:
    if text and text[-1] in signs:
        return text[:-1].rstrip(), True
    return text, False


def without_currency(text: str) -> tuple[str, bool]:
    text = text.strip()
    for at in (0, -1):
        # A sign may stand before the currency: -$5.
        sign = text[:1] if at == 0 and text[:1] in ("+", "-") else ""
        rest = text[len(sign) :]
        if rest and unicodedata.category(rest[at]) == "Sc":
            return (sign + (rest[1:] if at == 0 else rest[:-1])).strip(), True
    shorter = CURRENCY.sub("", text).strip()
    return shorter, shorter != text


def without_brackets(text: str) -> tuple[str, bool]:
    if text.startswith("(") and text.endswith(")"):
        return text[1:-1].strip(), True
    return text, False


def without_sign(text: str) -> tuple[str, bool]:
    if text[:1] in ("+", "-"):
        return text[1:].lstrip(), text[0] == "-"
    if text[-1:] == "-" and text[-2:-1].isdigit():  # as accountants' programs write it
        return text[:-1], True
    return text, False


def is_number(body: str) -> bool:
    if PLAIN.match(body) or ENDLESS.match(body) or any(map(bool, grouped(body))):
        return True
    return bool(BOTH.match(body))


def grouped(body: str) -> tuple[bool, bool]:
    """Whether commas, and whether points, may part thousands in it."""
    return bool(GROUPS[","].match(body)), bool(GROUPS["."].match(body))


def comma_is_decimal(bodies: Iterable[str]) -> bool:
    """Whether this column writes 1.234,5; where nothing tells, 1,234.5."""
    votes = 0
    for body in bodies:
        comma, point = body.rfind(","), body.rfind(".")
        if comma >= 0 and point >= 0:
            votes += 1 if comma > point else -1
        elif comma >= 0:
            votes += says_decimal(body, ",")
        elif point >= 0:
            votes -= says_decimal(body, ".")
    return votes > 0


def says_decimal(body: str, sign: str) -> int:
    """1: a decimal sign (12,5); -1: it parts thousands (1,234,567); 0: it may be either."""
    if body.count(sign) > 1:
        return -1
    groups = GROUPS[sign].match(body) and not body.startswith("0")
    return 0 if groups else 1


def value_of(found: Numeral, decimal_comma: bool) -> float:
    if found.missing:
        return float("nan")
    return (-1 if found.negative else 1) * float(plain(found.body, decimal_comma))


def plain(body: str, decimal_comma: bool) -> str:
    """As float() reads it."""
    comma, point = body.rfind(","), body.rfind(".")
    if comma >= 0 and point >= 0:
        last = "," if comma > point else "."
    elif comma < 0 and point < 0:
        return body
    else:
        sign = "," if comma >= 0 else "."
        says = says_decimal(body, sign)
        last = sign if says > 0 or (says == 0 and decimal_comma == (sign == ",")) else ""
    for sign in {",", "."} - {last}:
        body = body.replace(sign, "")
    return body.replace(last, ".") if last else body
