"""Paired intervals and permutation tests over images, against slow counting."""

from itertools import product

import numpy as np
import pytest
from scores.decision_files import row, write_decisions

from readout_audit.contracts import GAP
from readout_audit.fileio import read_table
from readout_audit.gap.intervals import permutation_p_values
from readout_audit.gap.transitions import Paired
from readout_audit.scores.bootstrap import resampled_totals
from readout_audit.stages import measure_gap


def gap_of(tmp_path, rows, **options):
    """Run the stage; return {(from, to, quantity): row}."""
    decisions = write_decisions(tmp_path / "d.parquet", rows)
    measure_gap.run(decisions, tmp_path / "t.parquet", tmp_path / "g.parquet", **options)
    gap = read_table(tmp_path / "g.parquet", GAP, "gap").to_pylist()
    return {(r["readout_from"], r["readout_to"], r["quantity"]): r for r in gap}


def some_rows(seed=3, n=80, images=8):
    """Answers of two readouts that differ often, over a few images."""
    rng = np.random.default_rng(seed)
    return [
        row(
            "s",
            number,
            str(rng.choice(["yes", "no"])),
            image=f"{rng.integers(images)}.jpg",
            a=str(rng.choice(["yes", "no"])),
            b=str(rng.choice(["yes", "no"], p=[0.7, 0.3])),
        )
        for number in range(n)
    ]


def per_image(rows, images=8):
    """Count `Paired` by image, one row at a time."""
    counts = np.zeros((images, 8), dtype=np.int64)
    for one in rows:
        kind = 4 * (one["label"] == "no") + 2 * (one["a"] == "no") + (one["b"] == "no")
        counts[int(one["image"].split(".")[0]), kind] += 1
    return counts


def test_intervals_of_every_rate_equal_those_of_counted_resamples(tmp_path):
    rows = some_rows()
    gap = gap_of(tmp_path, rows, resamples=60, seed=9)
    resampled = [Paired(*map(int, totals)) for totals in resampled_totals(per_image(rows), 60, 9)]
    expected = {
        "rho_n": [p.neg_ny / (p.neg_ny + p.neg_nn) for p in resampled],
        "phi": [p.pos_ny / (p.pos_ny + p.pos_nn) for p in resampled],
        "yes_to_no_neg": [p.neg_yn / (p.neg_yn + p.neg_yy) for p in resampled],
        "delta_f1": [float(p.before.f1 - p.after.f1) for p in resampled],
        "f1_to": [float(p.after.f1) for p in resampled],
        "pooled_flip_rate": [
            (p.pos_ny + p.neg_ny) / (p.pos_ny + p.neg_ny + p.pos_nn + p.neg_nn) for p in resampled
        ],
        "agreement": [(p.pos_yy + p.pos_nn + p.neg_yy + p.neg_nn) / p.n for p in resampled],
    }
    for name, values in expected.items():
        low, high = np.quantile(values, [0.025, 0.975])
        assert gap["a", "b", f"{name}_ci_low"]["value"] == pytest.approx(low, abs=1e-12)
        assert gap["a", "b", f"{name}_ci_high"]["value"] == pytest.approx(high, abs=1e-12)


def test_both_directions_tell_the_same(tmp_path):
    gap = gap_of(tmp_path, some_rows(), resamples=60, seed=9)
    there, back = (gap[(*pair, "delta_f1_ci_low")]["value"] for pair in (("a", "b"), ("b", "a")))
    assert there == pytest.approx(-gap["b", "a", "delta_f1_ci_high"]["value"])
    assert back == pytest.approx(-gap["a", "b", "delta_f1_ci_high"]["value"])
    for name in ("delta_f1_permutation_p", "mcnemar_p"):
        assert gap["a", "b", name]["value"] == gap["b", "a", name]["value"]


def test_permutation_p_value_nears_that_of_every_exchange():
    counts = per_image(some_rows())

    def f1_gap(exchanged):
        images = [Paired(*map(int, cells)) for cells in counts]
        images = [one.reversed if swap else one for one, swap in zip(images, exchanged, strict=True)]
        total = Paired(*(sum(cells) for cells in zip(*images, strict=True)))
        return total.before.f1 - total.after.f1

    observed = abs(f1_gap([False] * 8))
    every = [abs(f1_gap(exchanged)) >= observed for exchanged in product([False, True], repeat=8)]
    exact = sum(every) / len(every)
    assert 0.02 < exact < 0.98
    (quantity,) = permutation_p_values([counts], 20000, seed=1)
    assert quantity.value.denominator == 20001
    assert abs(float(quantity.value.value) - exact) < 4 * np.sqrt(exact * (1 - exact) / 20000)


def test_equal_readouts_are_never_told_apart(tmp_path):
    rows = [one | {"b": one["a"]} for one in some_rows()]
    gap = gap_of(tmp_path, rows, resamples=50, seed=0)
    p_value = gap["a", "b", "delta_f1_permutation_p"]
    assert (p_value["numerator"], p_value["denominator"]) == (51, 51)
    assert gap["a", "b", "delta_f1_ci_low"]["value"] == gap["a", "b", "delta_f1_ci_high"]["value"] == 0
    assert gap["a", "b", "mcnemar_p"]["value"] is None
    assert gap["a", "b", "yes_to_no_pos_ci_high"]["value"] == 0


def test_mcnemar_stands_beside_as_naive(tmp_path):
    rows = [row("s", n, "yes", a="no", b="yes" if n else "no") for n in range(10)] + [
        row("s", 11, "no", a="no", b="yes")
    ]
    gap = gap_of(tmp_path, rows)
    assert gap["a", "b", "mcnemar_p"]["value"] == pytest.approx(22 / 1024)
    assert gap["a", "b", "mcnemar_p"]["note"].startswith("naive")
    assert "1 rows right only under `from`, 9 only under `to`" in gap["a", "b", "mcnemar_p"]["note"]
    assert ("a", "b", "delta_f1_ci_low") not in gap


def test_a_rate_that_resamples_leave_undefined_says_how_often(tmp_path):
    # Both no answers to a negative stand in one of two images: a quarter of the resamples miss it.
    rows = [
        row("s", 1, "no", image="1.jpg", a="no", b="yes"),
        row("s", 2, "yes", image="1.jpg", a="yes", b="yes"),
        row("s", 3, "yes", image="2.jpg", a="yes", b="yes"),
    ]
    gap = gap_of(tmp_path, rows, resamples=200, seed=0)
    missed = int((resampled_totals(np.eye(2, dtype=np.int64), 200, 0)[:, 0] == 0).sum())
    assert gap["a", "b", "rho_n_ci_low"]["value"] == 1
    assert gap["a", "b", "rho_n_ci_low"]["note"] == f"{missed} resamples left it undefined"
    left_out = gap["a", "b", "rho_n_ci_undefined"]
    assert (left_out["numerator"], left_out["denominator"]) == (missed, 200)
    assert gap["a", "b", "phi_ci_low"]["value"] is None
    assert gap["a", "b", "phi_ci_undefined"]["value"] == 1
    assert ("a", "b", "agreement_ci_undefined") not in gap
