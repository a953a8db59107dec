"""Near-ties: answers whose two compared logits are so close that the last bits of the arithmetic decide.

Logits come in steps of the arithmetic's number format, which grow with their size: 16-bit logits near 24 come
in steps of 0.016 (float16) or 0.125 (bfloat16). Another batch, kernel or card may move a logit by a step or two.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from readout_audit.errors import AuditError
from readout_audit.readouts.base import candidate_logits, is_listed
from readout_audit.scores.bootstrap import Floats

FORMATS: Mapping[str, tuple[int, int]] = {
    "float32": (24, -126),
    "float16": (11, -14),
    "bfloat16": (8, -126),
}
"""Number format -> bits of its significand, the hidden one included, and its smallest normal exponent."""

NEAR = 2
"""Steps within which a margin counts as a near-tie, unless another number is given."""


def spacing(number_format: str, magnitudes: npt.ArrayLike) -> Floats:
    """Return the distance from each magnitude to the next larger number of a format.

    Args:
        number_format: a key of `FORMATS`.
        magnitudes: any shape, finite, not negative.

    Raises:
        AuditError: the format is not known.
    """
    if number_format not in FORMATS:
        raise AuditError(f"number format {number_format!r} is not one of {', '.join(FORMATS)}.")
    bits, smallest = FORMATS[number_format]
    fraction, exponent = np.frexp(np.asarray(magnitudes, dtype=np.float64))
    # frexp gives a fraction below 1, so the exponent of 1.f is one less; zero stands with the subnormal numbers.
    floor = np.where(fraction == 0, smallest, np.maximum(exponent - 1, smallest))
    steps: Floats = np.ldexp(1.0, floor - (bits - 1))
    return steps


def near_ties(
    records: pa.Table, meta: Mapping[str, Any], described: Mapping[str, Any], margins: pa.Table, within: int
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return, for every readout of logits, which rows are near-tied.

    The step is that of the arithmetic (`compute_dtype` of the settings) at the larger of the two compared
    maxima. Rows without a margin (invalid ones) are not near-tied.

    Args:
        records: the record file, one row per decided row, in that order.
        meta: its metadata.
        described: readout -> what the decision file says of it (`available`, `ids`).
        margins: the decision file's `<readout>.margin` columns.
        within: steps.

    Returns:
        Nothing for a server's records: it does not tell in which arithmetic it computes.

    Raises:
        AuditError: the records do not say in which arithmetic they were computed, or lack an id.
    """
    if is_listed(meta):
        return {}
    number_format = (meta.get("settings") or {}).get("compute_dtype")
    if number_format is None:
        raise AuditError("the record file does not say its compute_dtype, so near-ties cannot be counted.")
    near = {}
    for name, about in described.items():
        ids = about.get("ids")
        if not about.get("available", True) or not ids:
            continue
        logits = candidate_logits(records, meta, [*ids["yes"], *ids["no"]], name).astype(np.float64)
        maxima = [side.max(axis=1) for side in (logits[:, : len(ids["yes"])], logits[:, len(ids["yes"]) :])]
        margin = margins[f"{name}.margin"].to_numpy().astype(np.float64)
        largest = np.nan_to_num(np.maximum(*np.abs(maxima)))
        near[name] = np.abs(margin) <= within * spacing(number_format, largest)
    return near
