"""Area under the ROC curve with questions clustered by image.

The variance is that of Obuchowski (1997, Biometrics 53:567): the structural components of DeLong et al. (1988)
are summed within each image before they are squared, so that questions about one image count as one draw.
"""

from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from readout_audit.scores.bootstrap import LEVEL

Floats = npt.NDArray[np.float64]

_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


class Placed(NamedTuple):
    """An AUC and what its variance is made of.

    Attributes:
        auc: P(score of a positive > score of a negative) + half of P(equal).
        positives, negatives: shape (images,), sums of the structural components within each image.
        n_positive, n_negative: shape (images,), rows of each kind.
    """

    auc: float
    positives: Floats
    negatives: Floats
    n_positive: Floats
    n_negative: Floats


class Estimate(NamedTuple):
    """A value with its 95% interval; `p` is two-sided, of no difference. None where undefined."""

    value: float
    low: float | None
    high: float | None
    p: float | None


def place(
    scores: Floats, positive: npt.NDArray[np.bool_], image: npt.NDArray[np.int64], images: int
) -> Placed | None:
    """Return the AUC of scores, None where there is no positive or no negative.

    Args:
        scores: shape (n,), finite.
        positive: shape (n,).
        image: shape (n,), below `images`.
        images: number of images.
    """
    n_positive = np.bincount(image[positive], minlength=images).astype(np.float64)
    n_negative = np.bincount(image[~positive], minlength=images).astype(np.float64)
    if not n_positive.sum() or not n_negative.sum():
        return None
    ranks = rankdata(scores)
    # Share of the other kind that each row is placed beyond, ties as one half (midranks).
    above = (ranks[positive] - rankdata(scores[positive])) / n_negative.sum()
    below = 1 - (ranks[~positive] - rankdata(scores[~positive])) / n_positive.sum()
    return Placed(
        float(above.mean()),
        np.bincount(image[positive], weights=above, minlength=images).astype(np.float64),
        np.bincount(image[~positive], weights=below, minlength=images).astype(np.float64),
        n_positive,
        n_negative,
    )


def estimate(placed: Placed) -> Estimate:
    """Return an AUC with its interval, cut to [0, 1]; p is of its being one half."""
    error = _standard_error(placed, *_deviations(placed))
    if error is None:
        return Estimate(placed.auc, None, None, None)
    low, high = placed.auc - _Z * error, placed.auc + _Z * error
    return Estimate(placed.auc, max(0.0, low), min(1.0, high), _p_value(placed.auc - 0.5, error))


def gain(first: Placed, second: Placed) -> Estimate:
    """Return the AUC of `second` minus that of `first`, both of the same rows, with the paired interval."""
    pairs = zip(_deviations(second), _deviations(first), strict=True)
    positives, negatives = (after - before for after, before in pairs)
    value = second.auc - first.auc
    error = _standard_error(first, positives, negatives)
    if error is None:
        return Estimate(value, None, None, None)
    return Estimate(value, value - _Z * error, value + _Z * error, _p_value(value, error))


def _deviations(placed: Placed) -> tuple[Floats, Floats]:
    """Return each image's sum of components minus what it would be at the AUC."""
    return (
        placed.positives - placed.n_positive * placed.auc,
        placed.negatives - placed.n_negative * placed.auc,
    )


def _standard_error(placed: Placed, positives: Floats, negatives: Floats) -> float | None:
    """Return the clustered standard error; None where fewer than two images have rows of a kind."""
    m, n = placed.n_positive.sum(), placed.n_negative.sum()
    images_m, images_n = int((placed.n_positive > 0).sum()), int((placed.n_negative > 0).sum())
    images = int(((placed.n_positive > 0) | (placed.n_negative > 0)).sum())
    if min(images_m, images_n) < 2:
        return None
    s10 = images_m / ((images_m - 1) * m) * float(positives @ positives)
    s01 = images_n / ((images_n - 1) * n) * float(negatives @ negatives)
    s11 = images / (images - 1) * float(positives @ negatives)
    variance = s10 / m + s01 / n + 2 * s11 / (m * n)
    # The covariance term can outweigh the others when a few images hold everything.
    return sqrt(variance) if variance >= 0 else None


def _p_value(difference: float, error: float) -> float | None:
    """Return the two-sided p-value of a difference from 0; None where there is neither difference nor error."""
    if not error:
        return None if not difference else 0.0
    return 2 * NormalDist().cdf(-abs(difference) / error)
