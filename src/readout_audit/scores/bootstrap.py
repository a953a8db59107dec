"""Bootstrap and permutation over images.

Questions about one image share its difficulty, so the image is what is drawn, with all its questions (POPE
asks six per split of each). A statistic of a resample is a function of counts, and the counts of all
resamples are one matrix product: (resamples, images) weights times (images, columns) counts. One draw of
weights serves every column, so splits, readouts and label sets are compared on the same resamples; cells with
the same images and seed get the same draw.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Floats = npt.NDArray[np.float64]

LEVEL = 0.95
"""Coverage of every interval."""

_CHUNK_CELLS = 2**21
"""Weights held at once: bounds the memory, whatever the number of images."""

_EXACT_IN_FLOAT32 = 2**24


class Images(NamedTuple):
    """The images of a decision file.

    Attributes:
        codes: shape (n,), the number of each row's image; images are numbered in order of name, so that the
            order of the rows does not change the draw.
        n: number of images.
    """

    codes: npt.NDArray[np.int64]
    n: int


class Interval(NamedTuple):
    """A percentile interval; the ends are None where no resample defines the statistic.

    Attributes:
        undefined: resamples in which the statistic is 0/0; they are left out.
    """

    low: float | None
    high: float | None
    undefined: int


def number_images(image: pa.ChunkedArray) -> Images | None:
    """Number the images of n rows; None where one is not known or there is none."""
    if image.null_count or not len(image):
        return None
    encoded = pc.dictionary_encode(image.combine_chunks())
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return Images(rank[encoded.indices.to_numpy()], len(order))


def counts_per_image(
    images: Images, rows: npt.NDArray[np.int64], kinds: npt.NDArray[np.int64], n_kinds: int
) -> npt.NDArray[np.int64]:
    """Return shape (images, n_kinds), how many of the given rows are of each kind.

    Args:
        images: of the whole file.
        rows: shape (k,), indices into the file.
        kinds: shape (k,), the kind of each of these rows, below `n_kinds`.
        n_kinds: number of kinds.
    """
    cells = images.codes[rows] * n_kinds + kinds
    return np.bincount(cells, minlength=images.n * n_kinds).reshape(images.n, n_kinds)


def resampled_totals(columns: npt.NDArray[Any], resamples: int, seed: int) -> Floats:
    """Return shape (resamples, columns): totals of each column over images drawn with replacement.

    Args:
        columns: shape (images, columns), counts.
        resamples: number of bootstrap samples.
        seed: of the draw, which depends on the seed and the number of images alone.
    """
    return _products(_weights(columns.shape[0], resamples, seed), columns, resamples)


def swapped_totals(columns: npt.NDArray[Any], resamples: int, seed: int) -> Floats:
    """Return shape (resamples, columns): totals of each column over images chosen by fair coins.

    The draw of a permutation test that exchanges two readouts image by image.
    """
    return _products(_coins(columns.shape[0], resamples, seed), columns, resamples)


def _weights(images: int, resamples: int, seed: int) -> Iterator[npt.NDArray[np.float32]]:
    """Yield the times each image is drawn, in blocks of shape (some resamples, images)."""
    rng = np.random.default_rng([seed, 0])
    for size in _block_sizes(images, resamples):
        drawn = rng.integers(0, images, size=(size, images))
        drawn += np.arange(size)[:, None] * images
        times = np.bincount(drawn.ravel(), minlength=size * images)
        yield times.astype(np.float32).reshape(size, images)


def _coins(images: int, resamples: int, seed: int) -> Iterator[npt.NDArray[np.float32]]:
    """Yield fair coins, 0 or 1, in blocks of shape (some resamples, images)."""
    rng = np.random.default_rng([seed, 1])
    words = (images + 63) // 64  # whole words, or the stream would depend on where a block ends
    for size in _block_sizes(images, resamples):
        drawn = rng.integers(0, 2**64, size=(size, words), dtype=np.uint64).astype("<u8")
        yield np.unpackbits(drawn.view(np.uint8), axis=1, count=images).astype(np.float32)


def _block_sizes(images: int, resamples: int) -> Iterator[int]:
    """Yield how many resamples to hold at a time."""
    size = max(1, _CHUNK_CELLS // max(images, 1))
    for start in range(0, resamples, size):
        yield min(size, resamples - start)


def _products(blocks: Iterator[npt.NDArray[np.float32]], columns: npt.NDArray[Any], resamples: int) -> Floats:
    """Multiply blocks of weights into the columns; the results are whole numbers, exactly."""
    images = columns.shape[0]
    # Sums of whole numbers below 2**24 are exact in float32 in any order of summation, and twice as fast.
    largest = int(np.abs(columns).max(initial=0)) * images
    kind: Any = np.float32 if largest < _EXACT_IN_FLOAT32 else np.float64
    counts: npt.NDArray[Any] = np.ascontiguousarray(columns, dtype=kind)
    totals = np.empty((resamples, columns.shape[1]))
    done = 0
    for block in blocks:
        totals[done : done + len(block)] = block.astype(kind, copy=False) @ counts
        done += len(block)
    return totals


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return the elementwise ratio, NaN where it is 0/0."""
    values: Floats = np.full(denominator.shape, np.nan)
    np.divide(numerator, denominator, out=values, where=denominator > 0)
    return values


def percentile_intervals(statistics: Floats) -> list[Interval]:
    """Return one interval per column of shape (resamples, columns); NaN marks an undefined resample."""
    undefined = np.isnan(statistics).sum(axis=0)
    tails = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    ends = np.full((2, statistics.shape[1]), np.nan)
    whole = undefined == 0
    if len(statistics) and whole.any():
        ends[:, whole] = np.quantile(statistics[:, whole], tails, axis=0)
    for column in np.flatnonzero(~whole & (undefined < len(statistics))):
        defined = statistics[~np.isnan(statistics[:, column]), column]
        ends[:, column] = np.quantile(defined, tails)
    return [
        Interval(_known(low), _known(high), int(missing))
        for low, high, missing in zip(*ends, undefined, strict=True)
    ]


def _known(value: float) -> float | None:
    """Return a number as it is, NaN as None."""
    return None if np.isnan(value) else float(value)
