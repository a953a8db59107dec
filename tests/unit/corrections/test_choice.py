"""Counting by image, choosing a strength, and what is tried on the same images."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corrections.made import evidence, record, signal, world
from readout_audit.corrections.base import Correction
from readout_audit.corrections.compare import Settings, compare, interval
from readout_audit.corrections.registry import correction
from readout_audit.corrections.rows import Block, fold_of_images
from readout_audit.corrections.tallies import (
    Rows,
    best,
    cross_fitted,
    f1,
    in_hindsight,
    observed,
    resampled,
    sweep_strengths,
    tally,
)
from readout_audit.errors import AuditError
from readout_audit.scores.bootstrap import Images


def rows_of(image, positive):
    image = np.array(image)
    return Rows(np.arange(len(image)), image, np.array(positive), Images(image, int(image.max()) + 1))


def test_the_sweep_is_0_to_3_in_61_steps():
    strengths = sweep_strengths()
    assert len(strengths) == 61
    assert strengths[[0, 1, 20, 30, 60]].tolist() == [0.0, 0.05, 1.0, 1.5, 3.0]


def test_answers_are_counted_per_image():
    # Image 0: a positive (yes, then no) and a negative (yes, yes); image 1: a positive (no, no).
    rows = rows_of([0, 0, 1], [True, False, True])
    yes = np.array([[True, False], [True, True], [False, False]])
    counted = tally(rows, yes, yes[:, 0])
    assert counted.tp.tolist() == [[1, 0], [0, 0]]
    assert counted.fp.tolist() == [[1, 1], [0, 0]]
    assert counted.positives.tolist() == [1, 1]
    assert counted.baseline.tolist() == [[1, 1], [0, 0]]


def test_the_best_strength_is_the_weakest_of_equals():
    assert best(np.array([[0.1, 0.7, 0.7], [np.nan, np.nan, 0.0], [np.nan, np.nan, np.nan]])).tolist() == [
        1,
        2,
        0,
    ]


def test_hindsight_takes_the_largest_f1():
    # Strength 0: F1 = 4 / (2 + 2 + 3) = 4/7; strength 1: 4 / (2 + 0 + 3) = 4/5; strength 2: 2 / (1 + 3) = 1/2.
    chosen = in_hindsight(np.array([[2.0, 2, 1]]), np.array([[2.0, 0, 0]]), np.array([3.0]))
    assert chosen.picked.tolist() == [1]
    assert f1(chosen.tp, chosen.fp, np.array([3.0])).tolist() == [4 / 5]


def test_cross_fitting_chooses_on_the_other_folds():
    # Fold 0 does best at strength 1, fold 1 at strength 0; each is given what the other likes.
    tp = np.array([[[1.0, 2.0], [2.0, 0.0]]])
    fp = np.zeros((1, 2, 2))
    chosen = cross_fitted(tp, fp, np.array([[2.0, 2.0]]))
    assert chosen.picked.tolist() == [[0, 1]]
    assert (chosen.tp.tolist(), chosen.fp.tolist()) == ([1.0], [0.0])


def brute_force(rows, yes, fold, folds, sample):
    """Choose and count by looping over drawn rows, image by image."""

    def counts(images, k):
        picked = [r for image in images for r in np.flatnonzero(rows.image == image)]
        tp = sum(yes[r, k] and rows.positive[r] for r in picked)
        fp = sum(yes[r, k] and not rows.positive[r] for r in picked)
        return tp, fp, sum(rows.positive[r] for r in picked)

    def score(tp, fp, positives):
        return 2 * tp / (tp + fp + positives) if tp + fp + positives else -1.0

    def choose(images):
        return max(range(yes.shape[1]), key=lambda k: (score(*counts(images, k)), -k))

    hindsight = choose(sample)
    fitted = [choose([i for i in sample if fold[i] != f]) for f in range(folds)]
    parts = [counts([i for i in sample if fold[i] == f], fitted[f]) for f in range(folds)]
    return hindsight, fitted, sum(p[0] for p in parts), sum(p[1] for p in parts)


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_choices_agree_with_loops_over_rows(seed):
    rng = np.random.default_rng(seed)
    image = np.sort(rng.integers(0, 5, 20))
    image[0], image[-1] = 0, 4
    rows = rows_of(image, rng.random(20) < 0.5)
    yes = rng.random((20, 3)) < 0.5
    fold = fold_of_images(rows.images, 2, seed)
    samples = observed(tally(rows, yes, yes[:, 0]), fold, 2)
    hindsight, fitted, tp, fp = brute_force(rows, yes, fold, 2, list(range(5)))
    assert samples.in_hindsight().picked[0] == hindsight
    assert samples.cross_fitted().picked[0].tolist() == fitted
    assert (samples.cross_fitted().tp[0], samples.cross_fitted().fp[0]) == (tp, fp)


def test_strengths_are_chosen_again_in_every_resample():
    rng = np.random.default_rng(5)
    rows = rows_of(np.repeat(np.arange(8), 4), rng.random(32) < 0.5)
    yes = rng.random((32, 4)) < 0.5
    fold = fold_of_images(rows.images, 4, 1)
    samples = resampled(tally(rows, yes, yes[:, 0]), fold, 4, 200, seed=3)
    weights = resampled(tally(rows, yes, yes[:, 0]), fold, 4, 200, seed=3)
    assert np.array_equal(samples.tp, weights.tp)  # one seed, one draw
    picked = samples.in_hindsight().picked
    assert len(np.unique(picked)) > 1
    scores = f1(samples.tp.sum(axis=1), samples.fp.sum(axis=1), samples.positives.sum(axis=1)[:, None])
    assert np.array_equal(scores[np.arange(200), picked], scores.max(axis=1))


def test_images_are_dealt_round_the_folds():
    fold = fold_of_images(Images(np.arange(11), 11), 5, 42)
    assert np.bincount(fold).tolist() == [3, 2, 2, 2, 2]
    assert fold.tolist() != fold_of_images(Images(np.arange(11), 11), 5, 43).tolist()
    with pytest.raises(AuditError, match="2 folds or more"):
        fold_of_images(Images(np.arange(3), 3), 1, 42)


def test_the_corrected_interval_cuts_smaller_tails():
    values = np.arange(1001) / 1000
    assert interval(values, 0.05) == pytest.approx((0.025, 0.975))
    assert interval(values, 0.05 / 10) == pytest.approx((0.0025, 0.9975))
    assert interval(np.array([np.nan, 0.5]), 0.05) == (0.5, 0.5)
    assert interval(np.array([np.nan]), 0.05) == interval(None, 0.05) == (None, None)


# Four questions about two pictures: (label yes, gap, entropy). Certainty is 1 − entropy, so the gate takes β times
# the entropy off. Without correction TP = 2, FP = 1, FN = 0, TN = 1.
SMALL = [
    ("a.jpg", True, 2.0, 0.1),
    ("a.jpg", False, 0.4, 0.5),
    ("b.jpg", True, 1.0, 0.2),
    ("b.jpg", False, -1.0, 0.5),
]


def small(folder, **more):
    records = [record(i, image, [0.0, 10 + gap, 0.0, 10.0]) for i, (image, _, gap, _) in enumerate(SMALL)]
    signals = [signal(i, image, entropy_normalised=h) for i, (image, _, _, h) in enumerate(SMALL)]
    image = np.array([0, 0, 1, 1])
    rows = Rows(np.arange(4), image, np.array([p for _, p, _, _ in SMALL]), Images(image, 2))
    block = Block("pope", "adversarial", rows, np.arange(4))
    methods: list[Correction] = [correction(name) for name in ("entropy", "uniform", "midpoint")]
    setting = Settings(sweep_strengths(3, 61), folds=2, **more)
    return list(compare(evidence(folder, records, signals), block, methods, setting))


def test_a_correction_by_hand(tmp_path):
    entropy, uniform, midpoint = small(tmp_path)
    fixed, hindsight, fitted = (one.columns for one in entropy.scored)
    # β = 1: gaps 2 − 0.1, 0.4 − 0.5, 1 − 0.2, −1 − 0.5: the false positive goes, F1 from 4/5 to 1.
    assert (fixed["tp"], fixed["fp"], fixed["tn"], fixed["fn"]) == (2, 0, 2, 0)
    assert (fixed["baseline_tp"], fixed["baseline_fp"]) == (2, 1)
    assert (fixed["yes_to_no"], fixed["no_to_yes"]) == (1, 0)
    assert fixed["delta_f1"] == pytest.approx(1 / 5)
    # The weakest β with 0.4 − 0.5β ≤ 0 is 0.8.
    assert hindsight["strength"] == pytest.approx(0.8)
    assert hindsight["delta_f1"] == pytest.approx(1 / 5)
    # Each picture's β is chosen on the other: picture b is right at β 0 already, picture a wants 0.8.
    assert sorted(fitted["fold_strengths"]) == pytest.approx([0.0, 0.8])
    assert fitted["strength"] is None
    assert (fitted["tp"], fitted["fp"]) == (2, 1)
    assert len(entropy.sweep) == 61
    assert (entropy.sweep[15]["fp"], entropy.sweep[16]["fp"]) == (1, 0)
    # Uniform at β 1 takes 0.5 off everything.
    assert uniform.scored[0].columns["fp"] == 0
    only = midpoint.scored[0].columns
    assert (only["status"], len(midpoint.scored), midpoint.sweep) == ("not_available", 1, [])
    assert only["reason"] == "column midpoint_candidate_logits is null on every question of the split"


def test_intervals_are_corrected_for_what_was_tried(tmp_path):
    entropy, _, _ = small(tmp_path, resamples=200)
    fixed = entropy.scored[0].columns
    assert fixed["tried"] == 2  # entropy and uniform; midpoint could not be tried
    assert fixed["delta_f1_low_corrected"] <= fixed["delta_f1_low"] <= fixed["delta_f1"]
    assert fixed["delta_f1_high_corrected"] >= fixed["delta_f1_high"] >= fixed["delta_f1"]
    # Samples hold picture a twice (F1 2/3 to 1), both (4/5 to 1) or b twice (1 to 1).
    assert fixed["delta_f1_low"] == 0.0
    assert fixed["delta_f1_high"] == pytest.approx(1 / 3)


def test_the_second_interval_leaves_out_a_share_of_the_tails(tmp_path):
    records, signals, _ = world(seed=1, images=20)
    image = np.repeat(np.arange(20), 6)
    rows = Rows(np.arange(120), image, np.arange(120) % 2 == 0, Images(image, 20))
    block = Block("pope", "adversarial", rows, np.arange(120))
    methods = [correction(name) for name in ("entropy", "clip_b32_code", "uniform", "vcd")]
    setting = Settings(sweep_strengths(3, 4), resamples=2000, folds=2)
    first = next(compare(evidence(tmp_path, records, signals), block, methods, setting)).scored[0]
    # clip_b32_code is tried at two strengths: five rows in all, so 1% is left outside.
    assert first.columns["tried"] == 5
    expected = np.quantile(first.gains, [0.025, 0.975, 0.005, 0.995])
    found = [first.columns[f"delta_f1_{end}"] for end in ("low", "high", "low_corrected", "high_corrected")]
    assert found == pytest.approx(expected.tolist())
    assert expected[2] < expected[0] < expected[1] < expected[3]


def test_rows_without_the_signal_are_left_out_on_both_sides(tmp_path):
    records = [record(i, image, [0.0, 10 + gap, 0.0, 10.0]) for i, (image, _, gap, _) in enumerate(SMALL)]
    signals = [signal(i, SMALL[i][0], entropy_normalised=SMALL[i][3]) for i in (0, 2, 3)]
    image = np.array([0, 0, 1, 1])
    rows = Rows(np.arange(4), image, np.array([p for _, p, _, _ in SMALL]), Images(image, 2))
    block = Block("pope", "adversarial", rows, np.arange(4))
    (found,) = compare(
        evidence(tmp_path, records, signals), block, [correction("entropy")], Settings(sweep_strengths())
    )
    fixed = found.scored[0].columns
    assert (fixed["n"], fixed["n_without_signal"]) == (3, 1)
    assert (fixed["baseline_tp"], fixed["baseline_fp"], fixed["delta_f1"]) == (2, 0, 0.0)
