"""A decision file in memory: what every score and gap is counted from."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from readout_audit import contracts
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.scores.confusion import ABSENT, Codes


@dataclass(frozen=True)
class Decisions:
    """The rows of one cell, coded for counting.

    Attributes:
        cell: the fields of `contracts.CELL`.
        metadata: the JSON beside the rows.
        identity: the columns of `contracts.DECISION_IDENTITY`, n rows.
        labels: shape (n,), the release's own label.
        answers: readout -> shape (n,), `ABSENT` on splits where the source does not have it.
        ties: readout -> shape (n,), or None where the readout has no logits.
        unavailable: readouts whose column is empty throughout -> why.
    """

    cell: dict[str, str]
    metadata: dict[str, Any]
    identity: pa.Table
    labels: Codes
    answers: dict[str, Codes]
    ties: dict[str, npt.NDArray[np.bool_] | None]
    unavailable: dict[str, str]

    @cached_property
    def splits(self) -> list[str]:
        """Splits in the order in which they appear."""
        return [str(split) for split in pc.unique(self.identity["split"]).to_pylist()]

    @cached_property
    def _masks(self) -> dict[str, npt.NDArray[np.bool_]]:
        column = self.identity["split"]
        return {split: _numpy(pc.equal(column, split)).astype(bool) for split in self.splits}

    def in_split(self, split: str) -> npt.NDArray[np.bool_]:
        """Return shape (n,), which rows belong to `split`."""
        return self._masks[split]

    def has(self, readout: str, split: str) -> bool:
        """Tell whether the source has this readout on this split (it has all of a split or nothing)."""
        answers = self.answers.get(readout)
        return answers is not None and bool((answers[self.in_split(split)] != ABSENT).all())

    @property
    def joint(self) -> bool:
        """Whether the readouts of one row belong to the same answer.

        Printed counts fix each readout's matrix alone; such a file says `"joint": false`.
        """
        return bool(self.metadata.get("joint", True))


def read_decisions(path: Path) -> Decisions:
    """Read and check one decision file.

    Raises:
        AuditError: the file is missing or has other columns, its metadata does not name the cell, a label or
            a decision is none of the known words, or a readout is empty on part of a split.
    """
    table = read_table(path, _schema_of(path), "the decision file")
    metadata = table_metadata(table)
    cell = metadata.get("cell", {})
    missing = [name for name in contracts.CELL.names if not isinstance(cell.get(name), str)]
    if missing:
        raise AuditError(
            f"{path}: the metadata does not name the cell ({', '.join(missing)}); make it again."
        )
    labels = _codes(table, "label", contracts.LABELS, path)
    if (labels == ABSENT).any():
        raise AuditError(f"{path}: a row has no label; make the decision file again.")
    answers, ties, unavailable = {}, {}, {}
    for name in contracts.readouts_of(table):
        codes = _codes(table, name, contracts.DECISIONS, path)
        if len(codes) and (codes == ABSENT).all():
            described = metadata.get("readouts", {}).get(name, {})
            unavailable[name] = described.get("why_not") or "not available from this source"
            continue
        answers[name] = codes
        tie = table[f"{name}.tie"]
        ties[name] = None if tie.null_count == len(tie) else _numpy(pc.fill_null(tie, False)).astype(bool)
    decisions = Decisions(
        cell={name: cell[name] for name in contracts.CELL.names},
        metadata=metadata,
        identity=table.select(contracts.DECISION_IDENTITY.names),
        labels=labels,
        answers=answers,
        ties=ties,
        unavailable=unavailable,
    )
    _refuse_partial_splits(decisions, path)
    return decisions


def _schema_of(path: Path) -> pa.Schema:
    """Return the schema this decision file must have, given the readouts it names."""
    try:
        names = pq.read_schema(path).names
    except (OSError, pa.ArrowInvalid):
        names = []  # read_table says what is wrong with the file
    readouts = [name.removesuffix(".tie") for name in names if name.endswith(".tie")]
    return contracts.decisions_schema(readouts)


def _codes(table: pa.Table, name: str, words: tuple[str, ...], path: Path) -> Codes:
    """Return the column as codes into `words`, null as `ABSENT`; any other word is refused."""
    column = table[name]
    codes = pc.index_in(column, value_set=pa.array(words))
    unknown = pc.and_(pc.is_null(codes), pc.is_valid(column))
    if pc.any(unknown).as_py():
        row = pc.index(unknown, True).as_py()
        raise AuditError(
            f"{path}: row {row + 1}, column {name}: {column[row].as_py()!r} is none of {', '.join(words)}."
        )
    return _numpy(pc.fill_null(codes, ABSENT)).astype(np.int8)


def _refuse_partial_splits(decisions: Decisions, path: Path) -> None:
    """Stop where a readout is empty on part of a split: its counts would be of some other set of rows."""
    for split in decisions.splits:
        rows = decisions.in_split(split)
        for name, codes in decisions.answers.items():
            empty = int((codes[rows] == ABSENT).sum())
            if 0 < empty < int(rows.sum()):
                raise AuditError(
                    f"{path}: readout {name} is empty on {empty} of the {int(rows.sum())} rows of split "
                    f"{split}; a row that could not be read is `invalid`, not empty."
                )


def _numpy(column: pa.ChunkedArray | pa.Array) -> npt.NDArray[Any]:
    """Return an Arrow column without nulls as a numpy array."""
    array = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(False)
    return np.asarray(array)
