"""Other labels for the same questions: a label set joins on (image namespace, image, object).

It never joins on `question_id` (ids move between releases) nor on the question's text (releases differ in
spelling). A row that the label set does not hold is left out and counted.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from readout_audit import contracts
from readout_audit.datasets.questions import question_uid
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table
from readout_audit.scores.confusion import ABSENT, Codes
from readout_audit.scores.decisions import Decisions

OWN = "pope"
"""Name of the labels that stand in the decision file itself."""

Key = tuple[str, str, str]
"""(image namespace, image, object)"""


class LabelSet(NamedTuple):
    """Labels of every row of a decision file.

    Attributes:
        name: `pope` or the name of another label set.
        codes: shape (n,), `YES`, `NO`, or `ABSENT` where the set does not hold the row.
        left_out: why -> split -> rows left out.
    """

    name: str
    codes: Codes
    left_out: dict[str, dict[str, int]]

    def describe(self) -> dict[str, Any]:
        """Return what the metadata of a result says about this label set."""
        return {"rows": int((self.codes != ABSENT).sum()), "left_out": self.left_out}


def label_sets(decisions: Decisions, relabel: Mapping[str, Sequence[Path]] | None) -> list[LabelSet]:
    """Return the file's own labels, then each further label set, in the order given.

    Args:
        decisions: the rows to label.
        relabel: name -> files in the form of `contracts.QUESTIONS`.

    Raises:
        AuditError: a name is taken, a file cannot be read, or it labels one object twice, differently.
    """
    sets = [LabelSet(OWN, decisions.labels, {})]
    for name, paths in (relabel or {}).items():
        if name == OWN:
            raise AuditError(f"label set {name!r} has the name of the decision file's own labels; rename it.")
        sets.append(_join(name, read_labels(paths), decisions))
    return sets


def read_labels(paths: Sequence[Path]) -> dict[Key, str]:
    """Read (image namespace, image, object) -> label from question tables.

    Rows whose object is not known cannot be joined and are passed over: what they would label is then
    counted as left out.

    Raises:
        AuditError: a file cannot be read, two rows label the same object differently, or no row names one.
    """
    labels: dict[Key, str] = {}
    for path in paths:
        table = read_table(path, contracts.QUESTIONS, "the label file")
        columns = [table[name].to_pylist() for name in ("image_namespace", "image", "object", "label")]
        for row, (namespace, image, item, label) in enumerate(zip(*columns, strict=True), start=1):
            if item is None:
                continue
            if label not in contracts.LABELS:
                raise AuditError(f"{path}: row {row}: label {label!r} is neither yes nor no.")
            if labels.setdefault((namespace, image, item), label) != label:
                raise AuditError(
                    f"{path}: row {row} labels {item!r} in {image} otherwise than an earlier row; mend it."
                )
    if not labels:
        raise AuditError(
            f"{', '.join(map(str, paths)) or 'label set'}: no row names an object; give another file."
        )
    return labels


def _join(name: str, labels: Mapping[Key, str], decisions: Decisions) -> LabelSet:
    """Look every row up; count by split the rows that have no label, and why."""
    namespaces = sorted({namespace for namespace, _, _ in labels})
    codes = np.full(len(decisions.labels), ABSENT, dtype=np.int8)
    left_out: dict[str, dict[str, int]] = {}
    names = ("uid", "split", "image", "object", "question")
    rows = zip(*(_pylist(decisions.identity, column) for column in names), strict=True)
    for row, (uid, split, image, item, question) in enumerate(rows):
        if uid is None or image is None or item is None or question is None:
            why = "image, object or question is not known"
        else:
            # The decision file keeps no namespace of its own, but its uid is a hash that starts with one:
            # a file name that two image collections happen to share joins only within the right one.
            space = next((s for s in namespaces if question_uid(s, image, question) == uid), None)
            label = labels.get((space, image, item)) if space is not None else None
            if label is not None:
                codes[row] = contracts.LABELS.index(label)
                continue
            why = f"no label in {name}" if space is not None else f"{name} is about other images"
        by_split = left_out.setdefault(why, {})
        by_split[split] = by_split.get(split, 0) + 1
    return LabelSet(name, codes, left_out)


def _pylist(table: pa.Table, column: str) -> list[Any]:
    """Return one column as Python values."""
    values: list[Any] = table[column].to_pylist()
    return values
