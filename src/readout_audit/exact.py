"""Exact numbers: what a rational prints as, and which rationals print as a given text.

Scores are ratios of counts, so nothing here is a float. A printed decimal stands for a small interval of
rationals; whether its ends belong to it depends on how halves were rounded, which papers do not say.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal, NamedTuple, get_args

from readout_audit.errors import AuditError

Rounding = Literal["half_up", "half_even", "either"]
"""How an exact half of the last digit was rounded.

`half_up`: away from zero, the convention of printed tables. `half_even`: to the even digit.
`either`: not known; a half may have gone to either neighbour. That covers half-up, half-even and the printing
of binary floats, which sends 3/80 to "0.037" and 1/80 to "0.013".
"""

ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)

UNDEFINED = "undefined"
"""What `printed` returns for a ratio of zero to zero: never a number."""

_DECIMAL = re.compile(r"([+-]?)([0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(%?)")


class Interval(NamedTuple):
    """A set of rationals between two ends, each of which belongs to it or not."""

    lo: Fraction
    hi: Fraction
    lo_closed: bool
    hi_closed: bool

    def holds(self, value: Fraction) -> bool:
        """Tell whether `value` lies in the interval."""
        above = value >= self.lo if self.lo_closed else value > self.lo
        below = value <= self.hi if self.hi_closed else value < self.hi
        return above and below


@dataclass(frozen=True)
class PrintedValue:
    """A number as a paper prints it, on the scale of the fraction (0 to 1 for a score).

    Attributes:
        digits: the number in units of its last printed digit (8960 for "0.8960" and for "89.60" in percent).
        decimals: digits after the point on the fraction's scale (4 for both); a percent adds two.
        text: the number as typed, for messages.
        percent: whether it was typed in percent.
    """

    digits: int
    decimals: int
    text: str
    percent: bool = False

    @property
    def value(self) -> Fraction:
        """The printed number itself."""
        return Fraction(self.digits, 10**self.decimals)

    @property
    def unit(self) -> Fraction:
        """One unit of the last printed digit."""
        return Fraction(1, 10**self.decimals)

    def interval(self, rounding: Rounding = "either") -> Interval:
        """Return the rationals that print as this number."""
        return _interval(self.digits, self.decimals, rounding)

    def like(self, value: Fraction | None) -> str:
        """Return an exact value as it would be printed in this number's place, halves away from zero."""
        if value is None or not self.percent:
            return printed(value, self.decimals)
        return printed(100 * value, self.decimals - 2)


def round_half_up(value: Fraction | int, decimals: int) -> Decimal:
    """Round an exact value to `decimals` digits after the point, halves away from zero.

    So 0.00125 gives 0.0013 and -0.00125 gives -0.0013, at four decimals. What rounds to zero is 0, never -0.
    The result carries exactly `decimals` digits: 1/2 at four decimals is Decimal("0.5000").

    Raises:
        ValueError: `decimals` is negative.
    """
    if decimals < 0:
        raise ValueError(f"decimals must be 0 or more, not {decimals}")
    exact = abs(Fraction(value)) * 10**decimals
    digits = (2 * exact.numerator + exact.denominator) // (2 * exact.denominator)
    # Built from digits, not by Decimal arithmetic, which rounds to the context's precision.
    negative = value < 0 and digits > 0
    return Decimal((int(negative), tuple(int(digit) for digit in str(digits)), -decimals))


def printed(value: Fraction | int | None, decimals: int) -> str:
    """Return `value` as a table prints it: halves away from zero, zeros kept; "undefined" for None."""
    return UNDEFINED if value is None else f"{round_half_up(value, decimals):f}"


