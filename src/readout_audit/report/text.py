"""Text and numbers as the page and the command line show them."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from fractions import Fraction

from markupsafe import Markup, escape

from readout_audit.exact import UNDEFINED, printed

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_NEGATIVE = re.compile(r"(?<!\S)-(?=\d)")
"""A hyphen that begins a number; one inside a name or a range is none."""
_CODE = re.compile(r"`([^`\s]+)`")
"""A word between backticks, as rules write it; a lone backtick is a piece of some vocabulary."""
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def visible(text: str) -> str:
    r"""Return `text` with every character that would not be seen written out.

    Control and direction characters, lone surrogates (from file names) and line separators could hide or turn
    around what stands beside them; they are shown as \n, \t or [U+202E].
    """
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    """Return one character, written out if it cannot be seen."""
    if character in _NAMED:
        return _NAMED[character]
    if unicodedata.category(character) in _HIDDEN:
        return f"[U+{ord(character):04X}]"
    return character


def code(text: str) -> Markup:
    """Return a sentence as HTML: escaped, invisible characters written out, words between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(visible(text)))))


def quoted(text: str) -> str:
    """Return `text` in double quotes, on one line, invisible characters written out."""
    return f'"{visible(text)}"'


def plural(count: int, singular: str, many: str | None = None) -> str:
    """Return "1 question", "2 questions"."""
    return f"{count:,} {singular if count == 1 else many or singular + 's'}"


def minus(text: str) -> str:
    """Return a text of numbers with minus signs for hyphens: "-3.42 to -1.10" is "−3.42 to −1.10"."""
    return _NEGATIVE.sub("−", text)


def points(value: Fraction | None, decimals: int = 2) -> str:
    """Return a difference of rates in points of a hundred: 61/1000 is "6.10", and -61/1000 "−6.10"."""
    return UNDEFINED if value is None else minus(printed(100 * value, decimals))


def percent(value: Fraction | None, decimals: int = 1) -> str:
    """Return a rate in percent: "45.2%"."""
    return UNDEFINED if value is None else minus(f"{printed(100 * value, decimals)}%")


def of(count: int, total: int) -> str:
    """Return "660 of 1,318 (50.1%)"; without the percentage where there is nothing to be a part of."""
    share = f" ({percent(Fraction(count, total))})" if total else ""
    return f"{count:,} of {total:,}{share}"


def listed(words: Sequence[str]) -> str:
    """Return "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def flat(value: object, name: str = "") -> dict[str, str]:
    """Return nested JSON values as texts by dotted name; a list of plain values is one text."""
    if isinstance(value, Mapping) and value:
        rows: dict[str, str] = {}
        for key, inner in value.items():
            rows |= flat(inner, f"{name}.{key_text(key)}" if name else key_text(key))
        return rows
    if isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        rows = {}
        for place, item in enumerate(value):
            rows |= flat(item, f"{name}[{place}]")
        return rows
    return {name: plain(value)}


def key_text(key: object) -> str:
    """Return a key of JSON as text; one whose blanks would not be seen in quotes."""
    return str(key) if str(key) == str(key).strip() != "" else quoted(str(key))


def plain(value: object) -> str:
    """Return one JSON value as text; nothing is "none", so that no cell is empty."""
    if value is None or value in ([], {}, ""):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(plain(item) for item in value)
    return str(value)
