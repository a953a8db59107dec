"""The ways in which readouts differ on a question, how often each occurs, and an example of each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from readout_audit import fileio
from readout_audit.contracts import INVALID, NO, UNPARSED, YES
from readout_audit.errors import AuditError
from readout_audit.matrix.disagreements import Pattern, patterns
from readout_audit.matrix.schema import listing_schema, readouts_listed
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.inputs import CellKey, RunTables
from readout_audit.tables.readout_scores import first_cells

MOST = 10
"""Patterns shown of each split; the others are counted together."""

NOBODY = "none"
OTHERS = "all other ways"


class Listing(NamedTuple):
    """One cell's list: the cell, its readouts, the rows, and how many questions each split has."""

    cell: CellKey
    readouts: list[str]
    rows: list[dict[str, Any]]
    sizes: dict[str, int]


def build(inputs: RunTables) -> Table:
    """Return one row per pattern of decisions, by model and split, the most frequent first."""
    listings = [read_listing(path) for path in inputs.sources.readout_disagreements]
    shown = first_cells(listing.cell for listing in listings)
    rows = [
        row
        for listing in listings
        if listing.cell in shown
        for split in inputs.options.splits
        for row in _split_rows(listing, split)
    ]
    sizes = [n for listing in listings if listing.cell in shown for n in listing.sizes.values()]
    return Table(
        number=None,
        name="table_disagreements",
        title="How readouts differ on a question",
        columns=(
            *(text_column(name, identity=True) for name in CellKey._fields),
            text_column("split"),
            *(Column(name, group="read as", align="left") for name in ("yes", "no", "neither")),
            Column("all", group="questions"),
            Column("label yes", group="questions"),
            Column("label no", group="questions"),
            text_column("example"),
        ),
        rows=tuple(rows),
        n=n_text(sizes, "questions per split"),
        notes=(
            f"A split's {MOST} most frequent ways are shown. Neither: unparsed or invalid.",
            "Questions on which all readouts agree are in no row. The questions one by one, with every decision "
            "and margin: results/<run>/readout_disagreements/, as Parquet and CSV.",
            *(
                ["Each model in its first setting; the files hold every setting."]
                if len(listings) > len(shown)
                else []
            ),
        ),
    )


def read_listing(path: Path) -> Listing:
    """Read the list of one cell.

    Raises:
        AuditError: the file cannot be read, or does not name its cell.
    """
    try:
        readouts = readouts_listed(pq.read_schema(path).empty_table())
    except OSError as error:
        raise AuditError(f"{path}: the list of disagreements cannot be read ({error}).") from error
    table = fileio.read_table(path, listing_schema(readouts), "the list of disagreements")
    metadata = fileio.table_metadata(table)
    if "cell" not in metadata or "rows" not in metadata:
        raise AuditError(f"{path}: the list of disagreements does not say its cell; make it again.")
    return Listing(CellKey(**metadata["cell"]), readouts, table.to_pylist(), metadata["rows"])


def _split_rows(listing: Listing, split: str) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows of one split."""
    found = patterns((row for row in listing.rows if row["split"] == split), listing.readouts)
    for pattern in found[:MOST]:
        said = [pattern.said[YES], pattern.said[NO], (*pattern.said[UNPARSED], *pattern.said[INVALID])]
        readers = [", ".join(names) or NOBODY for names in said]
        yield (*listing.cell, split, *readers, *_counts([pattern]), _example(pattern))
    if rest := found[MOST:]:
        yield (*listing.cell, split, OTHERS, OTHERS, OTHERS, *_counts(rest), _example(rest[0]))


def _counts(several: list[Pattern]) -> tuple[int, ...]:
    """Return the questions of several patterns: all, label yes, label no."""
    by_label = [sum(pattern.by_label[label] for pattern in several) for label in (YES, NO)]
    return (sum(by_label), *by_label)


def _example(pattern: Pattern) -> str:
    """Return the first question of a pattern; a word where the source does not know its questions."""
    known = [pattern.example[name] for name in ("image", "question") if pattern.example[name]]
    return ": ".join(known) or NOT_AVAILABLE
