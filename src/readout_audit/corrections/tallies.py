"""Counting a correction at many strengths at once, by image, and choosing a strength.

F1 of a set of images is 2TP / (TP + FP + P), so true and false positives per image and strength are all that a
score, a choice or a resample needs.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readout_audit.corrections.evidence import Floats
from readout_audit.scores.bootstrap import Images, ratio, resampled_totals

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

STOP, STEPS = 3.0, 61
"""The sweep: strengths from 0 to 3 in 61 steps of 0.05."""


def sweep_strengths(stop: float = STOP, steps: int = STEPS) -> Floats:
    """Return `steps` strengths from 0 to `stop`, evenly spaced."""
    return np.arange(steps) * stop / max(steps - 1, 1)


class Rows(NamedTuple):
    """The labelled rows of one split that can be scored.

    Attributes:
        question: shape (m,), each row's question among the n of the evidence.
        image: shape (m,), each row's image among all images of the file.
        positive: shape (m,), whether its label is yes.
        images: the images of the file.
    """

    question: Ints
    image: Ints
    positive: Bools
    images: Images

    def only(self, kept: Bools) -> "Rows":
        """Return the rows that `kept`, shape (m,), marks."""
        return Rows(self.question[kept], self.image[kept], self.positive[kept], self.images)

    @property
    def positives(self) -> int:
        """Rows whose label is yes."""
        return int(self.positive.sum())


class Tallies(NamedTuple):
    """Answers yes per image, at k strengths and at the baseline.

    Attributes:
        tp, fp: shape (images, k), rows answered yes, by label.
        positives: shape (images,), rows whose label is yes.
        baseline: shape (images, 2), TP and FP without correction.
    """

    tp: Ints
    fp: Ints
    positives: Ints
    baseline: Ints


def tally(rows: Rows, yes: Bools, baseline: Bools) -> Tallies:
    """Count answers per image.

    Args:
        rows: m rows.
        yes: shape (m, k), answers at each strength.
        baseline: shape (m,), answers without correction.
    """
    counted = np.concatenate([yes, baseline[:, None], np.ones((len(baseline), 1), dtype=bool)], axis=1)
    by_label = []
    for label in (rows.positive, ~rows.positive):
        sums = np.zeros((rows.images.n, counted.shape[1]), dtype=np.int64)
        np.add.at(sums, rows.image[label], counted[label].astype(np.int64))
        by_label.append(sums)
    positive, negative = by_label
    return Tallies(
        tp=positive[:, :-2],
        fp=negative[:, :-2],
        positives=positive[:, -1],
        baseline=np.stack([positive[:, -2], negative[:, -2]], axis=1),
    )


def f1(tp: Floats, fp: Floats, positives: Floats) -> Floats:
    """Return 2TP / (TP + FP + P), NaN where that is 0/0."""
    return ratio(2 * tp, tp + fp + positives)


def best(scores: Floats) -> Ints:
    """Return the index of the largest F1 along the last axis; the first (weakest) of several.

    An undefined F1 is never the largest; where none is defined it is the first.
    """
    return np.asarray(np.where(np.isnan(scores), -1.0, scores).argmax(axis=-1))


class Chosen(NamedTuple):
    """Counts after the strength was chosen, in each of b samples.

    Attributes:
        picked: shape (b,) or (b, folds), which strengths.
        tp, fp: shape (b,).
    """

    picked: Ints
    tp: Floats
    fp: Floats


def in_hindsight(tp: Floats, fp: Floats, positives: Floats) -> Chosen:
    """Choose the strength that is best on the very rows it is scored on.

    Args:
        tp: shape (b, k), true positives of b samples at k strengths.
        fp: shape (b, k), false positives.
        positives: shape (b,).
    """
    index = best(f1(tp, fp, positives[:, None]))
    rows = np.arange(len(index))
    return Chosen(index, tp[rows, index], fp[rows, index])


def cross_fitted(tp: Floats, fp: Floats, positives: Floats) -> Chosen:
    """Choose each fold's strength on the other folds, and add the folds up.

    Args:
        tp: shape (b, folds, k), true positives of b samples by fold at k strengths.
        fp: shape (b, folds, k), false positives.
        positives: shape (b, folds).
    """
    others = [counts.sum(axis=1, keepdims=True) - counts for counts in (tp, fp, positives[:, :, None])]
    index = best(f1(*others))
    kept = [np.take_along_axis(counts, index[:, :, None], axis=2).sum(axis=(1, 2)) for counts in (tp, fp)]
    return Chosen(index, *kept)


class Samples(NamedTuple):
    """Counts of b samples of images, split by fold.

    Attributes:
        tp, fp: shape (b, folds, k).
        positives: shape (b, folds).
        baseline: shape (b, 2), TP and FP.
    """

    tp: Floats
    fp: Floats
    positives: Floats
    baseline: Floats

    @property
    def baseline_f1(self) -> Floats:
        """F1 without correction, shape (b,)."""
        return f1(self.baseline[:, 0], self.baseline[:, 1], self.positives.sum(axis=1))

    def gain(self, chosen: Chosen) -> Floats:
        """Return F1 after a choice minus F1 without correction, shape (b,)."""
        return f1(chosen.tp, chosen.fp, self.positives.sum(axis=1)) - self.baseline_f1

    def at(self, index: int) -> Chosen:
        """Return the counts at one strength in every sample."""
        tp, fp = (counts[:, :, index].sum(axis=1) for counts in (self.tp, self.fp))
        return Chosen(np.full(len(tp), index), tp, fp)

    def in_hindsight(self) -> Chosen:
        """Choose the best strength within each sample."""
        return in_hindsight(self.tp.sum(axis=1), self.fp.sum(axis=1), self.positives.sum(axis=1))

    def cross_fitted(self) -> Chosen:
        """Choose by cross-fitting within each sample; the images' folds stay as they are."""
        return cross_fitted(self.tp, self.fp, self.positives)


def observed(tallies: Tallies, fold: Ints, folds: int) -> Samples:
    """Return the one sample that was observed: every image once."""
    return _split(_by_fold(tallies, fold, folds).sum(axis=0, dtype=np.float64)[None], folds)


def resampled(tallies: Tallies, fold: Ints, folds: int, resamples: int, seed: int) -> Samples:
    """Return samples of images drawn with replacement; the draw is that of the scores' intervals.

    Args:
        tallies: counts per image.
        fold: shape (images,), each image's fold.
        folds: how many there are.
        resamples: number of samples.
        seed: of the draw.
    """
    return _split(resampled_totals(_by_fold(tallies, fold, folds), resamples, seed), folds)


def _by_fold(tallies: Tallies, fold: Ints, folds: int) -> Ints:
    """Return shape (images, folds · (2k + 1) + 2): counts in the columns of the image's fold, zero elsewhere."""
    counts = np.concatenate([tallies.tp, tallies.fp, tallies.positives[:, None]], axis=1)
    wide = np.zeros((len(counts), folds, counts.shape[1]), dtype=np.int64)
    wide[np.arange(len(counts)), fold] = counts
    return np.concatenate([wide.reshape(len(counts), -1), tallies.baseline], axis=1)


def _split(totals: Floats, folds: int) -> Samples:
    """Return the columns of `_by_fold`, summed over images, under their names."""
    by_fold = totals[:, :-2].reshape(len(totals), folds, -1)
    k = by_fold.shape[2] // 2
    return Samples(by_fold[:, :, :k], by_fold[:, :, k : 2 * k], by_fold[:, :, -1], totals[:, -2:])
