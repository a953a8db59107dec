"""What a run measured, in the form that claims are checked against: exact counts by cell, split and readout."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from readout_audit.claims.numbers import Number
from readout_audit.contracts import CELL, GAP, SCORES, TRANSITIONS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json, read_table, table_metadata
from readout_audit.scores.confusion import Confusion

RELEASE, LABELS, TEMPLATE, PRECISION = "coco-2023-10", "pope", "authors", "nf4"
"""What the paper's numbers are about, where a claim does not say otherwise."""

PAIR = ("legacy_8tok", "legacy_2tok")
"""The readouts of the paper's gap, from and to."""

ALL = "all"


class CellKey(NamedTuple):
    """The columns of `contracts.CELL`."""

    dataset: str
    model: str
    precision: str
    template: str
    source: str

    @property
    def text(self) -> str:
        """Source and cell in one phrase, for the column `source`."""
        return f"{self.source}: {self.dataset}/{self.model}/{self.precision}/{self.template}"


class GapValue(NamedTuple):
    """One exact quantity of the gap; all None where it is undefined or not identifiable (`note` says which)."""

    numerator: int | None
    denominator: int | None
    note: str | None

    @property
    def value(self) -> Fraction | None:
        """The exact value, None for 0/0."""
        if self.numerator is None or not self.denominator:
            return None
        return Fraction(self.numerator, self.denominator)


@dataclass(frozen=True)
class Files:
    """The files of one run that claims are checked against; what a run lacks stays empty."""

    scores: Path | None = None
    transitions: Sequence[Path] = ()
    gap: Sequence[Path] = ()
    decisions: Sequence[Path] = ()
    tokens: Sequence[Path] = ()
    measured: Sequence[Path] = ()


@dataclass(frozen=True)
class Evidence:
    """The measurements of one run, and the published numbers beside them."""

    files: Files
    numbers: Sequence[Number]
    _decisions: dict[CellKey, pa.Table] = field(default_factory=dict)

    @cached_property
    def by_id(self) -> dict[str, Number]:
        """Return the published numbers by id."""
        return {number.id: number for number in self.numbers}

    @cached_property
    def scores(self) -> dict[tuple[CellKey, str, str, str], Confusion]:
        """Return counts by (cell, split, subset, readout) under the release's own labels."""
        if self.files.scores is None:
            return {}
        return {
            (_cell(row), row["split"], row["subset"], row["readout"]): Confusion(
                *(row[name] for name in Confusion._fields)
            )
            for row in read_table(self.files.scores, SCORES, "the score table").to_pylist()
            if row["labels"] == LABELS and row["tp"] is not None
        }

    @cached_property
    def gap(self) -> dict[tuple[CellKey, str, str], GapValue]:
        """Return the quantities of the paper's pair by (cell, split, quantity)."""
        return {
            (_cell(row), row["split"], row["quantity"]): GapValue(
                row["numerator"], row["denominator"], row["note"]
            )
            for row in _rows(self.files.gap, GAP, "the gap table")
        }

    @cached_property
    def transitions(self) -> dict[tuple[CellKey, str, str], int]:
        """Return the paired counts of the paper's pair by (cell, split, "label:from>to")."""
        return {
            (_cell(row), row["split"], f"{row['label']}:{row['decision_from']}>{row['decision_to']}"): row[
                "n"
            ]
            for row in _rows(self.files.transitions, TRANSITIONS, "the transition table")
        }

    @cached_property
    def decision_files(self) -> dict[CellKey, Path]:
        """Return the decision files by cell; their rows are read only where a claim needs them."""
        found = {}
        for path in self.files.decisions:
            try:
                described = table_metadata(pq.read_schema(path).empty_table()).get("cell", {})
            except (OSError, pa.ArrowInvalid) as error:
                raise AuditError(f"{path}: the decision file cannot be read ({error}).") from error
            found[_cell(described)] = path
        return found

    def decisions(self, cell: CellKey) -> pa.Table | None:
        """Return the decisions of a cell, None where the run has none."""
        if cell not in self._decisions and cell in self.decision_files:
            self._decisions[cell] = pq.read_table(self.decision_files[cell])
        return self._decisions.get(cell)

    @cached_property
    def token_maps(self) -> dict[str, Mapping[str, Any]]:
        """Return the token maps by model."""
        maps = [read_json(path, "the token map") for path in self.files.tokens]
        return {token_map["model"]: token_map for token_map in maps}

    @cached_property
    def measured(self) -> dict[str, Mapping[str, Any]]:
        """Return what other stages measured for single claims: id -> value, source, note."""
        found: dict[str, Mapping[str, Any]] = {}
        for path in self.files.measured:
            for identity, entry in read_json(path, "the measured claims").items():
                if identity not in self.by_id:
                    raise AuditError(f"{path}: {identity!r} is no published number; correct the id.")
                found[identity] = entry
        return found

    @cached_property
    def cells(self) -> list[CellKey]:
        """Return every cell of the run, sorted."""
        known = {*self.decision_files}
        known.update(key[0] for key in self.scores)
        known.update(key[0] for key in self.gap)
        known.update(key[0] for key in self.transitions)
        return sorted(known)

    def cell(self, number: Number) -> CellKey | None:
        """Return the cell that a claim is about: the paper's release and, if there, the paper's precision."""
        fitting = [
            cell
            for cell in self.cells
            if (cell.dataset, cell.model, cell.template)
            == (RELEASE, number.model, number.template or TEMPLATE)
        ]
        return min(fitting, key=lambda cell: (cell.precision != PRECISION, cell), default=None)

    def first_tokens(self, cell: CellKey, split: str, first: int | None = None) -> Counter[int] | None:
        """Count the first tokens of a split ("": all splits); None where any row's is not known."""
        table = self.decisions(cell)
        if table is None:
            return None
        rows = list(
            zip(table["split"].to_pylist(), table["first_token_id"].to_pylist(), strict=True),
        )
        tokens = [token for where, token in rows if split in ("", where)][:first]
        return None if not tokens or None in tokens else Counter(tokens)


def _cell(row: Mapping[str, Any]) -> CellKey:
    """Return the cell that a row or a file's description names."""
    missing = [name for name in CELL.names if name not in row]
    if missing:
        raise AuditError(f"a decision file does not name its cell ({', '.join(missing)}); make it again.")
    return CellKey(*(row[name] for name in CELL.names))


def _rows(paths: Sequence[Path], schema: pa.Schema, what: str) -> list[dict[str, Any]]:
    """Return the rows of the paper's pair under the release's own labels."""
    return [
        row
        for path in paths
        for row in read_table(path, schema, what).to_pylist()
        if (row["labels"], row["readout_from"], row["readout_to"]) == (LABELS, *PAIR)
    ]
