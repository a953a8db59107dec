"""F1 of many readouts and cells on the same resampled images.

The draw is that of the scores (`scores.bootstrap`): it depends on the seed and the number of images alone, so
every difference of two columns is a paired difference, and an interval here is the interval there.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readout_audit.scores.bootstrap import Floats, Images, counts_per_image, ratio, resampled_totals
from readout_audit.scores.confusion import NO, UNPARSED, YES, Codes

COLUMNS = 4
"""Counts behind one F1: TP, FP, misses, parsed rows."""

_AT_ONCE = 256
"""F1s resampled together: bounds the memory at 10,000 resamples to 80 MB."""


class Counted(NamedTuple):
    """One readout on one set of rows.

    Attributes:
        images: of the whole file.
        rows: shape (k,), indices into the file.
        labels: shape (k,), `YES` or `NO`.
        answers: shape (k,), no `ABSENT`.
    """

    images: Images
    rows: npt.NDArray[np.int64]
    labels: Codes
    answers: Codes


def image_counts(counted: Counted) -> npt.NDArray[np.int64]:
    """Return shape (images, 4), the counts of each image that F1 is made of."""
    kinds = counted.labels.astype(np.int64) * 4 + counted.answers
    cells = counts_per_image(counted.images, counted.rows, kinds, 8).reshape(-1, 2, 4)
    positives, negatives = cells[:, YES], cells[:, NO]
    parsed = cells[:, :, [YES, NO]].sum(axis=(1, 2))
    misses = positives[:, NO] + positives[:, UNPARSED]
    return np.stack([positives[:, YES], negatives[:, YES], misses, parsed], axis=1)


def f1_of_counts(counts: Floats) -> Floats:
    """Return F1 from counts on the last axis, NaN where it is 0/0 or nothing was parsed."""
    tp, fp, misses, parsed = np.moveaxis(counts, -1, 0)
    return np.where(parsed > 0, ratio(2 * tp, 2 * tp + fp + misses), np.nan)


def resampled_f1(counted: Sequence[Counted], resamples: int, seed: int) -> Floats:
    """Return shape (resamples, len(counted)): F1 of each on the same drawn images, NaN where undefined.

    Args:
        counted: over the same images, numbered alike.
        resamples: number of bootstrap samples.
        seed: of the draw.
    """
    f1 = np.empty((resamples, len(counted)))
    for start, group in _groups(counted):
        counts = np.concatenate([image_counts(one) for one in group], axis=1)
        totals = resampled_totals(counts, resamples, seed).reshape(resamples, len(group), COLUMNS)
        f1[:, start : start + len(group)] = f1_of_counts(totals)
    return f1


def _groups(counted: Sequence[Counted]) -> Iterator[tuple[int, Sequence[Counted]]]:
    """Yield consecutive groups of bounded size, each with the position of its first member."""
    for start in range(0, len(counted), _AT_ONCE):
        yield start, counted[start : start + _AT_ONCE]
