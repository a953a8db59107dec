"""What tables and figures read: the files of one run, loaded when first asked for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from readout_audit import contracts, fileio
from readout_audit.corrections import schema as corrections
from readout_audit.errors import AuditError
from readout_audit.probe import schema as probe
from readout_audit.scores.confusion import Confusion
from readout_audit.tables.base import NOT_AVAILABLE, Cell, resampled

CORRECTED = {
    "corrections": corrections.CORRECTIONS,
    "sweeps": corrections.SWEEPS,
    "correctness": corrections.CORRECTNESS,
}
PROBED = {
    "probe_groups": probe.GROUPS,
    "probe_comparisons": probe.COMPARISONS,
    "probe_windows": probe.WINDOWS,
    "probe_excluded": probe.EXCLUDED,
}
"""Kinds of file that hold one cell's rows under a schema whose columns begin with the cell."""

SOURCES = (
    "scores",
    "transitions",
    "gap",
    "decisions",
    "tokens",
    "claims",
    "images",
    *CORRECTED,
    "probe",
    *PROBED,
    "readout_pairs",
    "readout_disagreements",
    "settings_audit",
    "variance",
    "releases",
)
"""The kinds of file a table or figure may need."""

ALL_ROWS = "all"
"""The subset of a score table that is the whole split."""

ORDER = "order"
"""In a registry's `needs`: the decisions must be in the order in which the questions were asked."""

_NULLABLE: dict[pa.DataType, Any] = {
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}
"""Pandas types that keep an absent count absent instead of turning the column into floats."""


class CellKey(NamedTuple):
    """What one decision file is about: the columns of `contracts.CELL`."""

    dataset: str
    model: str
    precision: str
    template: str
    source: str


SplitKey = tuple[CellKey, str, str]
"""(cell, labels, split)."""


@dataclass(frozen=True)
class Sources:
    """The files of one run; a table is given only those it needs. `images` is a folder."""

    scores: Path | None = None
    transitions: tuple[Path, ...] = ()
    gap: tuple[Path, ...] = ()
    decisions: tuple[Path, ...] = ()
    tokens: tuple[Path, ...] = ()
    claims: Path | None = None
    images: Path | None = None
    corrections: tuple[Path, ...] = ()
    sweeps: tuple[Path, ...] = ()
    correctness: tuple[Path, ...] = ()
    probe: tuple[Path, ...] = ()
    probe_groups: tuple[Path, ...] = ()
    probe_comparisons: tuple[Path, ...] = ()
    probe_windows: tuple[Path, ...] = ()
    probe_excluded: tuple[Path, ...] = ()
    readout_pairs: tuple[Path, ...] = ()
    readout_disagreements: tuple[Path, ...] = ()
    settings_audit: Path | None = None
    variance: Path | None = None
    releases: Path | None = None


@dataclass(frozen=True)
class Options:
    """What of the run a table shows, and in which order.

    Attributes:
        splits: the run's splits.
        readouts: the columns of Table 4.
        models: the rows of Table 4; those without files are `not_run`.
        labels: label sets, the primary one first.
        readout_from, readout_to: the pair whose gap is shown; `from` reads the emitted token's side.
        reference_model: the model whose ids the legacy readouts copy.
        samples: question ids that Figure 6 takes first, where their outcome is one it shows.
    """

    splits: tuple[str, ...]
    readouts: tuple[str, ...] = ("legacy_2tok", "legacy_8tok", "dynamic_single", "string_parse")
    models: tuple[str, ...] = ()
    labels: tuple[str, ...] = ("pope",)
    readout_from: str = "legacy_8tok"
    readout_to: str = "legacy_2tok"
    reference_model: str | None = None
    samples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Decisions:
    """One decision file: its rows in the file's order and what it says about its readouts."""

    rows: pd.DataFrame
    metadata: Mapping[str, Any]

    @property
    def readouts(self) -> Mapping[str, Mapping[str, Any]]:
        """What each readout read: ids, pieces, whether it is available and why not."""
        described: Mapping[str, Mapping[str, Any]] = self.metadata.get("readouts", {})
        return described

    def pieces(self) -> dict[int, str]:
        """Return the vocabulary pieces of all ids the file names: those read and those generated."""
        named = [readout.get("pieces") or {} for readout in self.readouts.values()]
        named.append(self.metadata.get("first_token_pieces") or {})
        return {int(token): piece for pieces in named for token, piece in pieces.items() if piece is not None}


