"""What a run found about one published number, and how that compares with what is printed."""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from readout_audit.claims.numbers import Number
from readout_audit.exact import Interval, interval_of_printed, printed

UNDEFINED = "undefined (0/0)"

_SCIENTIFIC = re.compile(r"(\d(?:\.(\d+))?)e([+-]?\d+)")


@dataclass(frozen=True)
class NearTies:
    """The range of a value if each near-tied decision may fall either way, and how many there are."""

    low: Fraction
    high: Fraction
    count: int


@dataclass(frozen=True)
class Finding:
    """The answer of one reproducing function.

    Attributes:
        value: exact value; a text for numbers that are no single value; None where it is undefined (0/0).
        source: what it was found from.
        note: what a reader should know, one sentence; may be empty.
        derived: it follows from other numbers and was not measured.
        bounds: a derived value is known only within these ends, since what it follows from is rounded.
        near_ties: the values that another run of the same checkpoint may give.
    """

    value: Fraction | str | None
    source: str
    note: str = ""
    derived: bool = False
    bounds: tuple[Fraction, Fraction] | None = None
    near_ties: NearTies | None = None


@dataclass(frozen=True)
class Missing:
    """Why a number was not reproduced: `not_run` or `not_identifiable`, and one sentence."""

    status: str
    note: str


def printed_interval(number: Number) -> Interval | None:
    """Return the values that print as a published number, halves up; None where it is no number."""
    text = number.printed
    scientific = _SCIENTIFIC.fullmatch(text)
    if scientific:
        digits, decimals, exponent = scientific.groups()
        scale = Fraction(Decimal(10) ** int(exponent))
        ends = interval_of_printed(digits, len(decimals or ""), "half_up")
        return Interval(ends.lo * scale, ends.hi * scale, ends.lo_closed, ends.hi_closed)
    if number.decimals is None:
        return None
    scale = Fraction(1, 100) if text.endswith("%") else Fraction(1)
    ends = interval_of_printed(text.rstrip("%"), number.decimals, "half_up")
    return Interval(ends.lo * scale, ends.hi * scale, ends.lo_closed, ends.hi_closed)


def as_printed(value: Fraction | str | None, number: Number) -> str:
    """Return a value in the form in which the number is published."""
    if value is None:
        return UNDEFINED
    if isinstance(value, str):
        return value
    scientific = _SCIENTIFIC.fullmatch(number.printed)
    if scientific:
        digits, _, exponent = f"{float(value):.{len(scientific[2] or '')}e}".partition("e")
        return f"{digits}e{int(exponent)}"
    if number.decimals is None:
        return str(value)
    if number.printed.endswith("%"):
        return f"{printed(100 * value, number.decimals)}%"
    return printed(value, number.decimals)


def agrees(value: Fraction | str | None, number: Number) -> bool:
    """Tell whether a value prints as published; 0/0 agrees with a printed zero, as the paper has it."""
    if isinstance(value, str):
        return value == number.printed
    interval = printed_interval(number)
    if interval is None:
        return False
    return interval.holds(Fraction(0) if value is None else value)


def overlaps(low: Fraction, high: Fraction, number: Number) -> bool:
    """Tell whether some value from `low` to `high` prints as published."""
    interval = printed_interval(number)
    if interval is None:
        return False
    below = interval.lo < high or (interval.lo == high and interval.lo_closed)
    above = low < interval.hi or (low == interval.hi and interval.hi_closed)
    return below and above
