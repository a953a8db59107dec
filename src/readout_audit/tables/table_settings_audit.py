"""The same model under every precision, template and release that was run, beside its first setting."""

from fractions import Fraction
from typing import Any, NamedTuple

from readout_audit import fileio
from readout_audit.audit.schema import COMPARISONS, GAP, MODEL, REFERENCE
from readout_audit.exact import printed
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, resampled, text_column
from readout_audit.tables.common import IDENTITY, hardest_split
from readout_audit.tables.inputs import CellKey, RunTables
from readout_audit.tables.measured import number

SAME = "reference"
NONE = "–"
"""Stands where there is nothing to count: the gap is no answer, and a readout of texts compares no logits."""


class Settings(NamedTuple):
    """The rows of a settings audit and what its file says of them."""

    rows: list[dict[str, Any]]
    metadata: dict[str, Any]


def settings_audit(inputs: RunTables) -> Settings:
    """Read the settings audit of the run; no rows where it has no file."""
    if inputs.sources.settings_audit is None:
        return Settings([], {})
    table = fileio.read_table(inputs.sources.settings_audit, COMPARISONS, "the settings audit")
    return Settings(table.to_pylist(), fileio.table_metadata(table))


def build(inputs: RunTables) -> Table:
    """Return one row per setting and readout, on the hardest split."""
    split, audit = hardest_split(inputs.options), settings_audit(inputs)
    shown = [
        row
        for labels in inputs.options.labels
        for row in audit.rows
        if row["varied"] != MODEL and row["split"] == split and row["labels"] == labels
    ]
    primary = [row for row in shown if row["labels"] == inputs.options.labels[0]]
    without_logits = frozenset(audit.metadata.get("without_near_ties", ()))
    resamples = int(audit.metadata.get("bootstrap", {}).get("resamples", 0))
    return Table(
        number=None,
        name="table_settings_audit",
        title="The same questions under other settings: F1, and answers that change",
        columns=(
            *IDENTITY,
            text_column("split"),
            text_column("readout"),
            text_column("differs in"),
            Column("F1", decimals=4),
            Column("ΔF1", decimals=4),
            Column("ΔF1 95%", decimals=4),
            Column("questions", group="against the reference"),
            Column("changed", group="against the reference"),
            Column("no to yes", group="against the reference"),
            Column("yes to no", group="against the reference"),
            Column("of changed, near-tied", group="against the reference"),
            Column("near-tied"),
        ),
        rows=tuple(_row(inputs, row, without_logits, resamples) for row in shown),
        n=n_text([row["n"] for row in shown if row["n"] is not None], "questions per setting"),
        notes=(*_notes(audit.metadata, inputs), *_largest(primary), *_gaps(primary)),
    )


def _row(
    inputs: RunTables, row: dict[str, Any], without_logits: frozenset[str], resamples: int
) -> tuple[Cell, ...]:
    """Return one row of the table.

    Args:
        inputs: the run.
        row: of the settings audit.
        without_logits: the cells whose source has none.
        resamples: behind the intervals.
    """
    reference, gap = row["varied"] == REFERENCE, row["readout"] == GAP
    no_logits = NOT_AVAILABLE if "/".join(row[name] for name in CellKey._fields) in without_logits else NONE
    counts = [_count(row[name], NOT_AVAILABLE) for name in ("n", "changed", "no_to_yes", "yes_to_no")]
    near = [_count(row[name], no_logits) for name in ("changed_near_ties", "near_ties")]
    if reference:
        counts[1:], near[0] = [SAME] * 3, SAME
    if gap:
        counts, near = [NONE] * 4, [NONE] * 2
    here, there = (_value(inputs, row, prefix) for prefix in ("", "reference_"))
    delta = None if here is None or there is None else here - there
    return (
        *(row[name] for name in CellKey._fields),
        row["labels"],
        row["split"],
        row["readout"],
        SAME if reference else row["varied"],
        here,
        SAME if reference else delta,
        SAME if reference else None if delta is None else _interval(row, resamples),
        *counts,
        *near,
    )


