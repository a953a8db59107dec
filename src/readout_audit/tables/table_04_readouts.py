"""Table 4: every readout on every model (paper, Section 4)."""

from fractions import Fraction

from readout_audit.claims.numbers import read_numbers, select
from readout_audit.exact import printed
from readout_audit.scores.confusion import Confusion
from readout_audit.tables.base import (
    DERIVED,
    NOT_AVAILABLE,
    NOT_RUN,
    PRINTED,
    Cell,
    Column,
    Marked,
    Table,
    n_text,
    text_column,
)
from readout_audit.tables.common import IDENTITY, WITHOUT_LOGITS, absent_word, answer_notes, identity_cells
from readout_audit.tables.first_tokens import COUNTS, first_tokens
from readout_audit.tables.inputs import RunTables, SplitKey

DERIVABLE = ("dynamic_single", "string_parse", "first_token")
"""Readouts that Theorem 1 gives where every answer began with a piece the wider readout reads."""


def build(inputs: RunTables) -> Table:
    """Return F1 under every readout for every model and split; a combination without one has a word."""
    readouts = inputs.options.readouts
    derivable = {
        (tokens.cell, split)
        for tokens in first_tokens(inputs)
        for split in tokens.counts
        if tokens.cell.source in WITHOUT_LOGITS and tokens.all_emitted_are_read_words(split)
    }
    printed_only = _printed(inputs)
    rows: list[tuple[Cell, ...]] = []
    seen: list[Confusion] = []
    for cell, labels, split in inputs.scored_splits():
        row: list[Cell] = []
        for readout in readouts:
            confusion = inputs.confusion(cell, labels, split, readout)
            if confusion is not None:
                seen.append(confusion)
                row.append(confusion.f1)
            elif (cell, split) in derivable and readout in DERIVABLE:
                row.append(_derived(inputs, (cell, labels, split)))
            elif (cell.source, cell.model, split, readout) in printed_only:
                row.append(Marked(printed_only[cell.source, cell.model, split, readout], PRINTED))
            else:
                row.append(absent_word(inputs, cell, readout))
        n = inputs.size(cell, labels, split)
        rows.append((*identity_cells(cell, labels), split, NOT_AVAILABLE if n is None else n, *row))
    rows += _absent_models(inputs)
    return Table(
        number=4,
        name="table_04_readouts",
        title="F1 under the paper's readouts",
        columns=(
            *IDENTITY,
            text_column("split"),
            Column("n"),
            *(Column(readout, decimals=4) for readout in readouts),
        ),
        rows=tuple(rows),
        n=n_text([confusion.n for confusion in seen], "questions per model and split"),
        notes=(
            *_floors(seen),
            *answer_notes(seen),
        ),
    )


def _printed(inputs: RunTables) -> dict[tuple[str, str, str, str], Fraction]:
    """Return (source, model, split, readout) -> the F1 that Table 4 prints, for runs on printed counts."""
    if inputs.sources.claims is None:
        return {}
    numbers = select(read_numbers(inputs.sources.claims), section="Table 4", kind="score", quantity="f1")
    return {
        (COUNTS, number.model, number.split, number.readout): Fraction(number.printed) for number in numbers
    }


def _derived(inputs: RunTables, key: SplitKey) -> Cell:
    """Return the F1 that Theorem 1 gives a readout which nobody measured."""
    measured = inputs.confusion(*key, inputs.options.readout_from)
    return NOT_AVAILABLE if measured is None else Marked(measured.f1, DERIVED)


def _absent_models(inputs: RunTables) -> list[tuple[Cell, ...]]:
    """Return one row per split for each model the table is about and this run has no scores of."""
    cells = list(dict.fromkeys(cell for cell, _, _ in inputs.scored_splits()))
    present = {cell.model for cell in cells}
    dataset = cells[0].dataset if len({cell.dataset for cell in cells}) == 1 else NOT_RUN
    words = (NOT_RUN,) * (len(inputs.options.readouts) + 1)
    return [
        (dataset, model, NOT_RUN, NOT_RUN, NOT_RUN, inputs.options.labels[0], split, *words)
        for model in inputs.options.models
        if model not in present
        for split in inputs.options.splits
    ]


def _floors(seen: list[Confusion]) -> list[str]:
    """Say what F1 two constant answers would get, where half of the questions are label yes."""
    balanced = all(2 * (one.tp + one.misses) == one.valid and one.valid for one in seen)
    if not seen or not balanced:
        return []
    return [
        "Half of the questions are label yes: a constant yes gets F1 "
        f"{printed(Fraction(2, 3), 4)}, a constant no {printed(0, 4)}."
    ]
