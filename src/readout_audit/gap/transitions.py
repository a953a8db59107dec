"""Paired decisions of two readouts, by label and direction."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readout_audit.scores.confusion import INVALID, NO, Codes, Confusion

ANSWERS = ("yes", "no")


class Paired(NamedTuple):
    """Counts of (decision of `from`, decision of `to`) by label, where both answered yes or no.

    `pos_ny`: label yes, read as no by `from` and as yes by `to`; the others alike.
    """

    pos_yy: int
    pos_yn: int
    pos_ny: int
    pos_nn: int
    neg_yy: int
    neg_yn: int
    neg_ny: int
    neg_nn: int

    @property
    def n(self) -> int:
        """Paired rows."""
        return sum(self)

    @property
    def before(self) -> Confusion:
        """The matrix of `from` on the paired rows."""
        return Confusion(
            tp=self.pos_yy + self.pos_yn,
            fp=self.neg_yy + self.neg_yn,
            tn=self.neg_ny + self.neg_nn,
            fn=self.pos_ny + self.pos_nn,
        )

    @property
    def after(self) -> Confusion:
        """The matrix of `to` on the paired rows."""
        return self.reversed.before

    @property
    def reversed(self) -> "Paired":
        """The same rows with `from` and `to` exchanged."""
        return self._replace(pos_yn=self.pos_ny, pos_ny=self.pos_yn, neg_yn=self.neg_ny, neg_ny=self.neg_yn)


class Unpaired(NamedTuple):
    """Rows left out of `Paired`: invalid under either readout, or else unparsed under either."""

    invalid: int
    unparsed: int


def pair(labels: Codes, before: Codes, after: Codes) -> tuple[Paired, Unpaired]:
    """Count paired decisions.

    Args:
        labels: shape (n,), `YES` or `NO`.
        before: shape (n,), decisions of the readout gone from, no `ABSENT`.
        after: shape (n,), decisions of the readout gone to, no `ABSENT`.
    """
    both = answered(before, after)
    invalid = int(((before == INVALID) | (after == INVALID)).sum())
    counts = np.bincount(kinds(labels[both], before[both], after[both]), minlength=8).tolist()
    return Paired(*counts), Unpaired(invalid, len(labels) - int(both.sum()) - invalid)


def answered(before: Codes, after: Codes) -> npt.NDArray[np.bool_]:
    """Return shape (n,), where both readouts said yes or no."""
    return (before <= NO) & (after <= NO)


def kinds(labels: Codes, before: Codes, after: Codes) -> npt.NDArray[np.int64]:
    """Return shape (n,), the position in `Paired` that each row counts in; yes and no only."""
    return labels.astype(np.int64) * 4 + before * 2 + after


def cells(paired: Paired) -> Iterable[tuple[str, str, str, int]]:
    """Yield (label, decision of `from`, decision of `to`, rows), all eight, zeros included."""
    for (label, before, after), count in zip(
        ((label, before, after) for label in ANSWERS for before in ANSWERS for after in ANSWERS),
        paired,
        strict=True,
    ):
        yield label, before, after, count
