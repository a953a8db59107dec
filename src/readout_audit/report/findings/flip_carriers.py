"""Which objects and pictures carry the flips."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from readout_audit.exact import printed
from readout_audit.report.findings.base import Finding, Names, name_of
from readout_audit.report.grid import Grid, grid, numbers, texts
from readout_audit.report.inputs import RunData
from readout_audit.report.text import of, percent

MOST_OBJECTS = 12


def flip_carriers(data: RunData, names: Names) -> list[Finding]:
    """Return, by cell, the objects with the most flips on the hardest split, and how the images share them."""
    findings = []
    for about in data.carriers:
        own = [row for row in about.rows if row["labels"] == data.labels[0]]
        split = next(
            (split for split in reversed(data.splits) if any(r["split"] == split for r in own)), None
        )
        if split is None:
            continue
        here = [row for row in own if row["split"] == split]
        objects = [row for row in here if row["by"] == "object"]
        images = [row for row in here if row["by"] == "image"]
        total = sum(map(_flips, objects))
        sentences = [s for s in (_object_sentence(objects, split), _image_sentence(images, split)) if s]
        tables = (_carrier_table(objects, total, split),) if total else ()
        findings.append(Finding("", name_of(names, about.cell), tuple(sentences), tables))
    return findings


def _flips(row: Mapping[str, Any]) -> int:
    """Return all flips of one object or image."""
    ways = ("no_to_yes_pos", "no_to_yes_neg", "yes_to_no_pos", "yes_to_no_neg")
    return sum(int(row[way]) for way in ways)


def _object_sentence(objects: Sequence[Mapping[str, Any]], split: str) -> str:
    """Say how few objects carry half of the flips (the rows come with the most flips first)."""
    total, carried = sum(map(_flips, objects)), 0
    for place, row in enumerate(objects, start=1):
        carried += _flips(row)
        if total and 2 * carried >= total:
            share = percent(Fraction(carried, total))
            return (
                f"On {split}, {place:,} of {len(objects):,} objects carry {carried:,} of the {total:,} "
                f"flips ({share})."
            )
    return f"On {split} no answer flips." if objects else ""


def _image_sentence(images: Sequence[Mapping[str, Any]], split: str) -> str:
    """Say how many pictures have a flip."""
    flipped = sum(1 for row in images if _flips(row))
    return f"{of(flipped, len(images))} pictures of {split} have at least one." if flipped else ""


def _carrier_table(objects: Sequence[Mapping[str, Any]], total: int, split: str) -> Grid:
    """Return the objects with the most flips."""
    columns = (
        *texts("object"),
        *numbers("questions", "flips", "share of its questions", "share of all flips"),
        *numbers("label no", "label yes", group="no → yes"),
        *numbers("label no", "label yes", group="yes → no"),
    )
    cells = [
        [
            row["name"] or "not known",
            *(f"{row['n']:,}", f"{_flips(row):,}"),
            *(f"{printed(Fraction(100 * _flips(row), whole), 1)}%" for whole in (row["n"], total)),
            *(f"{row[f'{way}_{sign}']:,}" for way in ("no_to_yes", "yes_to_no") for sign in ("neg", "pos")),
        ]
        for row in objects[:MOST_OBJECTS]
    ]
    caption = f"Objects with the most flips, {split}: {len(cells)} of {len(objects)}"
    return grid(columns, cells, caption)