def _interval(row: dict[str, Any], resamples: int) -> Cell:
    """Return the interval of ΔF1, `not_available` where the two were not asked about the same images."""
    if row["delta_undefined"] is None:
        return NOT_AVAILABLE
    low, high = (number(row[name]) for name in ("delta_low", "delta_high"))
    return resampled(low, high, row["delta_undefined"], resamples)


def _count(value: int | None, why_not: str) -> Cell:
    """Return a count as a cell, with a word where there is none."""
    return why_not if value is None else int(value)


def _value(inputs: RunTables, row: dict[str, Any], prefix: str) -> Fraction | None:
    """Return the exact F1, or gap, of a row's cell (prefix "") or of its reference."""
    settings = {name: row[f"{prefix}{name}"] for name in CellKey._fields[:-1]}
    cell = CellKey(**settings, source=row["source"])
    if row["readout"] != GAP:
        return _f1(inputs, cell, row, row["readout"])
    before, after = (
        _f1(inputs, cell, row, name) for name in (inputs.options.readout_from, inputs.options.readout_to)
    )
    return None if before is None or after is None else before - after


def _f1(inputs: RunTables, cell: CellKey, row: dict[str, Any], readout: str) -> Fraction | None:
    """Return the exact F1 of a readout of a cell, on the labels and split of a row."""
    confusion = inputs.confusion(cell, row["labels"], row["split"], readout)
    return None if confusion is None else confusion.f1


def _notes(metadata: dict[str, Any], inputs: RunTables) -> tuple[str, ...]:
    """Say what the columns mean."""
    within = metadata.get("near_tie_within_steps")
    pair = inputs.options
    return (
        "Reference: the first setting of the model in this run. ΔF1: F1 minus that of the reference; its interval "
        "is paired (the same resampled images for both).",
        f"gap: F1 under {pair.readout_from} minus F1 under {pair.readout_to}; its Δ asks whether the gap is the same.",
        f"Near-tied: the two compared logits lie within {within} steps of the arithmetic's number format at their "
        "size, so that another batch or card may decide otherwise. Changed, near-tied: in either setting.",
        "All splits: results/<run>/settings_audit.parquet.",
    )


def _largest(shown: list[dict[str, Any]]) -> tuple[str, ...]:
    """Say which setting moved F1 most, beside how far the readout does."""
    moved = [
        row
        for row in shown
        if row["delta"] is not None and row["varied"] != REFERENCE and row["readout"] != GAP
    ]
    spans = _readout_spans(shown)
    if not moved or not spans:
        return ()
    most = max(moved, key=lambda row: abs(row["delta"]))
    where, span, low, high = max(spans, key=lambda one: one[1])
    return (
        f"The largest move of a setting is {_text(most['delta'])} ({most['model']}, {most['varied']}: "
        f"{most['precision']}, {most['template']}, {most['dataset']}, under {most['readout']}); the largest move of "
        "the readout is "
        f"{_text(span)} ({where}: from {low} to {high}).",
    )


def _readout_spans(shown: list[dict[str, Any]]) -> list[tuple[str, float, str, str]]:
    """Return, per setting, how far F1 moves between readouts, and between which two."""
    by_cell: dict[tuple[str, ...], dict[str, float]] = {}
    for row in shown:
        if row["readout"] != GAP and row["value"] is not None:
            key = tuple(row[name] for name in ("model", "precision", "template", "dataset"))
            by_cell.setdefault(key, {})[row["readout"]] = row["value"]
    spans = []
    for key, values in by_cell.items():
        low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
        spans.append((", ".join(key), values[high] - values[low], low, high))
    return spans


def _gaps(shown: list[dict[str, Any]]) -> tuple[str, ...]:
    """Say between which values the gap of the pair lies over the settings of each model."""
    found: dict[str, list[float]] = {}
    for row in shown:
        if row["readout"] == GAP and row["value"] is not None:
            found.setdefault(row["model"], []).append(row["value"])
    return tuple(
        f"{model}: the gap lies between {_text(min(gaps))} and {_text(max(gaps))} over {len(gaps)} settings."
        for model, gaps in found.items()
        if len(gaps) > 1
    )


def _text(value: float) -> str:
    """Return a difference of F1 as it is printed."""
    return printed(Fraction(value), 4)
