"""The attention effect for every window of layers: is "layers 14-20" a finding or a choice?"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from readout_audit.probe.clustered import Weights, differences, intervals, moments
from readout_audit.probe.statistics import cohens_d

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_AT_ONCE = 64
"""Windows resampled together: bounds the memory."""


def window_means(by_layer: Floats) -> tuple[list[tuple[int, int]], Floats]:
    """Return every window [start, end) and the mean over its layers, shape (m, windows).

    Args:
        by_layer: shape (m, layers).
    """
    layers = by_layer.shape[1]
    sums = np.concatenate([np.zeros((len(by_layer), 1)), np.cumsum(by_layer, axis=1)], axis=1)
    windows = [(start, end) for start in range(layers) for end in range(start + 1, layers + 1)]
    means = [(sums[:, end] - sums[:, start]) / (end - start) for start, end in windows]
    return windows, np.stack(means, axis=1) if means else np.empty((len(by_layer), 0))


def window_effects(by_layer: Floats, a: Bools, b: Bools, weights: Weights | None) -> Iterator[dict[str, Any]]:
    """Yield start, end and Cohen's d of a against b, with its interval over images, for every window.

    Args:
        by_layer: shape (m, layers), finite in both groups.
        a: shape (m,), the first group.
        b: shape (m,), the second group.
        weights: the draw of images, None for no intervals.
    """
    windows, means = window_means(by_layer)
    for first in range(0, len(windows), _AT_ONCE):
        some = windows[first : first + _AT_ONCE]
        values = means[:, first : first + _AT_ONCE]
        ends: list[tuple[float | None, float | None]] = [(None, None)] * len(some)
        if weights is not None and a.any() and b.any():
            centred = values - values[a | b].mean(axis=0)
            _, d = differences(moments(centred, a, weights), moments(centred, b, weights))
            ends = [(one.low, one.high) for one in intervals(d)]
        for (start, end), column, (low, high) in zip(some, values.T, ends, strict=True):
            effect = cohens_d(column[a], column[b])
            yield {"start": start, "end": end, "d": effect, "d_low": low, "d_high": high}
