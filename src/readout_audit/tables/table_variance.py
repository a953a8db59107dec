"""What moves F1: variance components over the run's grid of readouts and settings."""

from typing import Any

from readout_audit import fileio
from readout_audit.audit.schema import VARIANCE
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.readout_scores import between, exactly

TOGETHER = "–"
"""Stands where a column is about one factor and the row about several."""


def variance(inputs: RunTables) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Read the variance components of the run, labels and splits in its order; none where it has no file."""
    if inputs.sources.variance is None:
        return [], {}
    table = fileio.read_table(inputs.sources.variance, VARIANCE, "the variance components")
    rows = table.to_pylist()
    ordered = [
        row
        for labels in inputs.options.labels
        for split in inputs.options.splits
        for row in rows
        if row["labels"] == labels and row["split"] == split
    ]
    return ordered, fileio.table_metadata(table)


def grid_texts(metadata: dict[str, Any]) -> tuple[str, ...]:
    """Say, per scope, which levels of which factors are crossed."""
    return tuple(
        f"{scope}: " + "; ".join(f"{factor} ({', '.join(names)})" for factor, names in levels.items())
        for scope, levels in metadata.get("levels", {}).items()
        if levels
    )


def left_out_texts(metadata: dict[str, Any]) -> tuple[str, ...]:
    """Say, per scope, which readouts are not in the grid, since a grid has a value everywhere."""
    return tuple(
        f"Left out of {scope}: " + "; ".join(f"{readout} ({why})" for readout, why in found.items()) + "."
        for scope, found in metadata.get("left_out", {}).items()
        if found
    )


def build(inputs: RunTables) -> Table:
    """Return one row per factor and interaction, by labels, split and scope."""
    rows, metadata = variance(inputs)
    return Table(
        number=None,
        name="table_variance",
        title="What moves F1: shares of its variance over the grid of readouts and settings",
        columns=(
            text_column("labels", identity=True),
            text_column("split", identity=True),
            text_column("models", identity=True),
            text_column("factor"),
            Column("F1s"),
            Column("degrees of freedom"),
            Column("share", decimals=4),
            Column("share 95%", decimals=4),
            Column("mean", decimals=4, group="range of F1 along the factor"),
            Column("largest", decimals=4, group="range of F1 along the factor"),
            Column("from to", group="range of F1 along the factor", align="left"),
        ),
        rows=tuple(_row(row) for row in rows),
        n=n_text([row["n"] for row in rows], "questions behind each F1"),
        notes=(
            f"Method: {metadata.get('method', NOT_AVAILABLE)}. Shares add up to 1 and speak of these levels alone.",
            "Share 95%: images resampled. Noise of sampling adds to small shares, so their interval may lie above them.",
            "Range: largest minus smallest F1 along the factor, all else held; the mean is over all else.",
            *grid_texts(metadata),
            *left_out_texts(metadata),
        ),
    )


def _row(row: dict[str, Any]) -> tuple[Cell, ...]:
    """Return one row of the table."""
    alone = row["order"] == 1
    reach: tuple[Cell, ...] = (TOGETHER,) * 3
    if alone:
        reach = (exactly(row["mean_reach"]), exactly(row["largest_reach"]), row["largest_at"])
    return (
        row["labels"],
        row["split"],
        row["scope"],
        row["factor"],
        int(row["cells"]),
        int(row["degrees_of_freedom"]),
        None if row["share"] is None else exactly(row["share"]),
        between(row["share_low"], row["share_high"]),
        *reach,
    )
