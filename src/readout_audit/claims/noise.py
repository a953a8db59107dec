"""Near-ties: decisions that another run of the same checkpoint may make the other way.

Two greedy runs of one model differ where the largest yes and no logits are nearly equal: batch shape, kernel or
card decide the last bit. So a difference from a published number is called noise only if flipping decisions
that lie within two steps of the arithmetic can account for it, and the note says how many there are.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc

from readout_audit.claims.evidence import CellKey
from readout_audit.claims.finding import NearTies
from readout_audit.contracts import NO, YES
from readout_audit.scores.confusion import Confusion

STEPS = {"fp16": 2**-6, "nf4": 2**-6, "int8": 2**-6, "bf16": 2**-3, "fp32": 2**-19}
"""Spacing of numbers between 16 and 32, where answer logits lie, in the arithmetic of each precision."""

WITHIN = 2


def _close(decisions: pa.Table, cell: CellKey, split: str, readout: str) -> pa.Array | None:
    """Return which rows belong to the split and are near-tied; None where the source has no margins."""
    name = f"{readout}.margin"
    margins = decisions[name] if name in decisions.column_names else None
    if margins is None or margins.null_count == len(margins):
        return None
    limit = WITHIN * STEPS[cell.precision]
    near = pc.fill_null(pc.less_equal(pc.abs(margins), limit), False)
    return pc.and_(near, pc.equal(decisions["split"], split))


def near_ties(decisions: pa.Table, cell: CellKey, split: str, readout: str) -> Confusion | None:
    """Count the near-tied decisions of a split as a matrix; None where the source has no margins."""
    close = _close(decisions, cell, split, readout)
    if close is None:
        return None
    rows = decisions.filter(close)
    pairs = list(zip(rows["label"].to_pylist(), rows[readout].to_pylist(), strict=True))
    cells = [(YES, YES), (NO, YES), (NO, NO), (YES, NO)]  # tp, fp, tn, fn as (label, decision)
    return Confusion(*(pairs.count(cell_) for cell_ in cells))


def near_rows(
    decisions: pa.Table, cell: CellKey, split: str, readouts: Sequence[str], label: str | None
) -> int | None:
    """Count the rows of a split that are near-tied under any of the readouts; `label` None counts both labels."""
    close = [_close(decisions, cell, split, readout) for readout in readouts]
    if any(rows is None for rows in close):
        return None
    either = reduce(pc.or_, close)
    if label is not None:
        either = pc.and_(either, pc.equal(decisions["label"], label))
    return int(pc.sum(either).as_py() or 0)


def metric_range(
    matrix: Confusion, near: Confusion, metric: Callable[[Confusion], Fraction | None]
) -> NearTies | None:
    """Return the range of a metric over the matrices that near-tied decisions allow.

    Every metric used here is monotone in tp and in fp, so the ends lie at the corners.
    """
    corners = []
    for tp, fp in product((-near.tp, near.fn), (-near.fp, near.tn)):
        corner = matrix._replace(tp=matrix.tp + tp, fn=matrix.fn - tp, fp=matrix.fp + fp, tn=matrix.tn - fp)
        value = metric(corner)
        if value is None:
            return None
        corners.append(value)
    return NearTies(min(corners), max(corners), near.n)
