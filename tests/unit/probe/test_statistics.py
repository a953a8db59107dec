"""The statistics of Appendix F.3 by hand, against scipy, and on the published numbers' own arithmetic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from readout_audit.probe.clustered import Weights, compare_groups, draw, mean_interval
from readout_audit.probe.matching import match, strata_of
from readout_audit.probe.statistics import (
    bonferroni,
    bootstrap_difference,
    cohens_d,
    mann_whitney,
    pooled_sd,
    summarise,
)
from readout_audit.probe.windows import window_effects, window_means
from readout_audit.scores.bootstrap import Images

A, B = np.array([1.0, 2, 3]), np.array([2.0, 4])


def test_a_group_by_hand():
    assert summarise(A) == (3, 2.0, 1.0, 2.0)
    assert summarise(np.array([5.0])) == (1, 5.0, None, 5.0)
    assert summarise(np.array([])) == (0, None, None, None)


def test_cohens_d_by_hand():
    # Variances 1 and 2; pooled (2·1 + 1·2) / 3 = 4/3; d = (2 − 3) / sqrt(4/3).
    assert pooled_sd(3, 1.0, 2, 2**0.5) == pytest.approx((4 / 3) ** 0.5)
    assert cohens_d(A, B) == pytest.approx(-((3 / 4) ** 0.5))
    assert cohens_d(A, np.array([1.0])) is None
    assert cohens_d(np.ones(3), np.ones(3)) is None


def test_the_papers_pooled_sd_and_d():
    # Table 9: attention 0.0738 (SD 0.0142, n 2490) against 0.0801 (0.0128, 510); the paper prints 0.0140 and −0.46.
    spread = pooled_sd(2490, 0.0142, 510, 0.0128)
    assert round(spread, 4) == 0.0140
    # The means are rounded to four decimals, so d is known to ±0.01.
    assert (0.0738 - 0.0801) / spread == pytest.approx(-0.46, abs=0.011)


def test_mann_whitney_by_hand():
    # Pairs of A beyond B: 3 beyond 2, and 2 equal to 2: U = 1 + ½.
    assert mann_whitney(A, B).u == 1.5
    # Without ties and with few values the test is exact: of the 10 ways to place {1, 2} among five, one is as low,
    # and one as high: p = 2/10.
    assert mann_whitney(np.array([1.0, 2]), np.array([3.0, 4, 5])) == (0.0, pytest.approx(0.2))
    assert mann_whitney(A, np.array([])) is None


def test_mann_whitney_of_many_tied_values_is_the_normal_one():
    # n = 10 each; values 0 and 1, six ones in a, two in b. U = pairs (1, 0) 6·8 + ½ (6·2 + 4·8) = 70.
    a, b = np.repeat([1.0, 0.0], [6, 4]), np.repeat([1.0, 0.0], [2, 8])
    n, ties = 20, 12**3 - 12 + 8**3 - 8
    sd = (100 / 12 * (n + 1 - ties / (n * (n - 1)))) ** 0.5
    z = (70 - 50 - 0.5) / sd
    assert mann_whitney(a, b) == (70.0, pytest.approx(2 * stats.norm.sf(z)))


def test_the_bootstrap_draws_as_the_authors_do():
    rng = np.random.default_rng(42)
    differences = []
    for _ in range(50):
        first = rng.choice(A, size=3, replace=True)
        second = rng.choice(B, size=2, replace=True)
        differences.append(first.mean() - second.mean())
    expected = np.percentile(differences, [2.5, 97.5])
    assert bootstrap_difference(A, B, resamples=50) == pytest.approx(tuple(expected), abs=0)
    assert bootstrap_difference(A, np.array([1.0]), resamples=50) is None
    assert bootstrap_difference(A, B, resamples=0) is None


def test_the_bootstrap_cuts_two_and_a_half_per_cent_off_each_end():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=40), rng.normal(size=30)
    low, high = bootstrap_difference(a, b, resamples=4000)
    # The interval of a mean difference of so many values is about 1.96 standard errors either way.
    error = (a.var() / 40 + b.var() / 30) ** 0.5
    assert (high - low) / 2 == pytest.approx(1.96 * error, rel=0.05)


def test_bonferroni():
    assert bonferroni(0.01, 7) == pytest.approx(0.07)
    assert bonferroni(0.2, 7) == 1.0


def test_strata_are_quantiles_of_the_smaller_group():
    gap = np.array([1.0, 2, 3, 4, 0, 10, 2.5])
    a = np.array([True] * 4 + [False] * 3)
    # b is smaller: 0, 2.5, 10, whose median 2.5 parts two strata.
    assert strata_of(gap, a, ~a, strata=2).tolist() == [0, 0, 1, 1, 0, 1, 1]


def test_matching_by_hand():
    # Equally many, so a counts as the smaller: two strata cut at its median 0.5, {a 5; b 2} and {a 7, 1; b 3, 4}.
    gap = np.array([0.0, 0.5, 5.0, 0.2, 1.0, 3.0])
    values = np.array([5.0, 7, 1, 2, 3, 4])
    a = np.array([True, True, True, False, False, False])
    found = match(values, gap, a, ~a, None, strata=2)
    # Weighted by a: 1 row at 5 − 2 = 3, 2 rows at 4 − 3.5 = ½.
    assert found.difference == pytest.approx((3 + 2 * 0.5) / 3)
    assert (found.strata, found.n_a, found.n_b) == (2, 3, 3)
    assert found.gap_before == pytest.approx((0 + 0.5 + 5) / 3 - (0.2 + 1 + 3) / 3)
    assert found.gap_after == pytest.approx(((0 - 0.2) + 2 * (2.75 - 2)) / 3)


def test_an_effect_that_is_only_the_gap_vanishes_when_matched():
    rng = np.random.default_rng(0)
    gap = np.concatenate([rng.uniform(0, 4, 4000), rng.uniform(0, 2, 1000)])
    wrong = np.arange(5000) >= 4000
    values = gap + rng.normal(0, 0.1, 5000)
    found = match(values, gap, ~wrong, wrong, None)
    assert abs(values[~wrong].mean() - values[wrong].mean()) > 0.9
    assert abs(found.difference) < 0.08
    assert abs(found.gap_after) < 0.08


def test_no_stratum_with_both_groups():
    gap = np.array([0.0, 0.1, 5.0, 6.0])
    a = np.array([True, True, False, False])
    assert match(np.ones(4), gap, a, ~a, None, strata=2) is not None  # the end strata are open
    assert match(np.ones(4), gap, a, np.zeros(4, dtype=bool), None) is None


def every_pair_of_images():
    """Both images once, the first twice, the second twice: a draw that can be followed by hand."""
    return np.array([[1.0, 1], [2, 0], [0, 2]])


def test_image_intervals_by_hand():
    # Image 0: a 1, 3, b 2; image 1: a 5, b 2, 4.
    values = np.array([1.0, 3, 2, 5, 2, 4])
    a = np.array([True, True, False, True, False, False])
    weights = Weights(np.array([0, 0, 0, 1, 1, 1]), every_pair_of_images())
    # mean a − mean b: 3 − 8/3, 2 − 2, 5 − 3. The interval interpolates between the sorted three.
    expected = np.quantile([1 / 3, 0, 2], [0.025, 0.975])
    found = compare_groups(values, a, ~a, weights)
    assert found.difference == pytest.approx(tuple(expected))
    assert mean_interval(values, a, weights) == pytest.approx(tuple(np.quantile([3, 2, 5], [0.025, 0.975])))
    # d: pooled variances (8 + 8/3)/4, (4 + 0)/4 of a 1, 3, 1, 3 against b 2, 2, and (0 + 4)/4.
    d = [(1 / 3) / (32 / 3 / 4) ** 0.5, 0.0, 2 / 1.0]
    assert found.d == pytest.approx(tuple(np.quantile(d, [0.025, 0.975])))


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_resampled_effects_agree_with_resampled_rows(seed):
    rng = np.random.default_rng(seed)
    image = np.arange(30) % 6
    values, a = rng.normal(3, 1, 30), rng.random(30) < 0.5
    images = Images(image, 6)
    weights = draw(images, 40, seed)
    expected = []
    for times in weights.times.astype(int):
        rows = np.repeat(np.arange(30), times[image])
        first, second = values[rows][a[rows]], values[rows][~a[rows]]
        expected.append(cohens_d(first, second) if len(first) and len(second) else None)
    defined = [one for one in expected if one is not None]
    if defined:
        assert compare_groups(values, a, ~a, weights).d == pytest.approx(
            tuple(np.quantile(defined, [0.025, 0.975])), abs=1e-9
        )


def test_no_images_no_interval():
    assert draw(None, 100, 1) is None
    assert draw(Images(np.zeros(3, dtype=np.int64), 1), 0, 1) is None
    assert compare_groups(A, A > 1, A <= 1, None) == ((None, None), (None, None))


def test_windows_by_hand():
    windows, means = window_means(np.array([[1.0, 2, 6]]))
    assert windows == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert means.tolist() == [[1, 1.5, 3, 2, 4, 6]]


def test_every_window_has_its_own_effect():
    rng = np.random.default_rng(1)
    by_layer = rng.normal(size=(40, 3))
    a = np.arange(40) < 25
    by_layer[a, 1] += 3
    found = {(row["start"], row["end"]): row for row in window_effects(by_layer, a, ~a, None)}
    assert len(found) == 6
    assert found[1, 3]["d"] == pytest.approx(
        cohens_d(by_layer[a, 1:3].mean(axis=1), by_layer[~a, 1:3].mean(axis=1))
    )
    assert max(found.values(), key=lambda row: row["d"])["start"] == 1
    weights = draw(Images(np.arange(40) % 10, 10), 50, 0)
    with_ends = list(window_effects(by_layer, a, ~a, weights))
    assert all(row["d_low"] < row["d"] < row["d_high"] for row in with_ends)
