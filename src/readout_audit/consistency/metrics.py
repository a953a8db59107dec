"""The five printed metrics as ratios of forms that are linear in the counts.

With P positives and N negatives a confusion matrix is fixed by (tp, fp), and each metric is
(a0 + a1·tp + a2·fp) / (b0 + b1·tp + b2·fp) with integer coefficients. "At least lo" and "at most hi" are then
linear inequalities in integers, which is all that the search needs.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

Linear = tuple[int, int, int]
"""Coefficients of (1, tp, fp)."""


class Matrix(NamedTuple):
    """An integer confusion matrix; "positive" is label yes, "called" is answered yes."""

    tp: int
    fp: int
    fn: int
    tn: int

    def __str__(self) -> str:
        return f"tp {self.tp}, fp {self.fp}, fn {self.fn}, tn {self.tn}"

    @property
    def forms(self) -> Mapping[str, "Form"]:
        """The metrics' forms for this matrix's numbers of positives and negatives."""
        return metric_forms(self.tp + self.fn, self.fp + self.tn)

    def value(self, metric: str) -> Fraction | None:
        """Return the exact metric, None where it is 0/0."""
        return self.forms[metric].value(self.tp, self.fp)


class Form(NamedTuple):
    """A metric as numerator over denominator, both linear in (1, tp, fp)."""

    numerator: Linear
    denominator: Linear

    def value(self, tp: int, fp: int) -> Fraction | None:
        """Return the exact ratio, None where it is 0/0."""
        above, below = (a + b * tp + c * fp for a, b, c in self)
        return Fraction(above, below) if below else None

    @property
    def undefined_at_zero(self) -> bool:
        """Whether the ratio is 0/0 when nothing is called yes (tp = fp = 0).

        It is undefined nowhere else, unless there are no positives to recall at all (then tp is 0 too).
        """
        return self.denominator[0] == 0


METRICS = ("precision", "recall", "f1", "accuracy", "yes_rate")
"""The metrics that can be checked, in the order of tables."""


def metric_forms(positives: int, negatives: int) -> dict[str, Form]:
    """Return the form of each metric in `METRICS` for these numbers of positives and negatives."""
    total = positives + negatives
    return {
        "precision": Form((0, 1, 0), (0, 1, 1)),
        "recall": Form((0, 1, 0), (positives, 0, 0)),
        # F1 = 2TP / (2TP + FP + FN) with FN = P - TP
        "f1": Form((0, 2, 0), (positives, 1, 1)),
        "accuracy": Form((negatives, 1, -1), (total, 0, 0)),
        "yes_rate": Form((0, 1, 1), (total, 0, 0)),
    }
