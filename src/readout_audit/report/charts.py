"""The one picture that the page draws itself: two values per line on a common axis.

Positions are computed here, the template writes them as SVG. The two ends differ in shape and fill, so colour
is not needed to tell them apart.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from readout_audit.exact import printed

WIDTH = 360
LEFT, RIGHT = 54, 54
ROW, TOP, FOOT = 46, 8, 34
TICK = Fraction(1, 20)
MOST_TICKS = 6


class Pair(NamedTuple):
    """One line: its label, both values from 0 to 1, and their difference as text."""

    label: str
    before: Fraction
    after: Fraction
    difference: str


class Line(NamedTuple):
    """One line in the picture's coordinates; `left` and `right` are its two values as texts."""

    label: str
    y: float
    before_x: float
    after_x: float
    left: str
    right: str
    difference: str


class Tick(NamedTuple):
    """A mark of the axis."""

    x: float
    text: str


class Chart(NamedTuple):
    """A picture ready to be written; `description` says the same in words."""

    width: int
    height: int
    lines: tuple[Line, ...]
    ticks: tuple[Tick, ...]
    names: tuple[str, str]
    description: str


def dumbbells(pairs: Sequence[Pair], names: tuple[str, str]) -> Chart:
    """Lay out one line per pair.

    Args:
        pairs: at least one.
        names: what the first and the second value of every pair are.
    """
    values = [value for pair in pairs for value in (pair.before, pair.after)]
    low, high, step = _axis(min(values), max(values))

    def x(value: Fraction) -> float:
        return round(float(LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / (high - low)), 1)

    lines = tuple(
        Line(
            pair.label,
            TOP + ROW * place + 30.0,
            x(pair.before),
            x(pair.after),
            printed(min(pair.before, pair.after), 4),
            printed(max(pair.before, pair.after), 4),
            pair.difference,
        )
        for place, pair in enumerate(pairs)
    )
    ticks = tuple(
        Tick(x(low + step * place), printed(low + step * place, 2))
        for place in range(int((high - low) / step) + 1)
    )
    said = "; ".join(
        f"{pair.label}: {names[0]} {printed(pair.before, 4)}, {names[1]} {printed(pair.after, 4)}"
        for pair in pairs
    )
    return Chart(
        WIDTH, TOP + ROW * len(pairs) + FOOT, lines, ticks, names, f"F1 under both readouts. {said}."
    )


def _axis(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction, Fraction]:
    """Return the ends of the axis and the distance of its marks; the ends are marks, from 0 to 1."""
    start = max(Fraction(0), TICK * ((low - TICK / 2) // TICK))
    end = min(Fraction(1), -TICK * (-(high + TICK / 2) // TICK))
    step = TICK
    while (end - start) / step > MOST_TICKS:
        step *= 2
    start = step * (start // step)
    end = -step * (-end // step)
    return start, end, step
