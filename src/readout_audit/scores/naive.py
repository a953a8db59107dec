"""Question-level intervals and tests, shown beside the others as naive.

They take the questions for independent. Questions about one image are not, so these intervals are too narrow
and these p-values too small; they are here because papers print them.
"""

from math import sqrt
from statistics import NormalDist

from scipy.special import bdtr

from readout_audit.scores.bootstrap import LEVEL
from readout_audit.scores.confusion import Confusion


def wilson(successes: int, trials: int) -> tuple[float, float] | None:
    """Return Wilson's score interval of a proportion (Wilson 1927); None without a trial."""
    if not trials:
        return None
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    share, spread = successes / trials, z * z / trials
    centre = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * sqrt(share * (1 - share) / trials + spread / trials / 4)
    # Where all trials agree an end is 0 or 1 exactly, and rounding would leave it a hair beside.
    return centre - half if successes else 0.0, centre + half if successes < trials else 1.0


def wilson_f1(confusion: Confusion) -> tuple[float, float] | None:
    """Return Wilson's interval carried over to F1 (Lam, Gopal and Qian 2023, the indirect method).

    F1 is no proportion, but J = TP / (TP + FP + misses) is one, and F1 = 2J / (1 + J) grows with it.
    None where F1 is not defined.
    """
    if confusion.f1 is None:
        return None
    ends = wilson(confusion.tp, confusion.tp + confusion.fp + confusion.misses)
    assert ends is not None  # F1 is defined, so its denominator is not zero
    low, high = (2 * end / (1 + end) for end in ends)
    return low, high


def mcnemar(one_way: int, other_way: int) -> float | None:
    """Return the exact two-sided p-value of McNemar's test (McNemar 1947); None without a discordant pair.

    Args:
        one_way: rows that only the first readout gets right.
        other_way: rows that only the second one gets right.
    """
    discordant = one_way + other_way
    if not discordant:
        return None
    return min(1.0, 2 * float(bdtr(min(one_way, other_way), discordant, 0.5)))
