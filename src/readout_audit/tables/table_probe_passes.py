"""The instrumented pass beside the main records: which questions it answers otherwise, and which are ties."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.common import IDENTITY
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.measured import known

PLACES = (*IDENTITY, text_column("readout", identity=True), text_column("split"))


def build(inputs: RunTables) -> Table:
    """Return every question whose two answers differ, or whose set maxima are equal in either pass."""
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    sizes: list[int] = []
    labels = inputs.options.labels[0]
    for cell, answers in inputs.probe.items():
        frame = answers.rows
        frame = frame[(frame["labels"] == labels) & (frame["pass"] == "instrumented")]
        for (readout, split), part in frame.groupby(["readout", "split"], sort=False):
            found = part.to_dict("records")
            sizes.append(len(found))
            listed = [row for row in found if _listed(row)]
            leading = (*cell, labels, str(readout), str(split))
            rows += [(*leading, *_cells(row)) for row in listed]
            notes.append(f"{cell.model}, {readout}, {split}: {_counts(found)}.")
    return Table(
        number=None,
        name="table_probe_passes",
        title="Questions that the instrumented pass and the main run answer differently, and ties",
        columns=(
            *PLACES,
            text_column("question id"),
            text_column("label"),
            text_column("answer"),
            Column("gap", decimals=4),
            text_column("answer in the main run"),
            Column("gap in the main run", decimals=4),
            text_column("why listed"),
        ),
        rows=tuple(rows),
        n=n_text(sizes, "answers per split"),
        notes=(
            "gap: largest yes logit minus largest no logit; equal ones are a tie, read as no.",
            *notes,
        ),
    )


def _differs(row: Mapping[Any, Any]) -> bool:
    """Tell whether the two passes answer a question differently."""
    return not pd.isna(row["main_answer"]) and row["answer"] != row["main_answer"]


def _main_tie(row: Mapping[Any, Any]) -> bool:
    """Tell whether the main run has a tie."""
    return not pd.isna(row["main_tie"]) and bool(row["main_tie"])


def _listed(row: Mapping[Any, Any]) -> bool:
    """Tell whether a question is worth a row."""
    return bool(row["tie"]) or _main_tie(row) or _differs(row)


def _counts(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Say how many answers differ and how many ties there are."""
    known_rows = [row for row in rows if not pd.isna(row["main_answer"])]
    if not known_rows:
        return f"{sum(bool(row['tie']) for row in rows):,} ties; no main records to compare with"
    differing = sum(_differs(row) for row in known_rows)
    text = f"{differing:,} of {len(known_rows):,} answers differ, {sum(bool(row['tie']) for row in rows):,} ties here"
    with_gap = [row for row in known_rows if not pd.isna(row["main_gap"])]
    if not with_gap:
        return text
    moved = max(abs(row["yes_logit"] - row["no_logit"] - row["main_gap"]) for row in with_gap)
    return (
        f"{text} and {sum(_main_tie(row) for row in rows):,} in the main run, gaps at most {moved:.4g} apart"
    )


def _cells(row: Mapping[Any, Any]) -> tuple[Cell, ...]:
    """Return the cells of one question."""
    why = [
        *(["the answers differ"] if _differs(row) else []),
        *(["tie here"] if row["tie"] else []),
        *(["tie in the main run"] if _main_tie(row) else []),
    ]
    main = NOT_AVAILABLE if pd.isna(row["main_answer"]) else str(row["main_answer"])
    return (
        str(row["question_id"]),
        str(row["label"]),
        str(row["answer"]),
        known(row["yes_logit"] - row["no_logit"]),
        main,
        known(row["main_gap"]),
        ", ".join(why),
    )
