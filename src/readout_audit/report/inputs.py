"""What the page is made from: the files of one run, each read once and only if it was given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from readout_audit.compare.releases import CHANGED, RELEASES
from readout_audit.contracts import CELL, GAP, SCORES
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.gap.relabel import CARRIERS, RELABELLED
from readout_audit.scores.blocks import AGGREGATES, ALL
from readout_audit.scores.confusion import Confusion
from readout_audit.scores.decisions import Decisions, read_decisions
from readout_audit.scores.self_agreement import AGREEMENT, DISAGREEMENTS

PAIR = ("legacy_8tok", "legacy_2tok")
"""The readouts of the paper's gap, from and to."""

SPLITS = ("random", "popular", "adversarial")
"""POPE's splits from the easiest to the hardest; others follow in the order of the files."""


class CellKey(NamedTuple):
    """The columns of `contracts.CELL`."""

    dataset: str
    model: str
    precision: str
    template: str
    source: str

    @property
    def text(self) -> str:
        """Source and cell in one phrase, as the claims table names it."""
        return f"{self.source}: {self.dataset}/{self.model}/{self.precision}/{self.template}"


@dataclass(frozen=True)
class Files:
    """The files of one run. All but the scores may be missing.

    Attributes:
        tables: tables as Markdown (`tables.render.to_markdown`).
        figures: pictures (PNG).
        claims: the claims table (CSV).
        verified: JSON reports of verify_engine.
        manifests: JSON files and record files that say how the run was made.
    """

    scores: Path
    tables: tuple[Path, ...] = ()
    figures: tuple[Path, ...] = ()
    claims: Path | None = None
    decisions: tuple[Path, ...] = ()
    gap: tuple[Path, ...] = ()
    self_agreement: tuple[Path, ...] = ()
    disagreements: tuple[Path, ...] = ()
    relabel: tuple[Path, ...] = ()
    carriers: tuple[Path, ...] = ()
    verified: tuple[Path, ...] = ()
    releases: tuple[Path, ...] = ()
    release_changes: tuple[Path, ...] = ()
    manifests: tuple[Path, ...] = ()


class ScoreRow(NamedTuple):
    """One row of the score table; `confusion` is None where the row has no matrix of its own."""

    cell: CellKey
    labels: str
    split: str
    readout: str
    subset: str
    confusion: Confusion | None
    values: Mapping[str, Any]


class GapKey(NamedTuple):
    """What one group of gap quantities is about."""

    cell: CellKey
    labels: str
    split: str
    before: str
    after: str


class GapValue(NamedTuple):
    """One quantity of the gap: as counted where it is a ratio, else its value alone."""

    numerator: int | None
    denominator: int | None
    value: float | None

    @property
    def exact(self) -> Fraction | None:
        """The exact value; of a value alone, the exact value of that float. None where undefined."""
        if self.numerator is not None and self.denominator:
            return Fraction(self.numerator, self.denominator)
        return None if self.value is None else Fraction(self.value)


class About(NamedTuple):
    """A table and the cell it is about."""

    cell: CellKey
    metadata: Mapping[str, Any]
    rows: list[dict[str, Any]]


