"""Is a printed difference that of the exact scores, or of the scores as they were rounded?"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from readout_audit.consistency.metrics import Matrix
from readout_audit.errors import AuditError
from readout_audit.exact import Interval, PrintedValue, Rounding, round_half_up

Verdict = Literal["exact", "rounded_only", "neither", "no_matrix"]


@dataclass(frozen=True)
class Difference:
    """What a printed difference is the difference of.

    Attributes:
        verdict: `exact` if some pair of candidate matrices has exact scores whose difference prints so;
            `rounded_only` if no pair has, but the scores rounded first differ by a number that prints so;
            `neither` if not even that; `no_matrix` if there is no candidate on one side.
        exact: the exact difference, where the candidates leave one; None where they leave several or none.
        rounded: the difference of the rounded scores, likewise.
    """

    verdict: Verdict
    exact: Fraction | None
    rounded: Fraction | None


def difference_check(
    minuend: Iterable[Matrix],
    subtrahend: Iterable[Matrix],
    metric: str,
    printed_difference: PrintedValue,
    *,
    decimals: int = 4,
    rounding: Rounding = "either",
) -> Difference:
    """Tell what a printed difference, minuend minus subtrahend, is the difference of.

    Args:
        minuend: every matrix that the minuend may have, as `fitting_matrices` lists them.
        subtrahend: the same for the subtrahend.
        metric: the metric that is compared, one of `METRICS`.
        printed_difference: the difference as printed, with its sign.
        decimals: digits after the point to which the two scores themselves are printed.
        rounding: how exact halves of the difference were rounded; the scores are rounded halves up.

    Raises:
        AuditError: the metric is undefined for a candidate.
    """
    above, below = _values(minuend, metric), _values(subtrahend, metric)
    if not above or not below:
        return Difference("no_matrix", None, None)
    above_rounded, below_rounded = _rounded(above, decimals), _rounded(below, decimals)
    wanted = printed_difference.interval(rounding)
    verdict: Verdict = "neither"
    if _some_pair(above, below, wanted):
        verdict = "exact"
    elif _some_pair(above_rounded, below_rounded, wanted):
        verdict = "rounded_only"
    return Difference(verdict, _only(above, below), _only(above_rounded, below_rounded))


def _values(matrices: Iterable[Matrix], metric: str) -> set[Fraction]:
    """Return the exact values of a metric over candidates."""
    values = set[Fraction]()
    for matrix in matrices:
        value = matrix.value(metric)
        if value is None:
            raise AuditError(f"{metric} is undefined (0/0) for {matrix}; a difference needs two numbers.")
        values.add(value)
    return values


def _rounded(values: Iterable[Fraction], decimals: int) -> set[Fraction]:
    """Return the values as printed, halves up."""
    return {Fraction(round_half_up(value, decimals)) for value in values}


def _some_pair(above: Collection[Fraction], below: Collection[Fraction], wanted: Interval) -> bool:
    """Tell whether a - b lies in `wanted` for some pair, without forming all pairs."""
    ordered = sorted(below)
    after_lo = bisect_right if wanted.lo_closed else bisect_left
    before_hi = bisect_left if wanted.hi_closed else bisect_right
    # a - b >= lo is b <= a - lo; a - b <= hi is b >= a - hi.
    return any(before_hi(ordered, a - wanted.hi) < after_lo(ordered, a - wanted.lo) for a in above)


def _only(above: Collection[Fraction], below: Collection[Fraction]) -> Fraction | None:
    """Return the difference where each side has one value."""
    return next(iter(above)) - next(iter(below)) if len(above) == len(below) == 1 else None
