"""What the rules of scoring scripts have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from readout_audit.contracts import INVALID
from readout_audit.readouts.base import Decided, Kind, Metadata, valid_rows

FIGURES = ("accuracy", "precision", "recall", "f1", "yes_ratio")
"""What the scripts report; one that a script does not report is None."""

Figures = dict[str, Fraction | None]


class Counts(Protocol):
    """Counts of one rule's readings against the labels; unparsed rows are in neither of the four cells."""

    @property
    def tp(self) -> int: ...  # noqa: D102
    @property
    def fp(self) -> int: ...  # noqa: D102
    @property
    def tn(self) -> int: ...  # noqa: D102
    @property
    def fn(self) -> int: ...  # noqa: D102
    @property
    def unparsed_pos(self) -> int: ...  # noqa: D102
    @property
    def unparsed_neg(self) -> int: ...  # noqa: D102


class Reading(NamedTuple):
    """What a rule makes of one answer, and the names of the quirks that had a part in it."""

    decision: str
    quirks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class HarnessReadout:
    """One scoring script's rule.

    Attributes:
        read: (answer text, label or None) -> reading; the label is given only where `needs_labels`.
        figures: counts -> the figures as the script computes and prints them, as exact fractions.
        quirks: by name, in one sentence, what the script does that a reader of its figures may not expect.
        column: the record column it reads.
        flagged: the quirks that concern single rows; each gives a flag column.
    """

    name: str
    rule: str
    source: str
    read: Callable[[str, str | None], Reading]
    figures: Callable[[Counts], Figures]
    quirks: Mapping[str, str]
    strings: Mapping[str, tuple[str, ...]]
    needs_labels: bool = False
    kind: Kind = "string"
    column: str = "new_text"
    flagged: tuple[str, ...] = ()

    def ids(self, meta: Metadata) -> None:
        """Return None: a text readout reads no ids."""
        return None

    def decide(self, records: pa.Table, meta: Metadata, labels: pa.Array | None = None) -> Decided:
        """Decide every row by its text (and label, where the script looks at it); no text is an empty one."""
        read = cache(self.read)
        texts = [text or "" for text in records[self.column].to_pylist()]
        given = labels.to_pylist() if self.needs_labels and labels is not None else [None] * len(texts)
        readings = [read(text, label) for text, label in zip(texts, given, strict=True)]
        valid = valid_rows(records)
        decision = np.where(
            valid, np.array([reading.decision for reading in readings], dtype=object), INVALID
        )
        flags = {
            name: pa.array([name in reading.quirks for reading in readings], pa.bool_(), mask=~valid)
            for name in self.flagged
        }
        return Decided(pa.array(decision, pa.string()), flags=flags)


def undefined() -> Figures:
    """Return the figures of a script that prints none."""
    return dict.fromkeys(FIGURES)


def ratio_or_zero(numerator: int | Fraction, denominator: int | Fraction) -> Fraction:
    """Return the ratio, 0 where it is 0/0: what scripts do that guard a division with zero."""
    return Fraction(numerator) / Fraction(denominator) if denominator else Fraction(0)


def four_cell_figures(tp: int, fp: int, tn: int, fn: int, rows: int, yes: int) -> Figures:
    """Return the figures of a script that divides without a guard and prints only at the end.

    Args:
        tp: label yes, read yes.
        fp: label no, read yes.
        tn: label no, read no.
        fn: label yes, read no.
        rows: what accuracy and yes-ratio are divided by.
        yes: answers the script counts as yes.

    Returns:
        The exact figures; all None where a division by zero ends the script before it prints.
    """
    try:
        precision, recall = Fraction(tp, tp + fp), Fraction(tp, tp + fn)
        f1 = 2 * precision * recall / (precision + recall)
        accuracy, yes_ratio = Fraction(tp + tn, rows), Fraction(yes, rows)
    except ZeroDivisionError:
        return undefined()
    return {"accuracy": accuracy, "precision": precision, "recall": recall, "f1": f1, "yes_ratio": yes_ratio}
