"""What a second release of the same questions changes: spelling, answers, F1."""

from typing import Any

from readout_audit import fileio
from readout_audit.compare.releases import MISSPELT, RELEASES, confusion
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.inputs import RunTables


def build(inputs: RunTables) -> Table:
    """Return one row per pair of releases, cell, split and readout."""
    found = _rows(inputs)
    return Table(
        number=None,
        name="table_releases",
        title="Two releases of the same questions: other spelling, other answers, other F1",
        columns=(
            *(text_column(name, identity=True) for name in ("model", "precision", "template", "source")),
            text_column("release A", identity=True),
            text_column("release B", identity=True),
            text_column("split"),
            text_column("readout"),
            Column("asked", group="in the same words"),
            Column("changed", group="in the same words"),
            Column("asked", group="in other words"),
            Column("misspelt in A", group="in other words"),
            Column("misspelt in B", group="in other words"),
            Column("changed", group="in other words"),
            Column("yes to no", group="in other words"),
            Column("no to yes", group="in other words"),
            Column("near-tied", group="in other words"),
            Column("A", decimals=4, group="F1"),
            Column("B", decimals=4, group="F1"),
            Column("B minus A", decimals=4, group="F1"),
        ),
        rows=tuple(_row(row) for row in found),
        n=n_text([row["n_a"] for row in found], "questions per split of release A"),
        notes=(
            "Rows are joined by picture and exact question, else by picture and object; never by question id.",
            f"Misspelt: the question says {MISSPELT}. Changed: the answer under B is not that under A. Near-tied: "
            "changed, and both margins within two steps of the arithmetic that the records name.",
            "A changed answer to a question in the same words shows that the two were not asked by one "
            "deterministic setup.",
            *_alone(found),
        ),
    )


def _rows(inputs: RunTables) -> list[dict[str, Any]]:
    """Return the rows of the run's splits, in their order within each pair."""
    if inputs.sources.releases is None:
        return []
    rows: list[dict[str, Any]] = fileio.read_table(
        inputs.sources.releases, RELEASES, "the compared releases"
    ).to_pylist()
    order = {split: place for place, split in enumerate(inputs.options.splits)}
    pairs = list(dict.fromkeys(_pair(row) for row in rows))
    kept = [row for row in rows if row["split"] in order]
    return sorted(kept, key=lambda row: (pairs.index(_pair(row)), order[row["split"]]))


def _pair(row: dict[str, Any]) -> tuple[str, ...]:
    """Return what a row is about beside split and readout."""
    return tuple(row[name] for name in ("model", "precision", "template", "release_a", "release_b"))


def _row(row: dict[str, Any]) -> tuple[Cell, ...]:
    """Return one row of the table."""
    before, after = (confusion(row, side).f1 for side in "ab")
    near = row["reworded_near"]
    counts = ("same", "same_changed", "reworded", "misspelt_a", "misspelt_b", "reworded_changed")
    ways = ("reworded_yes_to_no", "reworded_no_to_yes")
    names = ("model", "precision", "template", "source", "release_a", "release_b", "split", "readout")
    return (
        *(row[name] for name in names),
        *(int(row[name]) for name in (*counts, *ways)),
        NOT_AVAILABLE if near is None else int(near),
        before,
        after,
        None if before is None or after is None else after - before,
    )


def _alone(rows: list[dict[str, Any]]) -> list[str]:
    """Say which questions have no partner, and whose label differs."""
    said = {}
    for row in rows:
        where = f"{row['release_a']} and {row['release_b']}, {row['split']}"
        if row["only_a"] or row["only_b"] or row["labels_differ"]:
            said[where] = (
                f"{where}: {row['only_a']:,} questions stand in A alone, {row['only_b']:,} in B alone, and "
                f"{row['labels_differ']:,} shared ones have another label."
            )
    return list(said.values())