def interval_of_printed(
    number: str | int | float | Decimal | Fraction, decimals: int | None = None, rounding: Rounding = "either"
) -> Interval:
    """Return the exact set of rationals that print as `number` with `decimals` digits after the point.

    Args:
        number: the printed number. A float stands for its shortest decimal text (0.1 for one tenth), which is
            what a YAML or JSON file held.
        decimals: digits after the point; None takes them from a text as typed ("0.8960" has four).
        rounding: how halves were rounded; see `Rounding`.

    Raises:
        ValueError: `decimals` is missing for a number that is no text, is negative, or is too small for it.
    """
    if decimals is None:
        if not isinstance(number, str):
            raise ValueError(f"decimals of {number!r} are not known; only a text shows them")
        decimals = len(number.partition(".")[2])
    if decimals < 0:
        raise ValueError(f"decimals must be 0 or more, not {decimals}")
    # float.__repr__, because a numpy float's own repr is not a number.
    exact = Fraction(float.__repr__(number)) if isinstance(number, float) else Fraction(number)
    digits = exact * 10**decimals
    if digits.denominator != 1:
        raise ValueError(f"{number} has more than {decimals} digits after the point")
    return _interval(digits.numerator, decimals, rounding)


def _interval(digits: int, decimals: int, rounding: Rounding) -> Interval:
    """Return the rationals within half a unit of `digits`, with the ends that `rounding` gives."""
    half = Fraction(1, 2 * 10**decimals)
    centre = Fraction(digits, 10**decimals)
    if rounding == "either":
        lo_closed = hi_closed = True
    elif rounding == "half_even":
        lo_closed = hi_closed = digits % 2 == 0
    elif rounding == "half_up":
        # Away from zero: the end nearer to zero is rounded to this number; at 0 both ends are rounded away.
        lo_closed, hi_closed = digits > 0, digits < 0
    else:
        raise ValueError(f"rounding must be one of {', '.join(ROUNDINGS)}, not {rounding!r}")
    return Interval(centre - half, centre + half, lo_closed, hi_closed)


def prints_as(
    value: Fraction | int | None,
    number: str | int | float | Decimal | Fraction,
    decimals: int | None = None,
    rounding: Rounding = "half_up",
) -> bool:
    """Tell whether the exact `value` prints as `number`; an undefined value prints as no number.

    Raises:
        ValueError: as `interval_of_printed`.
    """
    return value is not None and interval_of_printed(number, decimals, rounding).holds(Fraction(value))


def read_printed(
    text: str, what: str, *, percent: bool = False, decimals: int | None = None, signed: bool = False
) -> PrintedValue:
    """Read a score, or a difference of scores, as typed.

    Args:
        text: a plain decimal number: "0.8960", ".896", or "89.60%" (a percent whatever `percent` says).
        what: names the number in an error ("rows.csv, row 3, precision").
        percent: the number is in percent, or in points.
        decimals: digits after the point as printed (in percent if `percent`); None takes them as typed. For
            sources that drop trailing zeros, as spreadsheets do.
        signed: allow a minus sign, as a difference may have.

    Raises:
        AuditError: the text is no such number, is negative, has too many digits, or is over 1 (100%).
    """
    match = _DECIMAL.fullmatch(text.strip())
    if match is None:
        raise AuditError(f"{what}: {text.strip()!r} is not a plain decimal number such as 0.8963.")
    sign, number, mark = match.groups()
    if sign == "-" and not signed:
        raise AuditError(f"{what}: {text.strip()} is negative; give a value from 0 to 1.")
    percent = percent or bool(mark)
    whole, _, typed = number.partition(".")
    if decimals is not None and len(typed) > decimals:
        raise AuditError(f"{what}: {text.strip()} has more than the {decimals} decimals asked for.")
    places = len(typed) if decimals is None else decimals
    digits = int((whole + typed.ljust(places, "0")) or "0")
    shift = 2 if percent else 0
    if digits > 10 ** (places + shift):
        remedy = "it is over 100%" if percent else "if it is in percent, say so with --percent"
        raise AuditError(f"{what}: {text.strip()} is over 1; {remedy}.")
    return PrintedValue(-digits if sign == "-" else digits, places + shift, text.strip(), percent)


def p_text(value: float) -> str:
    """Return a p value as it is printed: three decimals, or three significant digits where it is small."""
    if value < 1e-300:
        return "below 1e-300"
    return printed(Fraction(value), 3) if value >= 0.01 else f"{value:.2e}"
