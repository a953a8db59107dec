"""Table 11: the readouts under each prompt template, on the first 500 questions (paper, Appendix)."""

from readout_audit.scores.confusion import Confusion
from readout_audit.tables.base import NOT_RUN, Cell, Column, Table, n_text, text_column
from readout_audit.tables.common import IDENTITY, absent_word, answer_notes, hardest_split, identity_cells
from readout_audit.tables.inputs import RunTables

SUBSET = "first_500"
_WITHOUT = "Nothing of this run was scored on them: subsets does not list 500, or the split's order is not known or has fewer."


def build(inputs: RunTables) -> Table:
    """Return the scores of every cell on the first 500 questions of the hardest split, by readout."""
    options = inputs.options
    hardest = hardest_split(options)
    rows: list[tuple[Cell, ...]] = []
    seen: list[Confusion] = []
    keys = [key for key in inputs.scored_splits(SUBSET) if key[2] == hardest]
    for cell, labels, split in keys:
        for readout in options.readouts:
            confusion = inputs.confusion(cell, labels, split, readout, SUBSET)
            metrics: tuple[Cell, ...] = (absent_word(inputs, cell, readout),) * 5
            if confusion is not None:
                seen.append(confusion)
                rates = (confusion.f1, confusion.precision, confusion.recall, confusion.yes_rate)
                metrics = (confusion.n, *rates)
            rows.append((*identity_cells(cell, labels), split, readout, *metrics))
    present = {cell.model for cell, _, _ in keys}
    for model in options.models:
        if model not in present:
            about = (NOT_RUN, model, NOT_RUN, NOT_RUN, NOT_RUN, options.labels[0], hardest)
            rows += [(*about, readout, *(NOT_RUN,) * 5) for readout in options.readouts]
    return Table(
        number=11,
        name="table_11_templates",
        title=f"Readouts under each template, first 500 questions of {hardest}",
        columns=(
            *IDENTITY,
            text_column("split", identity=True),
            text_column("readout"),
            Column("n"),
            Column("F1", decimals=4),
            Column("P", decimals=4),
            Column("R", decimals=4),
            Column("yes-rate", decimals=3),
        ),
        rows=tuple(rows),
        n=n_text([confusion.n for confusion in seen], "questions per model and template"),
        notes=(
            "The first 500 are those of the release's own order.",
            *([] if keys else [_WITHOUT]),
            *answer_notes(seen),
        ),
    )
