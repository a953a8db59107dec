"""What several tables share: columns that say what a row is about, the split to show, recurring notes."""

from collections.abc import Iterable

from readout_audit.scores.confusion import Confusion
from readout_audit.tables.base import NOT_AVAILABLE, NOT_RUN, Column, text_column
from readout_audit.tables.inputs import CellKey, Options, RunTables

IDENTITY: tuple[Column, ...] = tuple(
    text_column(name, identity=True) for name in (*CellKey._fields, "labels")
)
"""Leading columns of every table of scores."""

ADVERSARIAL = "adversarial"

WITHOUT_LOGITS = ("counts", "published")
"""Sources that hold what others computed; a readout they lack cannot be computed from them."""


def hardest_split(options: Options) -> str:
    """Return the split the paper shows where it shows one: adversarial; a run without it shows its last."""
    return ADVERSARIAL if ADVERSARIAL in options.splits else options.splits[-1]


def identity_cells(cell: CellKey, labels: str) -> tuple[str, ...]:
    """Return the cells of `IDENTITY`."""
    return (*cell, labels)


def absent_word(inputs: RunTables, cell: CellKey, readout: str) -> str:
    """Return why a cell has no scores of a readout: nobody asked for it, or its source cannot say."""
    described = inputs.decisions[cell].readouts.get(readout) if cell in inputs.decisions else None
    if cell.source in WITHOUT_LOGITS or (described is not None and not described.get("available", True)):
        return NOT_AVAILABLE
    return NOT_RUN


def answer_notes(confusions: Iterable[Confusion]) -> tuple[str, ...]:
    """Say how unparsed and invalid rows were treated, where there are any (the largest count of a row)."""
    counts = list(confusions)
    unparsed = max((c.unparsed_pos + c.unparsed_neg for c in counts), default=0)
    invalid = max((c.invalid_pos + c.invalid_neg for c in counts), default=0)
    notes = []
    if unparsed:
        notes.append(
            f"Up to {unparsed:,} answers of a row were neither yes nor no (unparsed): they count as wrong, "
            "and never as a yes."
        )
    if invalid:
        notes.append(
            f"Up to {invalid:,} questions of a row have no valid answer (invalid): n counts them, "
            "every rate leaves them out."
        )
    return tuple(notes)
