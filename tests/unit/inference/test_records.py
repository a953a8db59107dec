"""Numbers of a row, with expected values derived by hand."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from readout_audit.contracts import RECORDS
from readout_audit.inference.base import Answer, Question, collapse_placeholders
from readout_audit.inference.records import invalid_row, log_sum_exp, measure, ranks, table, top_ids

QUESTION = Question("u", "a.jpg", "dog", "Is there a dog?", "USER: Is there a dog?")
MODEL: Any = SimpleNamespace(
    piece=lambda token_id: f"<{token_id}>",
    decode=lambda ids, skip_special_tokens: " ".join(map(str, ids)),
)

logits_with_ties = arrays(
    np.float32, st.integers(1, 60), elements=st.sampled_from([-3.0, -0.5, 0.0, 0.125, 2.0])
)


def test_largest_and_ranks_with_ties() -> None:
    logits = np.array([1, 3, 2, 3, 0], dtype=np.float32)
    assert top_ids(logits, 3).tolist() == [1, 3, 2]
    assert top_ids(logits, 20).tolist() == [1, 3, 2, 0, 4]
    # Equal logits rank by id: 1 before 3.
    assert ranks(logits, np.array([0, 1, 3, 4])).tolist() == [4, 1, 2, 5]


@given(logits_with_ties, st.integers(1, 25))
def test_largest_against_sorting_by_hand(logits: np.ndarray, count: int) -> None:
    expected = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    assert top_ids(logits, count).tolist() == expected[:count]
    assert [expected[rank - 1] for rank in ranks(logits, np.arange(len(logits)))] == list(range(len(logits)))


def test_log_sum_exp() -> None:
    assert log_sum_exp(np.log(np.array([1, 2, 5], dtype=np.float32))) == pytest.approx(math.log(8), abs=1e-6)
    # No overflow: log(2 e^1000) = 1000 + log 2
    assert log_sum_exp(np.array([1000, 1000], dtype=np.float32)) == pytest.approx(
        1000 + math.log(2), abs=1e-9
    )


def test_a_measured_row() -> None:
    logits = np.array([0.5, 2.0, 2.0, -1.0], dtype=np.float32)
    answer = Answer(QUESTION, 9, 4, (7, 8), logits, (1, 0))
    row = measure(answer, "hash", np.array([0, 2]), MODEL)
    assert row["argmax_id"] == 1 and row["argmax_text"] == "<1>" and row["argmax_logit"] == 2.0
    assert row["candidate_logits"] == [0.5, 2.0] and row["candidate_ranks"] == [3, 2]
    assert row["top_ids"] == [1, 2, 0, 3] and row["top_logits"] == [2.0, 2.0, 0.5, -1.0]
    assert row["new_text"] == "1 0" and row["full_text"] == "7 8 1 0"
    assert table([row]).schema == RECORDS


def test_an_invalid_row_has_no_measured_value() -> None:
    row = measure(Answer(QUESTION, fault="NaN"), "hash", np.array([0]), MODEL)
    assert row == invalid_row(QUESTION, "hash", "NaN")
    kept = {"uid", "image", "image_sha256", "object", "question", "prompt", "status", "reason"}
    assert {name for name, value in row.items() if value is not None} == kept
    assert table([row]).num_rows == 1


def test_placeholders_collapse_to_one_per_run() -> None:
    assert collapse_placeholders([1, 9, 9, 9, 2, 9, 3], 9) == (1, 9, 2, 9, 3)
    assert collapse_placeholders([9, 9], 9) == (9,)
    assert collapse_placeholders([], 9) == ()
