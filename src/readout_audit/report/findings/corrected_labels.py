"""Whether the gap stays when wrong labels are corrected."""

from collections.abc import Mapping, Sequence
from typing import Any

from readout_audit.exact import printed
from readout_audit.gap.relabel import OTHER, OWN_ALL
from readout_audit.report.findings.base import Finding, Names, name_of
from readout_audit.report.grid import Column, Grid, grid, numbers, texts
from readout_audit.report.inputs import About, RunData
from readout_audit.report.relabelled import fraction_of, relabelled_gaps
from readout_audit.report.text import listed
from readout_audit.report.words import label_words


def corrected_labels(data: RunData, names: Names) -> list[Finding]:
    """Return, by cell and label set, the gap under five choices of labels and rows."""
    findings = []
    for about in data.relabelled:
        for labels in dict.fromkeys(row["labels"] for row in about.rows):
            rows = [row for row in about.rows if row["labels"] == labels]
            tables = (relabelled_gaps(rows, data.splits), _relabelled_f1s(rows, data.splits))
            sentences = (
                *_times(rows, labels, data.splits),
                *_directions(rows, data.splits),
                *_left_out(about, labels),
            )
            findings.append(Finding(labels, name_of(names, about.cell), sentences, tables))
    return findings


def _relabelled_f1s(rows: Sequence[Mapping[str, Any]], splits: Sequence[str]) -> Grid:
    """Return n, positives and both F1 under every choice."""
    order = {split: place for place, split in enumerate(splits)}
    chosen = sorted(rows, key=lambda row: order.get(row["split"], len(order)))
    columns = (
        *texts("split"),
        Column("labels and rows", "long"),
        *numbers("questions", "labelled yes"),
        *numbers(rows[0]["readout_from"], rows[0]["readout_to"], group="F1"),
    )
    cells = [
        [
            *(row["split"], row["choice"], f"{row['n']:,}", f"{row['positives']:,}"),
            *(printed(fraction_of(row, name), 4) for name in ("f1_from", "f1_to")),
        ]
        for row in chosen
    ]
    return grid(columns, cells, "The same five choices: questions and F1")


def _times(rows: Sequence[Mapping[str, Any]], labels: str, splits: Sequence[str]) -> list[str]:
    """Say how many times larger the gap is under the other labels."""
    gaps = {(row["choice"], row["split"]): fraction_of(row, "gap") for row in rows}
    known = [
        (split, own, other)
        for split in splits
        if (own := gaps.get((OWN_ALL, split))) is not None and (other := gaps.get((OTHER, split))) is not None
    ]
    if not known or any(own <= 0 for _, own, _ in known):
        return []
    times = listed([f"{printed(other / own, 1)} ({split})" for split, own, other in known])
    return [
        f"Under {label_words(labels)} the gap is {times} times as large. Three things change at once: labels, which "
        "rows are kept, and the share of positives; the rows below take them apart."
    ]


def _directions(rows: Sequence[Mapping[str, Any]], splits: Sequence[str]) -> list[str]:
    """Say for the hardest split where each F1 goes when the labels are exchanged."""
    by_key = {(row["choice"], row["split"]): row for row in rows}
    for split in reversed(splits):
        own, other = by_key.get((OWN_ALL, split)), by_key.get((OTHER, split))
        if own is not None and other is not None:
            moves = [
                f"F1 under {own[f'readout_{side}']} goes from {printed(fraction_of(own, f'f1_{side}'), 4)} "
                f"to {printed(fraction_of(other, f'f1_{side}'), 4)}"
                for side in ("from", "to")
            ]
            return [f"On {split}, {listed(moves)}."]
    return []


def _left_out(about: About, labels: str) -> list[str]:
    """Say how many rows have no label in the other set, and why."""
    reasons = about.metadata.get("labels", {}).get(labels, {}).get("left_out", {})
    return [
        f"Left out, {why}: {listed([f'{count:,} of {split}' for split, count in by_split.items()])}."
        for why, by_split in reasons.items()
    ]
