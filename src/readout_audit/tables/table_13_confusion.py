"""Table 13: confusion matrices of the emitted-token readout (paper, Appendix)."""

from readout_audit.scores.confusion import Confusion
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.common import IDENTITY, answer_notes, identity_cells
from readout_audit.tables.inputs import RunTables

_COUNTS = ("TP", "FP", "TN", "FN", "unparsed, label yes", "unparsed, label no", "invalid")


def build(inputs: RunTables) -> Table:
    """Return the integer matrix of `readout_from` on every split; yes is the positive class."""
    readout = inputs.options.readout_from
    rows: list[tuple[Cell, ...]] = []
    seen: list[Confusion] = []
    for cell, labels, split in inputs.scored_splits():
        confusion = inputs.confusion(cell, labels, split, readout)
        counts: tuple[Cell, ...] = (NOT_AVAILABLE,) * (len(_COUNTS) + 1)
        if confusion is not None:
            seen.append(confusion)
            counts = (
                *confusion[:6],
                confusion.invalid_pos + confusion.invalid_neg,
                confusion.n,
            )
        rows.append((*identity_cells(cell, labels), split, *counts))
    return Table(
        number=13,
        name="table_13_confusion",
        title=f"Confusion matrices under {readout}",
        columns=(*IDENTITY, text_column("split"), *(Column(name) for name in _COUNTS), Column("n")),
        rows=tuple(rows),
        n=n_text([confusion.n for confusion in seen], "questions per split"),
        notes=(
            "Yes is the positive class; TP to FN count answers that were read as yes or no.",
            *answer_notes(seen),
        ),
    )
