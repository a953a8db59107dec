"""The sets of rows that are scored: splits, their first questions, and the aggregates over splits."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from readout_audit.errors import AuditError
from readout_audit.scores.confusion import ABSENT, Codes
from readout_audit.scores.decisions import Decisions
from readout_audit.scores.labels import LabelSet

ALL = "all"
"""The subset that leaves nothing out."""

MACRO, POOLED, DISTINCT = "macro", "pooled", "distinct"

AGGREGATES = {
    MACRO: "mean of the splits' rates; it has no matrix of its own",
    POOLED: "all rows of all splits; a question that stands in several splits counts in each",
    DISTINCT: "each (image, question) once; empty where the splits answer one question differently",
}
"""Aggregates over the splits and the rule of each."""


class Block(NamedTuple):
    """Rows scored together; `rows` is their indices in the decision file's order, labelled rows only."""

    labels: str
    split: str
    subset: str
    rows: npt.NDArray[np.int64]


def split_blocks(decisions: Decisions, label_set: LabelSet, first: Sequence[int] = ()) -> list[Block]:
    """Return every split whole, then its first questions for each count in `first`.

    The first N are counted in the release's order before rows without a label are left out, so that every
    label set speaks of the same questions. A split of unknown order, or with fewer rows, has no such block.

    Raises:
        AuditError: a count in `first` is not positive, or a split has the name of an aggregate.
    """
    if any(count < 1 for count in first):
        raise AuditError(f"first questions {list(first)}: a count must be 1 or more; correct the config.")
    labelled = label_set.codes != ABSENT
    ordered = np.asarray(decisions.identity["order_known"].to_numpy()).astype(bool)
    blocks = []
    for split in decisions.splits:
        if split in AGGREGATES:
            raise AuditError(f"split {split!r} has the name of an aggregate; rename the split.")
        rows = np.flatnonzero(decisions.in_split(split))
        blocks.append(Block(label_set.name, split, ALL, rows[labelled[rows]]))
        for count in first:
            if ordered[rows].all() and count <= len(rows):
                head = rows[:count]
                blocks.append(Block(label_set.name, split, f"first_{count}", head[labelled[head]]))
    return blocks


class Repeats(NamedTuple):
    """Labelled rows that ask the same (image, question).

    Attributes:
        rows: shape (k,), indices of the labelled rows.
        first: shape (distinct,), positions in `rows` of the first row of each question.
        group: shape (k,), which question each row asks.
    """

    rows: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64]
    group: npt.NDArray[np.int64]

    @property
    def distinct(self) -> npt.NDArray[np.int64]:
        """The first row of each question, in the decision file's order."""
        return self.rows[np.sort(self.first)]

    def contradictions(self, codes: Codes) -> int:
        """Return how many rows differ in `codes`, shape (n,), from the first row of their question."""
        here = codes[self.rows]
        return int((here != here[self.first][self.group]).sum())


def find_repeats(decisions: Decisions, label_set: LabelSet) -> Repeats | None:
    """Group the labelled rows by uid; None where a uid is not known."""
    uids = decisions.identity["uid"]
    if uids.null_count:
        return None
    numbers = np.asarray(pc.dictionary_encode(uids.combine_chunks()).indices.to_numpy(False))
    rows = np.flatnonzero(label_set.codes != ABSENT)
    _, first, group = np.unique(numbers[rows], return_index=True, return_inverse=True)
    return Repeats(rows, first, group)
