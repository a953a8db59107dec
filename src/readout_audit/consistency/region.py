"""All integer (tp, fp) whose metrics lie in given intervals, counted without listing them.

For one tp each interval leaves a range of fp, so the matrices are a list of ranges: one per tp. Everything is
integer arithmetic: int64 where a bound proves that it cannot overflow, Python integers where not.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readout_audit.consistency.metrics import Form, Linear, Matrix, metric_forms
from readout_audit.exact import Interval

Ints = NDArray[np.int64]

BLOCK = 1 << 16
"""Values of tp handled at once: bounds the memory at any number of positives."""


class Region(NamedTuple):
    """The matrices of P positives and N negatives whose metrics lie in `intervals` (all of them at once)."""

    positives: int
    negatives: int
    intervals: Mapping[str, Interval]


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        count: how many matrices there are.
        first: the first of them by (tp, fp), at most as many as asked for.
        tp_min, tp_max: the range of tp they span (0 and -1 when there is none).
    """

    count: int
    first: tuple[Matrix, ...]
    tp_min: int
    tp_max: int


def search(region: Region, limit: int, tp_range: tuple[int, int] | None = None) -> Found:
    """Count the matrices of a region and list the first `limit`.

    Args:
        region: what to search.
        limit: how many matrices to list; the count is of all.
        tp_range: where the tp of every such matrix is known to lie (inclusive); None for 0 to P.
    """
    forms = metric_forms(region.positives, region.negatives)
    count, first, spans = 0, list[Matrix](), list[int]()
    for tps in blocks(*_recall_range(region, *(tp_range or (0, region.positives)))):
        lo, hi = intersect(
            (fp_range(tps, forms[name], interval, region) for name, interval in region.intervals.items()),
            tps,
            region.negatives,
        )
        filled = np.flatnonzero(lo <= hi)
        if not filled.size:
            continue
        count += int((hi[filled] - lo[filled] + 1).sum())
        spans += [int(tps[filled[0]]), int(tps[filled[-1]])]
        rows = ((int(tps[i]), int(lo[i]), int(hi[i])) for i in filled[: max(0, limit - len(first))])
        first += _listed(rows, limit - len(first), region)
    return Found(count, tuple(first), spans[0] if spans else 0, spans[-1] if spans else -1)


def blocks(start: int, stop: int) -> Iterator[Ints]:
    """Yield the integers from `start` to `stop` inclusive, in arrays of at most `BLOCK`."""
    for at in range(start, stop + 1, BLOCK):
        yield np.arange(at, min(at + BLOCK, stop + 1), dtype=np.int64)


def fp_range(tps: Ints, form: Form, interval: Interval, region: Region) -> tuple[Ints, Ints]:
    """Return for each tp the lowest and highest fp in 0..N whose metric lies in `interval`.

    The lowest is above the highest where there is none. A metric that is 0/0 counts as 0 here, the way papers
    print it.
    """
    top = region.negatives
    lo: NDArray[Any] = np.zeros(len(tps), dtype=np.int64)
    hi: NDArray[Any] = np.full(len(tps), top, dtype=np.int64)
    for a, b, c in _half_planes(form, interval):
        rest: NDArray[Any] = a + b * tps.astype(_integer_type((a, b, c), region))
        if c > 0:
            lo = np.maximum(lo, -(rest // c))  # fp >= ceil(-rest / c)
        elif c < 0:
            hi = np.minimum(hi, rest // -c)
        else:
            hi = np.where(rest >= 0, hi, -1)
    # Clipped before the cast, since ends far outside 0..N need not fit.
    lo, hi = np.clip(lo, 0, top + 1).astype(np.int64), np.clip(hi, -1, top).astype(np.int64)
    if form.undefined_at_zero and len(tps) and tps[0] == 0:
        # At tp = 0 the metric is 0 for every fp, or 0/0, where the inequalities say nothing.
        lo[0], hi[0] = (0, top) if interval.holds(Fraction(0)) else (1, 0)
    return lo, hi


def intersect(ranges: Iterable[tuple[Ints, Ints]], tps: Ints, negatives: int) -> tuple[Ints, Ints]:
    """Return for each tp the fp that all ranges share (0..N where there is no range)."""
    lo, hi = np.zeros(len(tps), dtype=np.int64), np.full(len(tps), negatives, dtype=np.int64)
    for low, high in ranges:
        lo, hi = np.maximum(lo, low), np.minimum(hi, high)
    return lo, hi


def _recall_range(region: Region, start: int, stop: int) -> tuple[int, int]:
    """Narrow a range of tp by the printed recall, so that a search with recall visits few rows.

    Ends that are open stay in: `fp_range` decides about them.
    """
    interval = region.intervals.get("recall")
    if interval is None or not region.positives:
        return start, stop
    lowest = -(-interval.lo * region.positives // 1)
    return max(start, int(lowest)), min(stop, int(interval.hi * region.positives // 1))


def _half_planes(form: Form, interval: Interval) -> tuple[Linear, Linear]:
    """Return (a, b, c) of the inequalities a + b·tp + c·fp >= 0 that put num/den (den > 0) between the ends.

    An open end asks for > 0; the left side is an integer, so that is >= 1.
    """
    (p, q), (r, s) = interval.lo.as_integer_ratio(), interval.hi.as_integer_ratio()
    above = [q * num - p * den for num, den in zip(*form, strict=True)]
    below = [r * den - s * num for num, den in zip(*form, strict=True)]
    above[0] -= not interval.lo_closed
    below[0] -= not interval.hi_closed
    return (above[0], above[1], above[2]), (below[0], below[1], below[2])


def _integer_type(coefficients: Linear, region: Region) -> type:
    """Return int64 if no value of the form over the region can overflow it, else Python's integers."""
    a, b, c = map(abs, coefficients)
    # With no positives or negatives the coefficient itself must fit all the same.
    largest = a + b * max(region.positives, 1) + c * max(region.negatives, 1)
    return np.int64 if largest < 2**62 else object


def _listed(rows: Iterable[tuple[int, int, int]], limit: int, region: Region) -> list[Matrix]:
    """List the first `limit` matrices of rows (tp, lowest fp, highest fp)."""
    listed = list[Matrix]()
    for tp, lo, hi in rows:
        for fp in range(lo, min(hi, lo + limit - len(listed) - 1) + 1):
            listed.append(Matrix(tp, fp, region.positives - tp, region.negatives - fp))
    return listed
