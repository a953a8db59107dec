"""Intervals of group means, their difference and d over images drawn with replacement.

The moments of both groups are summed within each image; every resample is then a weighted sum of images.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readout_audit.scores.bootstrap import Images, percentile_intervals, ratio, resampled_totals

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Weights(NamedTuple):
    """How often each image is drawn in each resample.

    Attributes:
        image: shape (m,), the image of each row.
        times: shape (resamples, images).
    """

    image: npt.NDArray[np.int64]
    times: Floats

    @property
    def images(self) -> int:
        """Number of images."""
        return int(self.times.shape[1])


def draw(images: Images | None, resamples: int, seed: int) -> Weights | None:
    """Draw images; None without resamples or known images. The draw is that of the scores' intervals."""
    if images is None or not resamples:
        return None
    return Weights(images.codes, resampled_totals(np.eye(images.n, dtype=np.int64), resamples, seed))


class Interval(NamedTuple):
    """Both ends; None where no resample defines the statistic."""

    low: float | None
    high: float | None


UNKNOWN = Interval(None, None)


def moments(values: Floats, group: Bools, weights: Weights) -> Floats:
    """Return shape (resamples, 3, w): count, sum and sum of squares of a group in each resample.

    Args:
        values: shape (m, w), w quantities, finite in the group; best centred near their mean.
        group: shape (m,).
        weights: the draw.
    """
    width = values.shape[1]
    powers = np.concatenate([np.ones((int(group.sum()), 1)), values[group], values[group] ** 2], axis=1)
    per_image = np.zeros((weights.images, 1 + 2 * width))
    np.add.at(per_image, weights.image[group], powers)
    totals = weights.times @ per_image
    counts = np.repeat(totals[:, :1], width, axis=1)
    return np.stack([counts, totals[:, 1 : 1 + width], totals[:, 1 + width :]], axis=1)


def _mean(group: Floats) -> Floats:
    """Return group means of `moments`, shape (resamples, w)."""
    return ratio(group[:, 1], group[:, 0])


def _squares(group: Floats) -> Floats:
    """Return sums of squared deviations from the group's mean, shape (resamples, w)."""
    return np.maximum(group[:, 2] - group[:, 1] * np.nan_to_num(_mean(group)), 0.0)


def differences(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return mean a − mean b and Cohen's d in each resample, each shape (resamples, w), NaN where undefined."""
    difference = _mean(a) - _mean(b)
    freedom = a[:, 0] + b[:, 0] - 2
    spread = np.sqrt(ratio(_squares(a) + _squares(b), freedom))
    enough = (a[:, 0] >= 2) & (b[:, 0] >= 2) & (spread > 0)
    d = np.full(difference.shape, np.nan)
    np.divide(difference, spread, out=d, where=enough)
    return difference, d


def intervals(statistics: Floats) -> list[Interval]:
    """Return the 95% percentile interval of each column of shape (resamples, w)."""
    return [Interval(one.low, one.high) for one in percentile_intervals(statistics)]


def mean_interval(values: Floats, group: Bools, weights: Weights | None) -> Interval:
    """Return the interval of a group's mean."""
    if weights is None or not group.any():
        return UNKNOWN
    return intervals(_mean(moments(values[:, None], group, weights)))[0]


class Compared(NamedTuple):
    """Intervals of the difference of two means and of d."""

    difference: Interval
    d: Interval


def compare_groups(values: Floats, a: Bools, b: Bools, weights: Weights | None) -> Compared:
    """Return the intervals of mean a − mean b and of Cohen's d over images."""
    if weights is None or not a.any() or not b.any():
        return Compared(UNKNOWN, UNKNOWN)
    centred = (values - values[a | b].mean())[:, None]
    both = differences(moments(centred, a, weights), moments(centred, b, weights))
    difference, d = (intervals(one)[0] for one in both)
    return Compared(difference, d)
