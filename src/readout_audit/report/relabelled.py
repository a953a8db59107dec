"""The gap under five choices of labels and rows: what the headline and the findings both show."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from readout_audit.report.grid import Column, Grid, grid, numbers
from readout_audit.report.text import points


def fraction_of(row: Mapping[str, Any], name: str) -> Fraction | None:
    """Return an exact value of a relabelled row."""
    numerator, denominator = row[f"{name}_numerator"], row[f"{name}_denominator"]
    return Fraction(numerator, denominator) if denominator else None


def relabelled_gaps(rows: Sequence[Mapping[str, Any]], splits: Sequence[str]) -> Grid:
    """Return the gap in points, one row per choice, one column per split."""
    there = [split for split in splits if any(row["split"] == split for row in rows)]
    by_key = {(row["choice"], row["split"]): row for row in rows}
    choices = list(dict.fromkeys(row["choice"] for row in rows))
    cells = [
        [choice, *(points(fraction_of(by_key[choice, split], "gap")) for split in there)]
        for choice in choices
    ]
    pair = (rows[0]["readout_from"], rows[0]["readout_to"])
    caption = f"Gap in F1 points, {pair[0]} minus {pair[1]}; other labels: {rows[0]['labels']}"
    return grid((Column("labels and rows", "long"), *numbers(*there)), cells, caption)
