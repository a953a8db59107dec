"""The statistics of Appendix F.3: Mann-Whitney U, Cohen's d with pooled SD, a percentile bootstrap.

Undefined is None, never zero. Those of this module take questions for independent, as the paper does; `clustered`
has the intervals over images.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import mannwhitneyu

Floats = npt.NDArray[np.float64]

RESAMPLES, SEED = 10_000, 42
"""The paper's bootstrap: 10,000 resamples of numpy's default_rng(42)."""

PERCENTILES = (2.5, 97.5)


class Summary(NamedTuple):
    """One group: mean and median are None where it is empty, the sample SD (divisor n − 1) below two values."""

    n: int
    mean: float | None
    sd: float | None
    median: float | None


def summarise(values: Floats) -> Summary:
    """Return size, mean, sample SD and median of shape (n,)."""
    n = len(values)
    return Summary(
        n,
        float(values.mean()) if n else None,
        float(values.std(ddof=1)) if n > 1 else None,
        float(np.median(values)) if n else None,
    )


def pooled_sd(n_a: int, sd_a: float | None, n_b: int, sd_b: float | None) -> float | None:
    """Return sqrt(((n_a − 1) sd_a² + (n_b − 1) sd_b²) / (n_a + n_b − 2)); None where an SD is."""
    if sd_a is None or sd_b is None:
        return None
    return sqrt(((n_a - 1) * sd_a**2 + (n_b - 1) * sd_b**2) / (n_a + n_b - 2))


def cohens_d(a: Floats, b: Floats) -> float | None:
    """Return (mean a − mean b) / pooled SD; None below two values or without any spread."""
    first, second = summarise(a), summarise(b)
    spread = pooled_sd(first.n, first.sd, second.n, second.sd)
    if not spread or first.mean is None or second.mean is None:
        return None
    return (first.mean - second.mean) / spread


class RankTest(NamedTuple):
    """U counts the pairs in which the value of the first group is larger, ties as one half."""

    u: float
    p: float


def mann_whitney(a: Floats, b: Floats) -> RankTest | None:
    """Return the two-sided Mann-Whitney U test; None where a group is empty.

    Exact where a group has at most eight values and nothing is tied; else normal, corrected for ties and
    continuity (scipy's default, which the authors' script calls).
    """
    if not len(a) or not len(b):
        return None
    result = mannwhitneyu(a, b, alternative="two-sided")
    return RankTest(float(result.statistic), float(result.pvalue))


class Ends(NamedTuple):
    """Both ends of an interval."""

    low: float
    high: float


def bootstrap_difference(a: Floats, b: Floats, resamples: int = RESAMPLES, seed: int = SEED) -> Ends | None:
    """Return the percentile interval of mean a − mean b, drawn as the authors' script draws it.

    Each resample draws from a, then from b, from one stream (analysis/diagnostic_stats.py at 08a10ab), so the
    same values give the same interval to the last digit. None below two values, or without resamples.
    """
    if len(a) < 2 or len(b) < 2 or not resamples:
        return None
    rng = np.random.default_rng(seed)
    differences = np.empty(resamples)
    for i in range(resamples):
        first = a[rng.integers(0, len(a), size=len(a))].mean()
        differences[i] = first - b[rng.integers(0, len(b), size=len(b))].mean()
    low, high = np.percentile(differences, PERCENTILES)
    return Ends(float(low), float(high))


def bonferroni(p: float, tests: int) -> float:
    """Return min(1, tests · p)."""
    return min(1.0, tests * p)
