"""An effect between two groups at equal |logit gap|: is the signal more than another look at confidence?

The answers are put into strata of |gap|, cut at quantiles of the smaller group; within a stratum the groups are
alike in |gap|. The effect is the mean of the strata's differences, weighted by the smaller group's rows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from readout_audit.probe.clustered import UNKNOWN, Interval, Weights, intervals

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

STRATA = 20


@dataclass(frozen=True)
class Matched:
    """An effect within strata of |gap|.

    Attributes:
        strata: strata that hold both groups.
        n_a, n_b: rows in these strata.
        difference: weighted mean of mean a − mean b.
        interval: of the difference, images resampled, strata as they are.
        gap_before: mean |gap| of a minus that of b, unmatched.
        gap_after: the same within strata; what is left of the imbalance.
    """

    strata: int
    n_a: int
    n_b: int
    difference: float
    interval: Interval
    gap_before: float
    gap_after: float


def strata_of(gap: Floats, a: Bools, b: Bools, strata: int = STRATA) -> npt.NDArray[np.int64]:
    """Return each row's stratum of |gap|, shape (m,), cut at quantiles of the smaller group (a where equal)."""
    smaller = gap[a] if a.sum() <= b.sum() else gap[b]
    cuts = np.unique(np.quantile(smaller, np.arange(1, strata) / strata))
    return np.searchsorted(cuts, gap, side="right").astype(np.int64)


def match(
    values: Floats, gap: Floats, a: Bools, b: Bools, weights: Weights | None, strata: int = STRATA
) -> Matched | None:
    """Return the effect of a against b within strata of |gap|; None where no stratum holds both.

    Args:
        values: shape (m,), finite in both groups.
        gap: shape (m,), |logit gap|.
        a: shape (m,), the first group.
        b: shape (m,), the second group.
        weights: the draw of images, None for no interval.
        strata: how many to cut.
    """
    if not a.any() or not b.any():
        return None
    stratum = strata_of(gap, a, b, strata)
    smaller_is_a = bool(a.sum() <= b.sum())
    sizes, sums = _per_stratum(values, stratum, (a, b))
    _, gap_sums = _per_stratum(gap, stratum, (a, b))
    both = (sizes[0] > 0) & (sizes[1] > 0)
    if not both.any():
        return None
    return Matched(
        strata=int(both.sum()),
        n_a=int(sizes[0][both].sum()),
        n_b=int(sizes[1][both].sum()),
        difference=float(_effect(sizes[:, None], sums[:, None], smaller_is_a)[0]),
        interval=_interval(values, stratum, a, b, weights, smaller_is_a),
        gap_before=float(gap[a].mean() - gap[b].mean()),
        gap_after=float(_effect(sizes[:, None], gap_sums[:, None], smaller_is_a)[0]),
    )


def _per_stratum(
    values: Floats, stratum: npt.NDArray[np.int64], groups: tuple[Bools, Bools]
) -> tuple[Floats, Floats]:
    """Return counts and sums by group and stratum, each shape (2, strata)."""
    width = int(stratum.max()) + 1
    sizes = [np.bincount(stratum[one], minlength=width).astype(np.float64) for one in groups]
    sums = [np.bincount(stratum[one], weights=values[one], minlength=width) for one in groups]
    return np.stack(sizes), np.stack(sums).astype(np.float64)


def _effect(sizes: Floats, sums: Floats, smaller_is_a: bool) -> Floats:
    """Return the weighted mean difference of each sample, NaN where no stratum holds both groups.

    Args:
        sizes: shape (2, samples, strata).
        sums: the same shape.
        smaller_is_a: whose rows weigh the strata.
    """
    both = (sizes > 0).all(axis=0)
    means = np.divide(sums, sizes, out=np.zeros(sums.shape), where=both)
    weight = np.where(both, sizes[0 if smaller_is_a else 1], 0.0)
    total = weight.sum(axis=1)
    effect = np.full(total.shape, np.nan)
    np.divide((weight * (means[0] - means[1])).sum(axis=1), total, out=effect, where=total > 0)
    return effect


def _interval(
    values: Floats,
    stratum: npt.NDArray[np.int64],
    a: Bools,
    b: Bools,
    weights: Weights | None,
    smaller_is_a: bool,
) -> Interval:
    """Return the interval of the effect over images; the strata keep their cuts."""
    if weights is None:
        return UNKNOWN
    width = int(stratum.max()) + 1
    sizes, sums = [], []
    for group in (a, b):
        per_image = np.zeros((2, weights.images, width))
        place = (weights.image[group], stratum[group])
        np.add.at(per_image[0], place, 1.0)
        np.add.at(per_image[1], place, values[group])
        sizes.append(weights.times @ per_image[0])
        sums.append(weights.times @ per_image[1])
    return intervals(_effect(np.stack(sizes), np.stack(sums), smaller_is_a)[:, None])[0]
