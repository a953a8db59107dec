"""A confusion matrix of yes/no answers and its exact rates."""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.int8]
"""Labels or decisions as small numbers: `YES`, `NO`, `UNPARSED`, `INVALID`, or `ABSENT`."""

YES, NO, UNPARSED, INVALID = 0, 1, 2, 3
"""Codes of `contracts.DECISIONS`, in its order; a label is `YES` or `NO`."""

ABSENT = -1
"""The source does not say (a decision), or the label set does not hold the row (a label)."""


def ratio(numerator: int, denominator: int) -> Fraction | None:
    """Return the exact ratio, None where it is undefined (0/0)."""
    return Fraction(numerator, denominator) if denominator else None


class Confusion(NamedTuple):
    """Counts of one readout on one set of rows; `tp` to `fn` hold parsed answers only.

    Unparsed counts as wrong: a positive as a miss in recall and F1, either label in accuracy; it is never a
    yes, so it does not enter precision. Invalid rows enter no rate. Every rate is None where it is undefined.
    """

    tp: int
    fp: int
    tn: int
    fn: int
    unparsed_pos: int = 0
    unparsed_neg: int = 0
    invalid_pos: int = 0
    invalid_neg: int = 0

    @property
    def n(self) -> int:
        """Rows, invalid ones included."""
        return sum(self)

    @property
    def parsed(self) -> int:
        """Rows answered yes or no."""
        return self.tp + self.fp + self.tn + self.fn

    @property
    def valid(self) -> int:
        """Rows that are not invalid; the base of accuracy and yes-rate."""
        return self.parsed + self.unparsed_pos + self.unparsed_neg

    @property
    def misses(self) -> int:
        """Valid positives that were not answered yes."""
        return self.fn + self.unparsed_pos

    @property
    def f1(self) -> Fraction | None:
        """2TP / (2TP + FP + misses); None for 0/0 and where nothing was parsed."""
        if not self.parsed:
            return None
        return ratio(2 * self.tp, 2 * self.tp + self.fp + self.misses)

    @property
    def precision(self) -> Fraction | None:
        """TP / (TP + FP); None where nothing was called yes (the paper prints 0 there)."""
        return ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> Fraction | None:
        """TP / (TP + misses); None without a valid positive."""
        return ratio(self.tp, self.tp + self.misses)

    @property
    def accuracy(self) -> Fraction | None:
        """(TP + TN) / valid rows."""
        return ratio(self.tp + self.tn, self.valid)

    @property
    def yes_rate(self) -> Fraction | None:
        """Yes answers / valid rows: a share of the answers, not of the labels."""
        return ratio(self.tp + self.fp, self.valid)

    @property
    def parsed_only(self) -> "Confusion":
        """The same matrix with the unparsed rows left out."""
        return self._replace(unparsed_pos=0, unparsed_neg=0)


def total(confusions: Iterable[Confusion]) -> Confusion:
    """Return the matrix of all rows together."""
    return Confusion(*(sum(cells) for cells in zip(*confusions, strict=True)))


def count(labels: Codes, decisions: Codes) -> Confusion:
    """Count one readout's decisions against the labels.

    Args:
        labels: shape (n,), `YES` or `NO`.
        decisions: shape (n,), any code but `ABSENT`.
    """
    cells = np.bincount(labels.astype(np.int64) * 4 + decisions, minlength=8)
    yes, no = cells[:4].tolist(), cells[4:].tolist()
    return Confusion(
        tp=yes[YES],
        fp=no[YES],
        tn=no[NO],
        fn=yes[NO],
        unparsed_pos=yes[UNPARSED],
        unparsed_neg=no[UNPARSED],
        invalid_pos=yes[INVALID],
        invalid_neg=no[INVALID],
    )


class TiePolicies(NamedTuple):
    """The matrix under each way to read a tie between the yes and the no maximum."""

    ties: int
    to_yes: Confusion
    to_no: Confusion
    excluded: Confusion


def count_ties(labels: Codes, decisions: Codes, tie: npt.NDArray[np.bool_]) -> TiePolicies:
    """Count with ties read as yes, as no, and left out.

    Args:
        labels: shape (n,), `YES` or `NO`.
        decisions: shape (n,), any code but `ABSENT`.
        tie: shape (n,); a row that was not answered yes or no is never taken as tied.
    """
    tied = tie & (decisions <= NO)
    return TiePolicies(
        ties=int(tied.sum()),
        to_yes=count(labels, np.where(tied, np.int8(YES), decisions)),
        to_no=count(labels, np.where(tied, np.int8(NO), decisions)),
        excluded=count(labels[~tied], decisions[~tied]),
    )
