"""Decisions from printed integers: rows that realise the paper's counts, for sources that have no rows.

The rows are made, so nothing that depends on a single question may be read off them: question ids are plain
numbers, there is no uid, no image and no order.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from readout_audit.claims.numbers import Number, select
from readout_audit.contracts import LABELS, NO, YES, decisions_schema
from readout_audit.errors import AuditError

PAIR = ("legacy_8tok", "legacy_2tok")
"""The readouts of the paper's Table 7, from and to."""

EMITTED = {YES: 3869, NO: 1939}
"""The only first tokens LLaVA-1.5 emitted (Table 1): "▁Yes" and "▁No", which the eight-token rule reads."""

SPLITS = ("adversarial", "popular", "random")


class PairedCount(NamedTuple):
    """Questions of a label that the eight-token rule read as `decision_from`, the two-token rule as `_to`."""

    split: str
    label: str
    decision_from: str
    decision_to: str
    n: int


def paired_counts(numbers: Iterable[Number], model: str) -> list[PairedCount]:
    """Return the printed transition counts of a model (Table 7), in the order split, label, from, to.

    Raises:
        AuditError: the numbers hold no complete transition table of the model.
    """
    printed = {
        (number.split, number.quantity): number.as_count
        for number in select(numbers, kind="transition", model=model)
    }
    counts = []
    for split in SPLITS:
        for label in LABELS:
            for before in LABELS:
                for after in LABELS:
                    key = (split, f"{label}:{before}>{after}")
                    if key not in printed:
                        raise AuditError(
                            f"{model}: the printed numbers have no paired counts ({split}, label {label}, "
                            f"{before} to {after}); its questions cannot be paired across readouts."
                        )
                    counts.append(PairedCount(split, label, before, after, printed[key]))
    return counts


def paired_decisions(counts: Sequence[PairedCount], dataset: str) -> pa.Table:
    """Return a decision table that realises paired counts: one row per counted question."""
    rows: list[dict[str, Any]] = []
    for split in SPLITS:
        cells = [cell for cell in counts if cell.split == split]
        answers = [cell for cell in cells for _ in range(cell.n)]
        rows += [
            _row(dataset, split, number, cell.label, {PAIR[0]: cell.decision_from, PAIR[1]: cell.decision_to})
            | {"first_token_id": EMITTED[cell.decision_from]}
            for number, cell in enumerate(answers, start=1)
        ]
    return pa.Table.from_pylist(rows, schema=decisions_schema(sorted(PAIR)))


def _row(dataset: str, split: str, number: int, label: str, decisions: dict[str, str]) -> dict[str, Any]:
    """Return one made row; whatever a count cannot know is left null."""
    return {
        "dataset": dataset,
        "split": split,
        "question_id": str(number),
        "label": label,
        "order_known": False,
        **decisions,
    }
