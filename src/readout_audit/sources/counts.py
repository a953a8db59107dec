"""Decisions from printed integers: rows that realise the paper's counts, for sources that have no rows.

The rows are made, so nothing that depends on a single question may be read off them: question ids are plain
numbers, there is no uid, no image and no order.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from readout_audit.claims.groups import fitting, grouped
from readout_audit.claims.numbers import Number, select
from readout_audit.consistency.metrics import Matrix
from readout_audit.contracts import LABELS, NO, YES, decisions_schema
from readout_audit.errors import AuditError

PAIR = ("legacy_8tok", "legacy_2tok")
"""The readouts of the paper's Table 7, from and to."""

EMITTED = {YES: 3869, NO: 1939}
"""The only first tokens LLaVA-1.5 emitted (Table 1): "▁Yes" and "▁No", which the eight-token rule reads."""

SPLITS = ("adversarial", "popular", "random")

PAIRED_SOURCE = "the paper's Table 7 (printed counts)"
MARGINAL_SOURCE = "the paper's Table 4 with the authors' results file (printed scores)"


class PairedCount(NamedTuple):
    """Questions of a label that the eight-token rule read as `decision_from`, the two-token rule as `_to`."""

    split: str
    label: str
    decision_from: str
    decision_to: str
    n: int


def paired_counts(numbers: Iterable[Number], model: str, splits: Sequence[str] = SPLITS) -> list[PairedCount]:
    """Return the printed transition counts of a model (Table 7), in the order split, label, from, to.

    Raises:
        AuditError: the numbers hold no complete transition table of the model.
    """
    printed = {
        (number.split, number.quantity): number.as_count
        for number in select(numbers, kind="transition", model=model)
    }
    counts = []
    for split in splits:
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


def is_paired(numbers: Iterable[Number], model: str) -> bool:
    """Tell whether the transitions of a model are printed."""
    return bool(select(numbers, kind="transition", model=model))


def paired_decisions(counts: Sequence[PairedCount], dataset: str) -> pa.Table:
    """Return a decision table that realises paired counts: one row per counted question."""
    rows: list[dict[str, Any]] = []
    for split in dict.fromkeys(cell.split for cell in counts):
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


class Marginal(NamedTuple):
    """What printed scores say about one readout on one split.

    Attributes:
        matrix: the only matrix that gives them; None where several do.
        fits: how many do.
        scores: names of the scores.
    """

    matrix: Matrix | None
    fits: int
    scores: str


def marginal_counts(
    numbers: Sequence[Number], model: str, splits: Sequence[str] = SPLITS
) -> dict[tuple[str, str], Marginal]:
    """Return (split, readout) -> the confusion matrix that printed scores of a model fix (Table 4).

    F1 alone rarely fixes a matrix; with precision, recall and yes-rate of the authors' results file it does.

    Raises:
        AuditError: no scores of the model are printed, or a row's scores contradict each other.
    """
    rows = [
        number
        for number in select(numbers, kind="score", model=model)
        if number.id.startswith("t4.") and number.split in splits
    ]
    groups = grouped(rows)
    found = {}
    for members in groups.values():
        result = fitting(members)
        where = f"{model}, {members[0].split}, {members[0].readout}"
        if result is None or not result.fits:
            raise AuditError(
                f"{where}: no confusion matrix gives the printed scores; correct the numbers file."
            )
        names = " and ".join(member.quantity for member in members)
        only = result.matrices[0] if result.count == 1 else None
        found[members[0].split, members[0].readout] = Marginal(only, result.count, names)
    if not found:
        raise AuditError(
            f"{model}: no scores of it are printed (Table 4) on {', '.join(splits)}, so no decisions can be "
            "made from counts."
        )
    return found


def unidentified(marginals: Mapping[tuple[str, str], Marginal]) -> dict[str, str]:
    """Return readout -> why it cannot be told, for readouts whose matrix is open on some split."""
    open_ones: dict[str, list[str]] = {}
    for (split, readout), marginal in marginals.items():
        if marginal.matrix is None:
            words = f"{marginal.fits} confusion matrices give the printed {marginal.scores} on {split}"
            open_ones.setdefault(readout, []).append(words)
    return {readout: ", ".join(words) for readout, words in open_ones.items()}


def marginal_decisions(marginals: Mapping[tuple[str, str], Marginal], dataset: str) -> pa.Table:
    """Return a decision table that realises each readout's matrix by itself.

    The columns are filled one by one, so a row pairs nothing: only the counts of single columns mean anything.
    A readout that cannot be told on some split is null throughout.
    """
    names = sorted({readout for _, readout in marginals})
    known = [name for name in names if name not in unidentified(marginals)]
    rows: list[dict[str, Any]] = []
    for split in dict.fromkeys(split for split, _ in marginals):
        columns = {name: _column(marginals[split, name].matrix) for name in known}
        labels = _labels(marginals[split, known[0]].matrix)
        rows += [
            _row(dataset, split, number, label, {name: columns[name][number - 1] for name in known})
            for number, label in enumerate(labels, start=1)
        ]
    return pa.Table.from_pylist(rows, schema=decisions_schema(names))


def _labels(matrix: Matrix | None) -> list[str]:
    """Return the labels of made rows: all positives, then all negatives."""
    assert matrix is not None
    return [YES] * (matrix.tp + matrix.fn) + [NO] * (matrix.fp + matrix.tn)


def _column(matrix: Matrix | None) -> list[str]:
    """Return decisions that realise a matrix under `_labels`."""
    assert matrix is not None
    return [YES] * matrix.tp + [NO] * matrix.fn + [YES] * matrix.fp + [NO] * matrix.tn
