"""Steps of the number formats, and near-ties counted by them."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readout_audit.audit.steps import near_ties, spacing
from readout_audit.errors import AuditError


@pytest.mark.parametrize(
    ("number_format", "magnitude", "step"),
    [
        ("float16", 24.0, 2**-6),
        ("bfloat16", 24.0, 2**-3),
        ("float32", 24.0, 2**-19),
        ("float16", 16.0, 2**-6),
        ("float16", 15.99, 2**-7),
        ("float16", 1.0, 2**-10),
        ("float16", 0.0, 2**-24),
        ("bfloat16", 0.0, 2.0**-133),
    ],
)
def test_known_steps(number_format: str, magnitude: float, step: float) -> None:
    assert spacing(number_format, magnitude) == step


@given(st.floats(0, 60000, width=16))
def test_half_precision_as_numpy_has_it(magnitude: float) -> None:
    assert spacing("float16", magnitude) == np.spacing(np.float16(magnitude))


@given(st.floats(0, 2.0**99, width=32))
def test_single_precision_as_numpy_has_it(magnitude: float) -> None:
    assert spacing("float32", magnitude) == np.spacing(np.float32(magnitude))


def test_unknown_format() -> None:
    with pytest.raises(AuditError, match="number format 'int4' is not one of float32, float16, bfloat16"):
        spacing("int4", 1.0)


LOGITS = [  # yes 7, no 8: margins 0, 2 steps, 3 steps of float16 at 24; then a small pair
    ([24.0, 24.0], "ok"),
    ([24.0 + 2 * 2**-6, 24.0], "ok"),
    ([24.0, 24.0 + 3 * 2**-6], "ok"),
    ([0.5, 0.5 + 2**-6], "ok"),  # 32 steps of float16 at 0.5
    (None, "invalid"),
]
DESCRIBED = {
    "two": {"available": True, "ids": {"yes": [7], "no": [8]}},
    "text": {"available": True, "ids": None},
    "lost": {"available": False, "ids": None},
}


def found_in(number_format: str | None, within: int = 2) -> dict:
    records = pa.table(
        {
            "status": [status for _, status in LOGITS],
            "candidate_logits": pa.array([logits for logits, _ in LOGITS], pa.list_(pa.float32())),
        }
    )
    margins = pa.array([None if v is None else v[0] - v[1] for v, _ in LOGITS], pa.float32())
    meta = {"candidate_ids": [7, 8], "settings": {"compute_dtype": number_format}, "model": "m"}
    found = near_ties(records, meta, DESCRIBED, pa.table({"two.margin": margins}), within)
    return {name: rows.tolist() for name, rows in found.items()}


def test_near_ties_by_hand() -> None:
    assert found_in("float16") == {"two": [True, True, False, False, False]}
    assert found_in("float16", within=3) == {"two": [True, True, True, False, False]}
    assert found_in("float32") == {"two": [True, False, False, False, False]}
    # bfloat16 at 24 comes in eighths: three sixty-fourths are within one step; at 0.5 a step is 2^-8.
    assert found_in("bfloat16") == {"two": [True, True, True, False, False]}
    assert found_in("bfloat16", within=4) == {"two": [True, True, True, True, False]}


def test_records_that_do_not_say_their_arithmetic() -> None:
    with pytest.raises(AuditError, match="does not say its compute_dtype"):
        found_in(None)
