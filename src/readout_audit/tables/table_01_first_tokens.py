"""Table 1: what the model really says first, by token id (paper, Section 3)."""

from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.first_tokens import COUNTS, FirstTokens, first_tokens
from readout_audit.tables.inputs import CellKey, RunTables

NOT_RECORDED = "not recorded"
"""In place of a piece that the source does not name."""
ALL, NO_TOKEN = "all", "no first token"
ANY = "any"
NOT_READ = "never"


def build(inputs: RunTables) -> Table:
    """Return how often each first token was generated: every id of the pair's readouts, then all others."""
    options = inputs.options
    found = first_tokens(inputs)
    splits = [split for split in options.splits if any(split in tokens.n for tokens in found)]
    return Table(
        number=1,
        name="table_01_first_tokens",
        title="First generated token of every answer",
        columns=(
            *(text_column(name, identity=True) for name in CellKey._fields),
            Column("token id"),
            text_column("piece"),
            text_column(f"read by {options.readout_from}"),
            text_column(f"read by {options.readout_to}"),
            *(Column(split) for split in splits),
            Column("total"),
        ),
        rows=tuple(row for tokens in found for row in _rows(tokens, splits)),
        n=n_text([count for tokens in found for count in tokens.n.values()], "questions per split"),
        notes=(
            "Ids that a readout reads are listed although nothing began with them; every other id that was "
            "generated is listed below them. A question asked in several splits counts in each.",
            *_source_notes(found),
        ),
    )


def _rows(tokens: FirstTokens, splits: list[str]) -> list[tuple[Cell, ...]]:
    """Return the rows of one cell: read ids, other ids, rows without a token if any, and all.

    A cell whose source knows no first token has one row that says so, instead of one for every id.
    """
    rows: list[tuple[Cell, ...]] = []
    every = (*tokens.cell, ALL, ALL, "-", "-", *_counts([tokens.n.get(split) for split in splits]))
    if not tokens.counts:
        return [(*tokens.cell, ANY, ANY, "-", "-", *_counts([None] * len(splits))), every]
    # Neither readout has ids here, as with a model behind a server: nothing is said of what they read.
    not_read = NOT_READ if tokens.sides else NOT_AVAILABLE
    for token in (*tokens.sides, *tokens.others):
        side = tokens.sides.get(token)
        rows.append(
            (
                *tokens.cell,
                token,
                tokens.pieces.get(token) or NOT_RECORDED,
                f"as {side}" if side else not_read,
                f"as {side}" if side and token in tokens.narrow else not_read,
                *_counts(
                    [tokens.counts[split][token] if split in tokens.counts else None for split in splits]
                ),
            )
        )
    missing = [tokens.unknown(split) if split in tokens.counts else None for split in splits]
    if any(missing):
        rows.append((*tokens.cell, "none", NO_TOKEN, not_read, not_read, *_counts(missing)))
    return [*rows, every]


def _counts(counts: list[int | None]) -> tuple[Cell, ...]:
    """Return the cells of a row and their total; a count the source does not know has a word."""
    known = [count for count in counts if count is not None]
    return (
        *(NOT_AVAILABLE if count is None else count for count in counts),
        sum(known) if len(known) == len(counts) else NOT_AVAILABLE,
    )


def _source_notes(found: list[FirstTokens]) -> list[str]:
    """Say what of the counts is printed and not counted from rows."""
    return [
        f"{tokens.cell.model}: the integers of the paper's own Table 1."
        + (
            " They add up to n on each split, so every other id was generated on no question."
            if not any(tokens.unknown(split) for split in tokens.counts)
            else ""
        )
        for tokens in found
        if tokens.cell.source == COUNTS and tokens.counts
    ]
