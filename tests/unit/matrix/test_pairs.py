"""Pairs of readouts: hand-counted tables, the scores' own draw, and what cannot be paired."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scores.decision_files import row, table_7_rows, write_decisions

from readout_audit.matrix.pairs import count_pair, pair_table
from readout_audit.matrix.resampled import f1_of_counts
from readout_audit.matrix.schema import READOUT_PAIRS
from readout_audit.scores.confusion import count
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.intervals import score_intervals
from readout_audit.scores.labels import label_sets
from readout_audit.scores.table import count_scores, score_table

ANSWERS = [  # label, a, b, and the decision under c
    ("yes", "yes", "yes", "yes"),
    ("yes", "yes", "no", "unparsed"),
    ("yes", "no", "yes", "no"),
    ("no", "no", "yes", "no"),
    ("no", "no", "yes", "unparsed"),
    ("no", "yes", "yes", "no"),
    ("yes", "invalid", "invalid", "invalid"),
]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    rows = [
        row("random", number, label, image=f"{number % 3}.jpg", a=a, b=b, c=c)
        for number, (label, a, b, c) in enumerate(ANSWERS)
    ]
    return write_decisions(tmp_path / "decisions.parquet", rows)


def pairs_of(path: Path, resamples: int = 0) -> dict:
    decisions = read_decisions(path)
    table, _ = pair_table(decisions, label_sets(decisions, None), resamples, 42)
    assert table.schema == READOUT_PAIRS
    return {(one["split"], one["first"], one["second"]): one for one in table.to_pylist()}


def test_counts_of_a_small_table(small: Path) -> None:
    found = pairs_of(small)
    assert list(found) == [("random", "a", "b"), ("random", "a", "c"), ("random", "b", "c")]
    one = found["random", "a", "b"]
    # Rows 2, 3, 4, 5 differ: two of label yes, two of label no; the invalid row agrees with itself.
    assert (one["n"], one["disagree"], one["disagree_pos"], one["disagree_neg"]) == (7, 4, 2, 2)
    assert (one["yes_no"], one["no_yes"], one["other"]) == (1, 3, 0)
    assert (one["only_first_right"], one["only_second_right"]) == (3, 1)
    other = found["random", "a", "c"]
    # Rows 2 and 5 are unparsed under c, row 6 is a yes under a alone.
    assert (other["disagree"], other["yes_no"], other["no_yes"], other["other"]) == (3, 1, 0, 2)
    assert (other["only_first_right"], other["only_second_right"]) == (2, 1)


def test_difference_of_f1(small: Path) -> None:
    # a: TP 2, FP 1, FN 1 -> 4/6. b: TP 2, FP 3, FN 1 -> 4/8. c: TP 1, FP 0, FN 1, one positive unparsed -> 2/4.
    found = pairs_of(small)
    assert found["random", "a", "b"]["delta_f1"] == float(Fraction(4, 6) - Fraction(4, 8))
    assert found["random", "b", "c"]["delta_f1"] == 0.0
    assert found["random", "a", "b"]["delta_f1_low"] is None


def test_undefined_f1_is_null(tmp_path: Path) -> None:
    rows = [row("random", i, "yes", a="unparsed", b="yes") for i in range(2)]
    found = pairs_of(write_decisions(tmp_path / "decisions.parquet", rows), resamples=5)
    one = found["random", "a", "b"]
    assert (one["delta_f1"], one["delta_f1_low"], one["delta_f1_high"]) == (None, None, None)
    assert (one["disagree"], one["other"], one["only_second_right"]) == (2, 2, 2)


def test_a_split_that_a_readout_lacks_is_not_compared(tmp_path: Path) -> None:
    rows = [row("random", 1, "yes", a="yes", b=None), row("popular", 2, "no", a="no", b="yes")]
    found = pairs_of(write_decisions(tmp_path / "decisions.parquet", rows))
    assert list(found) == [("popular", "a", "b")]


def test_unpaired_source_has_no_pairs(tmp_path: Path) -> None:
    path = write_decisions(tmp_path / "decisions.parquet", table_7_rows(), joint=False)
    assert pairs_of(path) == {}


def test_interval_is_paired_and_drawn_as_the_scores_are(small: Path) -> None:
    """With b always undefined as a zero F1, the pair's interval is that of a's score."""
    decisions = read_decisions(small)
    rows = [
        row("random", number, label, image=f"{number % 3}.jpg", a=a, zero="no")
        for number, (label, a, _, _) in enumerate(ANSWERS)
    ]
    decisions = read_decisions(write_decisions(small.parent / "zero.parquet", rows))
    sets = label_sets(decisions, None)
    scores = count_scores(decisions, sets)
    table = score_table(scores, score_intervals(decisions, sets, scores, 500, 42).columns).to_pylist()
    score = next(one for one in table if one["split"] == "random" and one["readout"] == "a")
    pair = pair_table(decisions, sets, 500, 42)[0].to_pylist()[0]
    assert (pair["delta_f1_low"], pair["delta_f1_high"]) == (score["f1_low"], score["f1_high"])


def test_unknown_images_are_named(tmp_path: Path) -> None:
    rows = [row("random", i, "yes", image=None, a="yes", b="no") for i in range(2)]
    decisions = read_decisions(write_decisions(tmp_path / "decisions.parquet", rows))
    _, notes = pair_table(decisions, label_sets(decisions, None), 10, 42)
    assert notes["bootstrap"]["resamples"] == 0
    assert notes["bootstrap"]["why_not"] == "the source does not know which image a row is about"


codes = st.lists(st.tuples(*[st.integers(0, 1), st.integers(0, 3), st.integers(0, 3)]), max_size=30)


@given(codes)
def test_counts_add_up_and_swap(rows: list[tuple[int, int, int]]) -> None:
    labels, first, second = np.array(rows, dtype=np.int8).reshape(-1, 3).T
    one, other = count_pair(labels, first, second), count_pair(labels, second, first)
    assert one.disagree == one.disagree_pos + one.disagree_neg == one.yes_no + one.no_yes + one.other
    assert one.disagree <= one.n
    assert (one.yes_no, one.only_first_right) == (other.no_yes, other.only_second_right)
    assert count_pair(labels, first, first).disagree == 0


@given(codes)
def test_f1_of_counts_is_the_exact_f1(rows: list[tuple[int, int, int]]) -> None:
    labels = np.array([label for label, _, _ in rows], dtype=np.int8)
    answers = np.array([answer for _, answer, _ in rows], dtype=np.int8)
    confusion = count(labels, answers)
    counts = np.array([[confusion.tp, confusion.fp, confusion.misses, confusion.parsed]], dtype=float)
    found = f1_of_counts(counts)[0]
    assert np.isnan(found) if confusion.f1 is None else found == pytest.approx(float(confusion.f1), abs=1e-15)


def test_published_pair_is_table_7(shared: Path, tmp_path: Path) -> None:
    """The paper's Table 7, adversarial: 264 + 660 answers change from no to yes, none the other way."""
    from scores.published import write_published

    found = pairs_of(write_published(shared / "mirror", tmp_path / "published.parquet"))
    one = next(v for k, v in found.items() if k[0] == "adversarial")
    moved = {one["yes_no"], one["no_yes"]}
    assert (one["n"], one["disagree"], moved) == (3000, 924, {0, 924})
    assert (one["disagree_pos"], one["disagree_neg"], one["other"]) == (264, 660, 0)


def test_stage_writes_all_three(small: Path, tmp_path: Path) -> None:
    from readout_audit.stages import readout_matrix

    outputs = [tmp_path / name for name in ("pairs.parquet", "list.parquet", "list.csv")]
    readout_matrix.run(small, *outputs, resamples=10)
    assert pq.read_table(outputs[0]).num_rows == 3
    assert pq.read_table(outputs[1]).num_rows == 5
    assert len(outputs[2].read_text(encoding="utf-8").splitlines()) == 6
