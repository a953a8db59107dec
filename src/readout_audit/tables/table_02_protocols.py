"""Table 2: the same answers under two readouts (paper, Section 3)."""

from readout_audit.scores.confusion import Confusion
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.common import IDENTITY, answer_notes, identity_cells
from readout_audit.tables.inputs import RunTables


def build(inputs: RunTables) -> Table:
    """Return precision, recall, F1 and yes-rate of the two readouts of the gap pair, and their gap."""
    to, emitted = inputs.options.readout_to, inputs.options.readout_from
    rows: list[tuple[Cell, ...]] = []
    intervals: list[Cell] = []
    seen: list[Confusion] = []
    for cell, labels, split in inputs.scored_splits():
        pair = [inputs.confusion(cell, labels, split, readout) for readout in (to, emitted)]
        seen += [confusion for confusion in pair if confusion is not None]
        n = next((confusion.n for confusion in pair if confusion is not None), NOT_AVAILABLE)
        metrics = [cell for confusion in pair for cell in _metrics(confusion)]
        intervals.append(inputs.interval(cell, labels, split, "delta_f1"))
        rows.append((*identity_cells(cell, labels), split, n, *metrics, _gap(*pair)))
    resampled = any(interval != NOT_AVAILABLE for interval in intervals)
    if resampled:
        rows = [(*row, interval) for row, interval in zip(rows, intervals, strict=True)]
    return Table(
        number=2,
        name="table_02_protocols",
        title=f"Two protocols on the same answers: {to} and {emitted}",
        columns=(
            *IDENTITY,
            text_column("split"),
            Column("n"),
            *_columns(to),
            *_columns(emitted),
            Column("gap", decimals=4),
            *([Column("95% interval", decimals=4)] if resampled else []),
        ),
        rows=tuple(rows),
        n=n_text([confusion.n for confusion in seen], "questions per split"),
        notes=(
            f"gap: F1 under {emitted} minus F1 under {to}, taken of the exact ratios and rounded once.",
            *(["95% interval: of the gap, images resampled."] if resampled else []),
            *answer_notes(seen),
        ),
    )


def _columns(readout: str) -> tuple[Column, ...]:
    """Return the four columns of one readout."""
    return (
        Column("P", decimals=4, group=readout),
        Column("R", decimals=4, group=readout),
        Column("F1", decimals=4, group=readout),
        Column("yes-rate", decimals=3, group=readout),
    )


def _metrics(confusion: Confusion | None) -> tuple[Cell, ...]:
    """Return the four cells of one readout."""
    if confusion is None:
        return (NOT_AVAILABLE,) * 4
    return confusion.precision, confusion.recall, confusion.f1, confusion.yes_rate


def _gap(to: Confusion | None, emitted: Confusion | None) -> Cell:
    """Return the exact difference of the two F1 (None where one of them is undefined)."""
    if to is None or emitted is None:
        return NOT_AVAILABLE
    return None if to.f1 is None or emitted.f1 is None else emitted.f1 - to.f1