class RunTables:
    """The tables of one run as pandas frames, each loaded once and only if asked for."""

    def __init__(self, sources: Sources, options: Options) -> None:
        self.sources = sources
        self.options = options
        self._rows: dict[str, pd.DataFrame] = {}

    @cached_property
    def scores(self) -> pd.DataFrame:
        """All scores of the run (`contracts.SCORES`)."""
        if self.sources.scores is None:
            raise ValueError("this table needs scores, and no score file was given")
        return _frame(fileio.read_table(self.sources.scores, contracts.SCORES, "the score table"))

    @cached_property
    def transitions(self) -> pd.DataFrame:
        """All transitions of the run (`contracts.TRANSITIONS`)."""
        return _frames(self.sources.transitions, contracts.TRANSITIONS, "the transition table")

    @cached_property
    def gap(self) -> pd.DataFrame:
        """All gap quantities of the run (`contracts.GAP`)."""
        return _frames(self.sources.gap, contracts.GAP, "the gap table")

    @cached_property
    def decisions(self) -> dict[CellKey, Decisions]:
        """Decisions by cell, in the order the files were given."""
        found: dict[CellKey, Decisions] = {}
        for path in self.sources.decisions:
            cell, decisions = read_decisions(path)
            if cell in found:
                raise AuditError(f"{path}: a second decision file of {'/'.join(cell)}; give each once.")
            found[cell] = decisions
        return found

    def rows(self, kind: str) -> pd.DataFrame:
        """Return all rows of a kind of `CORRECTED` or `PROBED`, in the order the files were given."""
        if kind not in self._rows:
            self._rows[kind] = _frames(
                getattr(self.sources, kind), (CORRECTED | PROBED)[kind], f"the {kind} file"
            )
        return self._rows[kind]

    @cached_property
    def _windows(self) -> dict[CellKey, tuple[int, int] | None]:
        """The fixed attention positions of each cell, as the metadata of the probe's files say."""
        paths = [path for kind in ("probe", *PROBED) for path in getattr(self.sources, kind)]
        described = [fileio.table_metadata(pq.read_schema(path).empty_table()) for path in paths]
        return {CellKey(**meta["cell"]): _ends(meta.get("attention_window")) for meta in described}

    def window(self, cell: CellKey) -> tuple[int, int] | None:
        """Return the fixed positions, end exclusive, whose attention a cell's probe holds; None where it has none."""
        return self._windows.get(cell)

    @cached_property
    def probe(self) -> dict[CellKey, Decisions]:
        """Answers of the probe one by one (`probe.schema.PROBE`) by cell, in the order the files were given."""
        tables = [fileio.read_table(path, probe.PROBE, "the probe file") for path in self.sources.probe]
        described = [(table, fileio.table_metadata(table)) for table in tables]
        return {CellKey(**meta["cell"]): Decisions(_frame(table), meta) for table, meta in described}

    @cached_property
    def token_maps(self) -> dict[str, Mapping[str, Any]]:
        """Token maps by model."""
        maps = [fileio.read_json(path, "the token map") for path in self.sources.tokens]
        return {token_map["model"]: token_map for token_map in maps}

    @cached_property
    def _confusions(self) -> dict[tuple[CellKey, str, str, str, str], Confusion | None]:
        """Counts by (cell, labels, split, readout, subset); None where a row has none."""
        return {
            (_cell(row), row["labels"], row["split"], row["readout"], row["subset"]): (
                None
                if any(pd.isna(row[name]) for name in Confusion._fields)
                else Confusion(*(int(row[name]) for name in Confusion._fields))
            )
            for row in self.scores.to_dict("records")
        }

    def confusion(
        self, cell: CellKey, labels: str, split: str, readout: str, subset: str = ALL_ROWS
    ) -> Confusion | None:
        """Return the counts of one readout, or None where the source cannot say."""
        return self._confusions.get((cell, labels, split, readout, subset))

    @cached_property
    def _quantities(self) -> dict[tuple[CellKey, str, str, str], Mapping[Any, Any]]:
        """Gap rows of the pair by (cell, labels, split, quantity)."""
        frame = self.gap
        pair = (frame["readout_from"] == self.options.readout_from) & (
            frame["readout_to"] == self.options.readout_to
        )
        return {
            (_cell(row), row["labels"], row["split"], row["quantity"]): row
            for row in frame[pair].to_dict("records")
        }

    def quantity(self, cell: CellKey, labels: str, split: str, name: str) -> Fraction | None:
        """Return one gap quantity of the pair; None where it is undefined or not there."""
        row = self._quantities.get((cell, labels, split, name))
        return None if row is None else _exact(row)

    def interval(self, cell: CellKey, labels: str, split: str, name: str) -> Cell:
        """Return the 95% interval of a gap quantity as a cell, `not_available` where none was computed."""
        if (cell, labels, split, f"{name}_ci_low") not in self._quantities:
            return NOT_AVAILABLE
        low, high = (self.quantity(cell, labels, split, f"{name}_ci_{end}") for end in ("low", "high"))
        left_out = self._quantities.get((cell, labels, split, f"{name}_ci_undefined"))
        counts = (0, 0) if left_out is None else (int(left_out["numerator"]), int(left_out["denominator"]))
        return resampled(low, high, *counts)

    def in_order(self, keys: Iterable[SplitKey]) -> list[SplitKey]:
        """Return the keys the options name: cells as first met, labels and splits as in the options."""
        found = dict.fromkeys(keys)
        return [
            (cell, labels, split)
            for cell in dict.fromkeys(key[0] for key in found)
            for labels in self.options.labels
            for split in self.options.splits
            if (cell, labels, split) in found
        ]

    def size(self, cell: CellKey, labels: str, split: str) -> int | None:
        """Return how many questions of a split were scored, None where no readout of it was."""
        readouts = dict.fromkeys(key[3] for key in self._confusions)
        found = (self.confusion(cell, labels, split, readout) for readout in readouts)
        return next((confusion.n for confusion in found if confusion is not None), None)

    def scored_splits(self, subset: str = ALL_ROWS) -> list[SplitKey]:
        """Return each (cell, labels, split) with scores of a subset of its rows."""
        return self.in_order(key[:3] for key in self._confusions if key[4] == subset)


