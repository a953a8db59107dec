"""Resampling over images against slow counting; naive intervals by hand."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readout_audit.scores import bootstrap
from readout_audit.scores.blocks import MACRO
from readout_audit.scores.bootstrap import (
    number_images,
    percentile_intervals,
    resampled_totals,
    swapped_totals,
)
from readout_audit.scores.confusion import Confusion, count
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.intervals import score_intervals
from readout_audit.scores.labels import label_sets
from readout_audit.scores.naive import mcnemar, wilson, wilson_f1
from readout_audit.scores.table import count_scores
from scores.decision_files import row, write_decisions


def draws(images, resamples, seed):
    """Return shape (resamples, images), the times each image is drawn."""
    return resampled_totals(np.eye(images, dtype=np.int64), resamples, seed).astype(int)


def test_every_resample_draws_as_many_images_as_there_are():
    times = draws(30, 200, seed=7)
    assert (times.sum(axis=1) == 30).all()
    assert np.unique(times, axis=0).shape[0] == 200
    # Each image is drawn once on average, with variance 1 - 1/30; four standard errors of 6,000 draws.
    assert abs(times.var() - (1 - 1 / 30)) < 0.08
    assert (draws(30, 200, seed=8) != times).any()


def test_the_draw_does_not_depend_on_the_memory_at_hand(monkeypatch):
    columns = np.arange(63).reshape(21, 3)
    whole = resampled_totals(columns, 50, 1), swapped_totals(columns, 50, 1)
    monkeypatch.setattr(bootstrap, "_CHUNK_CELLS", 7 * 21)
    assert (resampled_totals(columns, 50, 1) == whole[0]).all()
    assert (swapped_totals(columns, 50, 1) == whole[1]).all()


def test_totals_are_exact_beyond_single_precision():
    small = np.array([[1], [2], [3]])
    large = small * (2**24 + 1)
    assert (resampled_totals(large, 40, 3) == resampled_totals(small, 40, 3) * (2**24 + 1)).all()


def test_coins_are_fair_and_whole():
    chosen = swapped_totals(np.eye(13, dtype=np.int64), 4000, 5)
    assert set(np.unique(chosen)) == {0.0, 1.0}
    assert np.abs(chosen.mean(axis=0) - 0.5).max() < 4 * 0.5 / math.sqrt(4000)


def test_images_are_numbered_by_name_whatever_the_order_of_rows():
    images = number_images(pa.chunked_array([["b", "a"], ["c", "a"]]))
    assert images.codes.tolist() == [1, 0, 2, 0]
    assert images.n == 3
    assert number_images(pa.chunked_array([["a", None]])) is None
    assert number_images(pa.chunked_array([[]], type=pa.string())) is None


def random_file(path, rng, rows=60, images=9):
    """Write two splits of random answers, all four kinds of them, over shared images."""
    words = ["yes", "no", "unparsed", "invalid"]
    return write_decisions(
        path,
        [
            row(
                split,
                number,
                str(rng.choice(["yes", "no"])),
                image=f"{rng.integers(images)}.jpg",
                a=str(rng.choice(words, p=[0.4, 0.4, 0.15, 0.05])),
                b=str(rng.choice(words[:2])),
            )
            for split in ("s", "t")
            for number in range(rows)
        ],
    )


def intervals_of(path, resamples, seed):
    decisions = read_decisions(path)
    sets = label_sets(decisions, None)
    scores = count_scores(decisions, sets)
    return decisions, scores, score_intervals(decisions, sets, scores, resamples, seed)


def test_intervals_equal_those_of_counting_every_resample_row_by_row(tmp_path):
    resamples, seed = 25, 11
    decisions, scores, found = intervals_of(
        random_file(tmp_path / "d.parquet", np.random.default_rng(0)), resamples, seed
    )
    images = number_images(decisions.identity["image"])
    times = draws(images.n, resamples, seed)
    for index, entry in enumerate(scores.entries):
        values = {"f1": [], "yes_rate": []}
        for weights in times:
            matrices = [
                count(
                    np.repeat(decisions.labels[part.rows], weights[images.codes[part.rows]]),
                    np.repeat(decisions.answers[entry.readout][part.rows], weights[images.codes[part.rows]]),
                )
                for part in entry.parts
            ]
            for rate, of_resample in values.items():
                if entry.split == MACRO:
                    of_resample.append(
                        sum(float(getattr(matrix, rate)) for matrix in matrices) / len(matrices)
                    )
                else:
                    total = Confusion(*(sum(cells) for cells in zip(*matrices, strict=True)))
                    of_resample.append(float(getattr(total, rate)))
        for rate, of_resample in values.items():
            low, high = np.quantile(of_resample, [0.025, 0.975])
            assert found.columns[index][f"{rate}_low"] == pytest.approx(low, abs=1e-12)
            assert found.columns[index][f"{rate}_high"] == pytest.approx(high, abs=1e-12)
    assert found.note["resamples"] == resamples and found.note["images"] == images.n
    assert found.note["undefined"] == []


@settings(max_examples=15)
@given(order=st.permutations(range(24)))
def test_order_of_rows_does_not_matter(tmp_path_factory, order):
    folder = tmp_path_factory.mktemp("order")
    rows = [
        row("s", n, "yes" if n % 3 else "no", image=f"{n % 5}.jpg", a="yes" if n % 4 else "no")
        for n in range(24)
    ]
    first = intervals_of(write_decisions(folder / "a.parquet", rows), 40, 2)[2]
    second = intervals_of(write_decisions(folder / "b.parquet", [rows[n] for n in order]), 40, 2)[2]
    assert first == second


def test_one_question_per_image_gives_the_spread_of_a_share(tmp_path):
    # 400 independent questions, 100 yes: standard deviation sqrt(0.25 * 0.75 / 400) = 0.02165.
    rows = [row("s", n, "yes", image=f"{n}.jpg", a="no" if n % 4 else "yes") for n in range(400)]
    _, _, found = intervals_of(write_decisions(tmp_path / "d.parquet", rows), 4000, 0)
    low, high = found.columns[0]["yes_rate_low"], found.columns[0]["yes_rate_high"]
    assert (high - low) / (2 * 1.96) == pytest.approx(0.02165, rel=0.06)
    # Six copies of each question carry no more information.
    copies = [{**one, "uid": f"{one['uid']}{k}"} for one in rows for k in range(6)]
    _, _, same = intervals_of(write_decisions(tmp_path / "e.parquet", copies), 4000, 0)
    assert same.columns[0]["yes_rate_low"] == pytest.approx(low)
    naive = found.columns[0]["f1_wilson_high"] - found.columns[0]["f1_wilson_low"]
    too_narrow = same.columns[0]["f1_wilson_high"] - same.columns[0]["f1_wilson_low"]
    assert too_narrow < naive / 2


def test_undefined_resamples_are_left_out_and_counted(tmp_path):
    # F1 is undefined where only the second image is drawn: it holds nothing but a refused negative.
    rows = [row("s", 1, "yes", image="1.jpg", a="yes"), row("s", 2, "no", image="2.jpg", a="no")]
    _, scores, found = intervals_of(write_decisions(tmp_path / "d.parquet", rows), 500, 4)
    expected = int((draws(2, 500, 4)[:, 0] == 0).sum())
    assert 0 < expected < 500
    assert found.columns[0]["f1_low"] == found.columns[0]["f1_high"] == 1
    assert found.note["undefined"][0] == {
        "labels": "pope",
        "split": "s",
        "readout": "a",
        "subset": "all",
        "rate": "f1",
        "resamples": expected,
    }
    assert len(scores.entries) == 4


def test_no_resamples_or_no_images_leave_the_intervals_empty(tmp_path):
    path = write_decisions(tmp_path / "d.parquet", [row("s", 1, "yes", image=None, a="yes")])
    _, _, found = intervals_of(path, 10, 0)
    assert found.columns[0].keys() == {"f1_wilson_low", "f1_wilson_high"}
    assert "does not know which image" in found.note["why_not"]
    path = write_decisions(tmp_path / "d.parquet", [row("s", 1, "yes", a="yes")])
    _, _, found = intervals_of(path, 0, 0)
    assert found.columns[0].keys() == {"f1_wilson_low", "f1_wilson_high"}
    assert found.note == {"interval": "percentile, 95%", "unit": "image", "resamples": 0}


def test_percentiles_of_columns_with_and_without_gaps():
    statistics = np.array([[1.0, np.nan, np.nan], [2.0, 5.0, np.nan], [3.0, 5.0, np.nan]])
    whole, gaps, nothing = percentile_intervals(statistics)
    assert whole == (pytest.approx(1.05), pytest.approx(2.95), 0)
    assert gaps == (5, 5, 1)
    assert nothing == (None, None, 3)


def test_wilson_by_hand():
    # z = 1.959964, z^2 = 3.841459. 0 of 10: upper end z^2 / (10 + z^2) = 0.277533.
    assert wilson(0, 10) == (0.0, pytest.approx(3.841459 / 13.841459, abs=1e-6))
    low, high = wilson(5, 10)
    # Centre one half; half width z / (1 + z^2/10) * sqrt(0.025 + z^2/400) = 0.263405.
    assert (low, high) == (pytest.approx(0.236595, abs=1e-5), pytest.approx(0.763405, abs=1e-5))
    assert wilson(10, 10)[1] == 1.0
    assert wilson(0, 0) is None


def test_wilson_for_f1_carries_the_jaccard_interval_over():
    matrix = Confusion(tp=6, fp=2, tn=9, fn=1, unparsed_pos=1)
    low, high = wilson(6, 10)
    assert wilson_f1(matrix) == (pytest.approx(2 * low / (1 + low)), pytest.approx(2 * high / (1 + high)))
    assert wilson_f1(matrix)[0] < matrix.f1 < wilson_f1(matrix)[1]
    assert wilson_f1(Confusion(0, 0, 5, 0)) is None


def test_mcnemar_by_hand():
    # 1 against 9: 2 * (1 + 10) / 2^10.
    assert mcnemar(1, 9) == mcnemar(9, 1) == pytest.approx(22 / 1024, rel=1e-12)
    assert mcnemar(5, 5) == 1.0
    assert mcnemar(0, 924) == pytest.approx(2.0**-923, rel=1e-9)
    assert mcnemar(0, 0) is None
