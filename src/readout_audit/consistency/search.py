"""Every confusion matrix that printed scores allow, or what stands in the way of any."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import isqrt

import numpy as np

from readout_audit.consistency.metrics import METRICS, Matrix, metric_forms
from readout_audit.consistency.region import Found, Region, blocks, fp_range, intersect, search
from readout_audit.errors import AuditError
from readout_audit.exact import Interval, PrintedValue, Rounding

MOST_QUESTIONS = 10_000_000
"""More positives or negatives than this are refused: the search visits every tp."""

_SAMPLE = 200
"""Matrices looked at one by one while closing in on the nearest."""


@dataclass(frozen=True)
class Nearest:
    """The matrix that comes closest to printed values no matrix gives.

    Attributes:
        matrix: of all matrices at the smallest distance, the first by (tp, fp).
        distance: the largest difference between an exact metric of the matrix and the printed value, in
            units of that value's last printed digit. What prints as given is at most 1/2 away.
        count: how many matrices are at this distance.
        prints: what the matrix prints for each metric in the place of the printed value, halves up.
    """

    matrix: Matrix
    distance: Fraction
    count: int
    prints: Mapping[str, str]


@dataclass(frozen=True)
class Consistency:
    """What printed values say about the confusion matrix behind them.

    Attributes:
        positives: questions whose label is yes.
        negatives: questions whose label is no.
        printed: the printed values, by metric.
        rounding: how halves were taken to be rounded.
        count: how many integer matrices give all printed values; 0 proves that none does.
        matrices: the first of them by (tp, fp), at most as many as asked for.
        conflicts: when none fits, the smallest sets of printed values that already have no matrix in common.
        nearest: when none fits, the closest matrix.
        notes: what a reader should know about how a value was read, one sentence each.
    """

    positives: int
    negatives: int
    printed: Mapping[str, PrintedValue]
    rounding: Rounding
    count: int
    matrices: tuple[Matrix, ...]
    conflicts: tuple[tuple[str, ...], ...]
    nearest: Nearest | None
    notes: tuple[str, ...]

    @property
    def fits(self) -> bool:
        """Whether some matrix gives all printed values."""
        return self.count > 0

    @property
    def blame(self) -> str:
        """Say which printed values cannot hold together ("" when some matrix fits)."""
        return "; ".join(
            " and ".join(f"{name} {self.printed[name].text}" for name in names)
            + (" is printed by no matrix" if len(names) == 1 else " have no common matrix")
            for names in self.conflicts
        )


def fitting_matrices(
    positives: int,
    negatives: int,
    printed: Mapping[str, PrintedValue],
    *,
    rounding: Rounding = "either",
    limit: int = 10,
) -> Consistency:
    """Find every integer confusion matrix whose metrics print as given, or prove that there is none.

    A metric that is 0/0 (precision when nothing is called yes; F1 and recall when there is nothing to find
    either) is accepted where 0 is printed, with a note. Every question is taken to be answered yes or no.

    Args:
        positives: questions whose label is yes.
        negatives: questions whose label is no.
        printed: at least one of `METRICS`, as printed.
        rounding: how exact halves were rounded; "either" where that is not known.
        limit: how many matrices to list.

    Raises:
        AuditError: the counts are negative, both zero or too large; nothing is printed, or an unknown metric.
    """
    _check(positives, negatives, printed)
    ordered = {name: printed[name] for name in METRICS if name in printed}
    intervals = {name: value.interval(rounding) for name, value in ordered.items()}
    region = Region(positives, negatives, intervals)
    found = search(region, max(limit, 1))
    return Consistency(
        positives=positives,
        negatives=negatives,
        printed=ordered,
        rounding=rounding,
        count=found.count,
        matrices=found.first[:limit],
        conflicts=() if found.count else minimal_conflicts(region),
        nearest=None if found.count else nearest_matrix(positives, negatives, ordered),
        notes=_notes(ordered, found),
    )


def _check(positives: int, negatives: int, printed: Mapping[str, PrintedValue]) -> None:
    """Refuse counts and metrics that cannot be checked."""
    for name, count in (("positives", positives), ("negatives", negatives)):
        if count < 0:
            raise AuditError(f"{name} is {count}; give the number of questions with that label, 0 or more.")
        if count > MOST_QUESTIONS:
            raise AuditError(f"{name} is {count}; at most {MOST_QUESTIONS:,} can be searched.")
    if positives + negatives == 0:
        raise AuditError("positives and negatives are both 0; there is no question to score.")
    unknown = sorted(set(printed) - set(METRICS))
    if unknown:
        raise AuditError(f"{', '.join(unknown)} cannot be checked; the metrics are {', '.join(METRICS)}.")
    if not printed:
        raise AuditError(f"no printed value to check; give at least one of {', '.join(METRICS)}.")


def _notes(printed: Mapping[str, PrintedValue], found: Found) -> tuple[str, ...]:
    """Name undefined metrics accepted for a printed 0, and values too coarse to be meant as typed."""
    notes = [
        f"{name} {value.text} has no decimals; anything {'from' if value.digits else 'up to'} 0.5 prints so."
        for name, value in printed.items()
        if value.decimals == 0
    ]
    # The first matrix by (tp, fp) is the one with nothing called yes, if that one fits.
    for matrix in found.first[:1]:
        notes += [
            f"{name} is undefined (0/0) for {matrix}; the printed {value.text} is accepted for it."
            for name, value in printed.items()
            if matrix.value(name) is None
        ]
    return tuple(notes)


def minimal_conflicts(region: Region) -> tuple[tuple[str, ...], ...]:
    """Return the smallest sets of metrics whose intervals no matrix satisfies together.

    Each set becomes satisfiable when any one of its metrics is left out; sets are ordered by size.
    """
    names = tuple(region.intervals)
    forms = metric_forms(region.positives, region.negatives)
    open_sets = [group for size in range(1, len(names) + 1) for group in combinations(names, size)]
    for tps in blocks(0, region.positives):
        ranges = {name: fp_range(tps, forms[name], region.intervals[name], region) for name in names}
        open_sets = [
            group
            for group in open_sets
            if not np.less_equal(*intersect((ranges[name] for name in group), tps, region.negatives)).any()
        ]
    smallest: list[tuple[str, ...]] = []
    for group in open_sets:
        if not any(set(known) < set(group) for known in smallest):
            smallest.append(group)
    return tuple(smallest)


def nearest_matrix(positives: int, negatives: int, printed_values: Mapping[str, PrintedValue]) -> Nearest:
    """Return the matrix whose metrics differ least from the printed values.

    The distance is the largest over the metrics, in units of the last printed digit; a metric that is 0/0
    counts as 0. Closes in by search within shrinking distances, then proves that nothing is strictly nearer.
    """

    def within(distance: Fraction, closed: bool, tps: tuple[int, int], limit: int = _SAMPLE) -> Found:
        intervals = {name: _around(value, distance, closed) for name, value in printed_values.items()}
        return search(Region(positives, negatives, intervals), limit, tps)

    def least(found: Found) -> Fraction:
        return min(_distance(matrix, printed_values) for matrix in found.first)

    tps = (0, positives)
    low, high = Fraction(0), Fraction(10 ** max(value.decimals for value in printed_values.values()))
    while (middle := _between(low, high)) is not None:
        found = within(middle, True, tps)
        if found.count:
            high, tps = least(found), (found.tp_min, found.tp_max)
        else:
            low = middle
        if 0 < found.count <= _SAMPLE:
            break
    while (found := within(high, False, tps)).count:
        high = least(found)
    found = within(high, True, tps, limit=1)
    matrix = found.first[0]
    prints = {name: value.like(matrix.value(name)) for name, value in printed_values.items()}
    return Nearest(matrix, high, found.count, prints)


def _around(value: PrintedValue, distance: Fraction, closed: bool) -> Interval:
    """Return the numbers within `distance` units of a printed value's last digit."""
    reach = distance * value.unit
    return Interval(value.value - reach, value.value + reach, closed, closed)


def _distance(matrix: Matrix, printed_values: Mapping[str, PrintedValue]) -> Fraction:
    """Return the largest difference from the printed values, in units of the last printed digit."""
    return max(
        abs((matrix.value(name) or Fraction(0)) - value.value) / value.unit
        for name, value in printed_values.items()
    )


def _between(low: Fraction, high: Fraction) -> Fraction | None:
    """Return a distance with a small denominator strictly between two others, None where they are close.

    The geometric mean while they are far apart, since each search within a smaller distance is a faster one.
    """
    middle = Fraction(isqrt(int(max(low, Fraction(1)) * high)))
    if not low < middle < high:
        middle = ((low + high) / 2).limit_denominator(1000)
    return middle if low < middle < high else None