def read_decisions(path: Path) -> tuple[CellKey, Decisions]:
    """Read one decision file, whatever its readouts.

    Raises:
        AuditError: the file is missing, is not a decision file, or does not say which cell it is about.
    """
    try:
        readouts = contracts.readouts_of(pq.read_schema(path).empty_table())
    except (OSError, pa.ArrowInvalid) as error:
        raise AuditError(f"{path}: the decision file cannot be read ({error}).") from error
    table = fileio.read_table(path, contracts.decisions_schema(readouts), "the decision file")
    metadata = fileio.table_metadata(table)
    try:
        cell = CellKey(**metadata["cell"])
    except (KeyError, TypeError) as error:
        raise AuditError(f"{path}: the decision file does not say its cell; make it again.") from error
    return cell, Decisions(_frame(table), metadata)


def _ends(window: Sequence[int] | None) -> tuple[int, int] | None:
    """Return the two ends of a window that JSON holds as a list."""
    return None if window is None else (int(window[0]), int(window[1]))


def _frames(paths: tuple[Path, ...], schema: pa.Schema, what: str) -> pd.DataFrame:
    """Read several files of one schema into one frame, in the order given."""
    return _frame(pa.concat_tables([schema.empty_table(), *(_read(path, schema, what) for path in paths)]))


def _read(path: Path, schema: pa.Schema, what: str) -> pa.Table:
    """Read one file without its metadata, so that files of several cells can be joined."""
    return fileio.read_table(path, schema, what).replace_schema_metadata(None)


def _frame(table: pa.Table) -> pd.DataFrame:
    """Return an Arrow table as a frame whose integers stay integers."""
    frame: pd.DataFrame = table.to_pandas(types_mapper=_NULLABLE.get)
    return frame


def _exact(row: Mapping[Any, Any]) -> Fraction | None:
    """Return the value of a gap row: its exact ratio, or its float where no counts are behind it."""
    if not pd.isna(row["numerator"]) and not pd.isna(row["denominator"]):
        return Fraction(int(row["numerator"]), int(row["denominator"])) if row["denominator"] else None
    return None if pd.isna(row["value"]) else Fraction(float(row["value"]))


def _cell(row: Mapping[Any, Any]) -> CellKey:
    """Return the cell of one row of a score, transition or gap frame."""
    return CellKey(*(row[name] for name in CellKey._fields))
