"""Near-ties: decisions that another run of the same checkpoint may make the other way.

Two greedy runs of one model differ where the largest yes and no logits are nearly equal: batch shape, kernel or
card decide the last bit. So a difference from a published number is called noise only if flipping decisions
that lie within two steps of the arithmetic can account for it, and the note says how many there are.
"""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from readout_audit.audit.steps import NEAR, spacing
from readout_audit.claims.finding import NearTies
from readout_audit.contracts import NO, YES
from readout_audit.fileio import table_metadata
from readout_audit.scores.confusion import Confusion

MAGNITUDE = 16
"""Answer logits of the paper's models lie between 16 and 32 (Appendix F.3: set maxima near 24.6)."""


def near_tie_limit(metadata: Mapping[str, Any]) -> float | None:
    """Return how far apart two logits may lie to count as nearly equal: two steps of the recorded arithmetic.

    A precision alone does not say it: 4-bit weights are computed with in whatever type the run chose.

    Args:
        metadata: that of a decision file, which repeats the settings of its records.

    Returns:
        Two spacings of its `compute_dtype` between 16 and 32; None where the source records none.
    """
    number_format = (metadata.get("settings") or {}).get("compute_dtype")
    return None if number_format is None else NEAR * float(spacing(number_format, MAGNITUDE))


def _close(decisions: pa.Table, split: str, readout: str) -> pa.Array | None:
    """Return which rows belong to the split and are near-tied.

    None where the source has no margins, or does not say in which arithmetic they were computed: a difference
    is not called noise on a guess.
    """
    name = f"{readout}.margin"
    margins = decisions[name] if name in decisions.column_names else None
    limit = near_tie_limit(table_metadata(decisions))
    if margins is None or margins.null_count == len(margins) or limit is None:
        return None
    near = pc.fill_null(pc.less_equal(pc.abs(margins), limit), False)
    return pc.and_(near, pc.equal(decisions["split"], split))


def near_ties(decisions: pa.Table, split: str, readout: str) -> Confusion | None:
    """Count the near-tied decisions of a split as a matrix; None where the source has no margins."""
    close = _close(decisions, split, readout)
    if close is None:
        return None
    rows = decisions.filter(close)
    pairs = list(zip(rows["label"].to_pylist(), rows[readout].to_pylist(), strict=True))
    cells = [(YES, YES), (NO, YES), (NO, NO), (YES, NO)]  # tp, fp, tn, fn as (label, decision)
    return Confusion(*(pairs.count(cell_) for cell_ in cells))


def near_rows(decisions: pa.Table, split: str, readouts: Sequence[str], label: str | None) -> int | None:
    """Count the rows of a split that are near-tied under any of the readouts; `label` None counts both labels."""
    close = [_close(decisions, split, readout) for readout in readouts]
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