class RunData:
    """The contents of a run's files."""

    def __init__(self, files: Files, pair: tuple[str, str]) -> None:
        self.files = files
        self.pair = pair

    @cached_property
    def scores(self) -> list[ScoreRow]:
        """All rows of the score table, in its order."""
        rows = read_table(self.files.scores, SCORES, "the score table").to_pylist()
        return [_score(row) for row in rows]

    @cached_property
    def score_index(self) -> dict[tuple[CellKey, str, str, str], ScoreRow]:
        """(cell, labels, split, readout) -> its row over the whole split."""
        return {
            (row.cell, row.labels, row.split, row.readout): row for row in self.scores if row.subset == ALL
        }

    @cached_property
    def cells(self) -> list[CellKey]:
        """The cells of the run, in the order of the score table."""
        return list(dict.fromkeys(row.cell for row in self.scores))

    @cached_property
    def labels(self) -> list[str]:
        """The label sets, the release's own first."""
        return list(dict.fromkeys(row.labels for row in self.scores))

    @cached_property
    def splits(self) -> list[str]:
        """The splits, hardest last; aggregates over splits left out."""
        found = dict.fromkeys(row.split for row in self.scores if row.split not in AGGREGATES)
        return [split for split in SPLITS if split in found] + [s for s in found if s not in SPLITS]

    @cached_property
    def decisions(self) -> dict[CellKey, Decisions]:
        """Decisions by cell."""
        read = [read_decisions(path) for path in self.files.decisions]
        return {CellKey(**one.cell): one for one in read}

    @cached_property
    def gap(self) -> dict[GapKey, dict[str, GapValue]]:
        """Quantities by what they are about."""
        found: dict[GapKey, dict[str, GapValue]] = {}
        for path in self.files.gap:
            for row in read_table(path, GAP, "the gap table").to_pylist():
                key = GapKey(
                    cell_of(row), row["labels"], row["split"], row["readout_from"], row["readout_to"]
                )
                value = GapValue(row["numerator"], row["denominator"], row["value"])
                found.setdefault(key, {})[row["quantity"]] = value
        return found

    @cached_property
    def agreement(self) -> list[About]:
        """How splits answer each other's questions."""
        return _about(self.files.self_agreement, AGREEMENT, "the table of agreement between splits")

    @cached_property
    def disagreements(self) -> list[About]:
        """Questions that splits answer differently."""
        return _about(self.files.disagreements, DISAGREEMENTS, "the list of disagreements between splits")

    @cached_property
    def relabelled(self) -> list[About]:
        """The gap under five choices of labels and rows."""
        return _about(self.files.relabel, RELABELLED, "the table of relabelled gaps")

    @cached_property
    def releases(self) -> list[dict[str, Any]]:
        """What a second release of the same questions changes, by pair, cell, split and readout."""
        return _plain(self.files.releases, RELEASES, "the table of compared releases")

    @cached_property
    def release_changes(self) -> list[dict[str, Any]]:
        """Questions that are answered otherwise under the second release."""
        return _plain(self.files.release_changes, CHANGED, "the list of answers that change with the release")

    @cached_property
    def carriers(self) -> list[About]:
        """Flips by object and by image."""
        return _about(self.files.carriers, CARRIERS, "the table of flips by object and image")


def cell_of(row: Mapping[str, Any]) -> CellKey:
    """Return the cell that a row of a result table is about."""
    return CellKey(*(row[name] for name in CELL.names))


def _score(row: Mapping[str, Any]) -> ScoreRow:
    """Return one row of the score table with its matrix."""
    counts = [row[name] for name in Confusion._fields]
    confusion = None if None in counts else Confusion(*counts)
    names = (row["labels"], row["split"], row["readout"], row["subset"])
    return ScoreRow(cell_of(row), *names, confusion, row)


def _about(paths: Sequence[Path], schema: pa.Schema, what: str) -> list[About]:
    """Read tables whose cell stands in their metadata.

    Raises:
        AuditError: a file cannot be read or does not name its cell.
    """
    found = []
    for path in paths:
        table = read_table(path, schema, what)
        metadata = table_metadata(table)
        if "cell" not in metadata:
            raise AuditError(f"{path}: the metadata does not name the cell; make the file again.")
        found.append(About(cell_of(metadata["cell"]), metadata, table.to_pylist()))
    return found


def _plain(paths: Sequence[Path], schema: pa.Schema, what: str) -> list[dict[str, Any]]:
    """Read tables whose rows name their own cell."""
    return [row for path in paths for row in read_table(path, schema, what).to_pylist()]


def short_names(cells: Sequence[CellKey]) -> dict[CellKey, str]:
    """Return for each cell the shortest name that tells it from the others: the model, and what differs."""
    varying = [
        name for name in CellKey._fields if name != "model" and len({getattr(c, name) for c in cells}) > 1
    ]
    return {cell: ", ".join([cell.model, *(_named(cell, name) for name in varying)]) for cell in cells}


def _named(cell: CellKey, field: str) -> str:
    """Return one field of a cell; a template's name alone would not say what it names."""
    value = str(getattr(cell, field))
    return f"prompt '{value}'" if field == "template" else value
