"""What corrected labels do to the gap, and which questions carry the flips.

Scoring against another label set changes three things at once: labels, which rows are kept, and the share of
positives. Five rows take them apart.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from readout_audit.errors import AuditError
from readout_audit.gap.transitions import pair
from readout_audit.scores.confusion import ABSENT, NO, YES, Codes, Confusion
from readout_audit.scores.decisions import Decisions
from readout_audit.scores.labels import LabelSet

OWN_ALL = "own labels, all rows"
OWN_ON_KEPT = "own labels, rows the other set keeps"
MIXED_ALL = "all rows, other label where there is one"
OTHER = "other labels"
OTHER_BALANCED = "other labels, rates at 50% positives"


RELABELLED = pa.schema(
    [
        pa.field("labels", pa.string(), nullable=False),  # name of the other label set
        pa.field("split", pa.string(), nullable=False),
        pa.field("readout_from", pa.string(), nullable=False),
        pa.field("readout_to", pa.string(), nullable=False),
        pa.field("choice", pa.string(), nullable=False),  # which labels and rows
        pa.field("n", pa.int64(), nullable=False),
        pa.field("positives", pa.int64(), nullable=False),
        *[
            pa.field(f"{name}{part}", kind)
            for name in ("f1_from", "f1_to", "gap")
            for part, kind in (("_numerator", pa.int64()), ("_denominator", pa.int64()), ("", pa.float64()))
        ],
    ]
)
"""Five rows per split; exact fractions in lowest terms beside their values."""


class RelabelledGap(NamedTuple):
    """F1 of two readouts on one split under one choice of labels and rows; exact, None where undefined.

    Attributes:
        n, positives: rows, and labels yes among them, that both readouts answered yes or no. The last choice
            keeps the counts of the one before it: only the rates are carried to 50% positives.
    """

    split: str
    choice: str
    n: int
    positives: int
    f1_from: Fraction | None
    f1_to: Fraction | None

    @property
    def gap(self) -> Fraction | None:
        """F1(from) - F1(to)."""
        if self.f1_from is None or self.f1_to is None:
            return None
        return self.f1_from - self.f1_to


def relabelled_gaps(decisions: Decisions, other: LabelSet, before: str, after: str) -> list[RelabelledGap]:
    """Return the five rows of every split that has both readouts.

    Args:
        decisions: the rows, with their own labels.
        other: the corrected labels.
        before: readout gone from (the emitted token's side in the paper's pair).
        after: readout gone to.

    Raises:
        AuditError: the decision file has no such readout, or does not pair its readouts with questions.
    """
    for name in (before, after):
        if name not in decisions.answers and name not in decisions.unavailable:
            raise AuditError(f"relabelling: readout {name!r} is not in the decision file; take another.")
    if not decisions.joint:
        raise AuditError("relabelling: this source gives counts, not questions; take one with questions.")
    kept = other.codes != ABSENT
    choices: list[tuple[str, Codes]] = [
        (OWN_ALL, decisions.labels),
        (OWN_ON_KEPT, np.where(kept, decisions.labels, np.int8(ABSENT))),
        (MIXED_ALL, np.where(kept, other.codes, decisions.labels)),
        (OTHER, other.codes),
    ]
    found = []
    for split in decisions.splits:
        if not (decisions.has(before, split) and decisions.has(after, split)):
            continue
        for choice, labels in choices:
            rows = decisions.in_split(split) & (labels != ABSENT)
            paired, _ = pair(labels[rows], decisions.answers[before][rows], decisions.answers[after][rows])
            first, second = paired.before, paired.after
            n, positives = paired.n, first.tp + first.fn
            found.append(RelabelledGap(split, choice, n, positives, first.f1, second.f1))
        found.append(
            RelabelledGap(split, OTHER_BALANCED, n, positives, balanced_f1(first), balanced_f1(second))
        )
    return found


def balanced_f1(confusion: Confusion) -> Fraction | None:
    """Return F1 at as many positives as negatives, at the same true and false positive rate.

    2 TPR / (TPR + FPR + 1); None where a label has no row.
    """
    positives, negatives = confusion.tp + confusion.misses, confusion.fp + confusion.tn
    if not positives or not negatives:
        return None
    hits, alarms = Fraction(confusion.tp, positives), Fraction(confusion.fp, negatives)
    return 2 * hits / (hits + alarms + 1)


def relabelled_table(other: str, before: str, after: str, gaps: Sequence[RelabelledGap]) -> pa.Table:
    """Return the rows under `RELABELLED`."""
    rows: list[dict[str, Any]] = []
    for one in gaps:
        row: dict[str, Any] = {"labels": other, "readout_from": before, "readout_to": after}
        row |= {name: getattr(one, name) for name in ("split", "choice", "n", "positives")}
        for name, value in (("f1_from", one.f1_from), ("f1_to", one.f1_to), ("gap", one.gap)):
            row[f"{name}_numerator"], row[f"{name}_denominator"] = (
                value.as_integer_ratio() if value is not None else (None, None)
            )
            row[name] = float(value) if value is not None else None
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=RELABELLED)


CARRIERS = pa.schema(
    [
        pa.field("labels", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("readout_from", pa.string(), nullable=False),
        pa.field("readout_to", pa.string(), nullable=False),
        pa.field("by", pa.string(), nullable=False),  # object | image
        pa.field("name", pa.string()),  # null where the source does not know it
        pa.field("n", pa.int64(), nullable=False),
        pa.field("no_to_yes_pos", pa.int64(), nullable=False),  # label yes: a miss that the second one mends
        pa.field("no_to_yes_neg", pa.int64(), nullable=False),  # label no: a false alarm of the second one
        pa.field("yes_to_no_pos", pa.int64(), nullable=False),
        pa.field("yes_to_no_neg", pa.int64(), nullable=False),
    ]
)
"""Flips by object or by image, most flips first, equal numbers by name; names without a flip included."""


def flip_carriers(decisions: Decisions, label_set: LabelSet, before: str, after: str, by: str) -> pa.Table:
    """Count which objects, or which images, the flips between two readouts stand on.

    Args:
        decisions: the rows.
        label_set: the labels to sort the flips by.
        before: readout gone from.
        after: readout gone to.
        by: `object` or `image`.

    Returns:
        a table under `CARRIERS`, split by split.
    """
    encoded = pc.dictionary_encode(decisions.identity[by].combine_chunks(), null_encoding="encode")
    names, code = encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False)
    labels = label_set.codes
    kinds = {"no_to_yes": (NO, YES), "yes_to_no": (YES, NO)}
    rows: list[dict[str, Any]] = []
    for split in decisions.splits:
        if not (decisions.has(before, split) and decisions.has(after, split)):
            continue
        first, second = decisions.answers[before], decisions.answers[after]
        here = decisions.in_split(split) & (labels != ABSENT)
        counts = {"n": np.bincount(code[here], minlength=len(names))}
        for way, (start, end) in kinds.items():
            for sign, label in (("pos", YES), ("neg", NO)):
                flipped = here & (first == start) & (second == end) & (labels == label)
                counts[f"{way}_{sign}"] = np.bincount(code[flipped], minlength=len(names))
        flips = sum(counts.values()) - counts["n"]
        order = sorted(np.flatnonzero(counts["n"]), key=lambda i: (-flips[i], str(names[i])))
        key = {
            "labels": label_set.name,
            "split": split,
            "readout_from": before,
            "readout_to": after,
            "by": by,
        }
        rows += [
            key | {"name": names[i]} | {name: int(count[i]) for name, count in counts.items()} for i in order
        ]
    return pa.Table.from_pylist(rows, schema=CARRIERS)
