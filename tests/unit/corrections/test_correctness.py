"""AUC, the logistic model, and what a signal knows beyond the gap."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import mannwhitneyu

from readout_audit.corrections.auc import estimate, gain, place
from readout_audit.corrections.logistic import RIDGE, fit, out_of_fold


def test_auc_by_hand():
    # Positives 3 and 1, negatives 1 and 0: pairs 3>1, 3>0, 1=1, 1>0 give (1 + 1 + ½ + 1) / 4.
    placed = place(np.array([3.0, 1, 1, 0]), np.array([True, True, False, False]), np.arange(4), 4)
    assert placed.auc == 3.5 / 4
    assert placed.positives.tolist() == [1.0, 0.75, 0.0, 0.0]
    assert placed.negatives.tolist() == [0.0, 0.0, 0.75, 1.0]


def test_the_variance_by_hand():
    # One row an image (DeLong): components of positives 1 and ¾, of negatives ¾ and 1, so AUC ⅞ and
    # s10 = s01 = 2/(1·2) · (⅛² + ⅛²) = 1/32. No image has both kinds, so the variance is 1/64 + 1/64.
    placed = place(np.array([3.0, 1, 1, 0]), np.array([True, True, False, False]), np.arange(4), 4)
    half = 1.959963984540054 * (1 / 32) ** 0.5
    found = estimate(placed)
    assert (found.low, found.high) == pytest.approx((7 / 8 - half, 1.0))


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=30))
def test_auc_is_the_mann_whitney_statistic(rows):
    scores = np.array([score for score, _ in rows], dtype=float)
    positive = np.array([kind for _, kind in rows])
    placed = place(scores, positive, np.zeros(len(rows), dtype=np.int64), 1)
    if not positive.any() or positive.all():
        assert placed is None
        return
    u = mannwhitneyu(scores[positive], scores[~positive]).statistic
    assert placed.auc == pytest.approx(u / (positive.sum() * (~positive).sum()))
    assert estimate(placed).low is None  # one image: no variance between images


def clustered(seed, images=150, size=6):
    rng = np.random.default_rng(seed)
    mood = np.repeat(rng.normal(0, 1, images), size)
    image = np.repeat(np.arange(images), size)
    positive = rng.random(images * size) < 0.4
    return rng.normal(0, 1, len(image)) + 0.8 * positive + mood, positive, image


def test_clustered_error_agrees_with_a_bootstrap_over_images():
    scores, positive, image = clustered(1)
    other = scores + np.random.default_rng(2).normal(0, 1.5, len(scores))
    placed, second = (place(one, positive, image, 150) for one in (scores, other))
    rng = np.random.default_rng(3)
    single, paired = [], []
    for _ in range(400):
        rows = np.concatenate([np.arange(6) + 6 * one for one in rng.integers(0, 150, 150)])
        zeros = np.zeros(len(rows), dtype=np.int64)
        first, after = (place(one[rows], positive[rows], zeros, 1).auc for one in (scores, other))
        single.append(first)
        paired.append(after - first)
    width = 2 * 1.96
    found = estimate(placed)
    assert (found.high - found.low) / width == pytest.approx(np.std(single), rel=0.15)
    change = gain(placed, second)
    assert change.value == pytest.approx(second.auc - placed.auc)
    assert (change.high - change.low) / width == pytest.approx(np.std(paired), rel=0.15)


def test_repeating_each_row_in_its_image_does_not_narrow_the_interval():
    scores, positive, image = clustered(4, images=40, size=2)
    once = estimate(place(scores, positive, image, 40))
    thrice = estimate(place(np.tile(scores, 3), np.tile(positive, 3), np.tile(image, 3), 40))
    assert thrice == pytest.approx(once)


def test_no_difference_has_no_p():
    scores, positive, image = clustered(4, images=10, size=2)
    placed = place(scores, positive, image, 10)
    same = gain(placed, placed)
    assert (same.value, same.p) == (0.0, None)


def penalised_loss(weights, design, positive):
    odds = design @ weights
    return np.logaddexp(0, odds).sum() - odds[positive].sum() + RIDGE / 2 * (weights[1:] ** 2).sum()


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_the_fit_is_the_optimum_that_scipy_finds(seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(3, 2, (60, 2))
    positive = rng.random(60) < 1 / (1 + np.exp(-(features[:, 0] - 3)))
    positive[:2] = True, False
    model = fit(features, positive)
    design = np.column_stack([np.ones(60), (features - features.mean(axis=0)) / features.std(axis=0)])
    found = minimize(penalised_loss, np.zeros(3), args=(design, positive), tol=1e-12)
    assert [model.intercept, *model.coefficients] == pytest.approx(found.x.tolist(), abs=1e-4)
    assert model.log_odds(features) == pytest.approx(design @ found.x, abs=1e-3)


def test_separable_classes_stay_finite():
    model = fit(np.array([[0.0], [1], [2], [3]]), np.array([False, False, True, True]))
    assert 0 < model.coefficients[0] < 10


def test_a_column_that_does_not_vary_has_no_weight():
    model = fit(np.array([[1.0, 5], [2, 5], [3, 5], [4, 5]]), np.array([False, True, False, True]))
    assert model.coefficients[1] == 0.0


def test_rows_of_one_kind_fit_nothing():
    with pytest.raises(ValueError, match="both kinds"):
        fit(np.ones((2, 1)), np.array([True, True]))
    features, positive = np.arange(4.0)[:, None], np.array([True, True, False, True])
    assert out_of_fold(features, positive, np.array([0, 0, 1, 1])) is None


def test_predictions_come_from_the_other_folds():
    rng = np.random.default_rng(0)
    features, positive = rng.normal(size=(40, 1)), rng.random(40) < 0.5
    fold = np.arange(40) % 4
    predicted = out_of_fold(features, positive, fold)
    others = fold != 2
    expected = fit(features[others], positive[others]).log_odds(features[~others])
    assert predicted[~others].tolist() == expected.tolist()
