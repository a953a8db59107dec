"""Small runs on disk for claims to be held against."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from readout_audit.contracts import decisions_schema
from readout_audit.fileio import write_table
from readout_audit.stages import measure_gap, score

CELL = {
    "dataset": "coco-2023-10",
    "model": "llava-1.5-7b",
    "precision": "nf4",
    "template": "authors",
    "source": "inference",
}
READOUTS = ["legacy_2tok", "legacy_8tok"]


def write_run(folder: Path, rows: list[dict], compute_dtype: str | None = "float16", **cell: str) -> dict:
    """Write decisions, scores, transitions and gap; rows give split, label, decisions, margins, first token.

    `compute_dtype` is the arithmetic that the records name; None where they name none.
    """
    made = [
        {
            "dataset": CELL["dataset"],
            "question_id": str(number),
            "order_known": True,
            "legacy_2tok.margin": row.get("margin"),
            "legacy_8tok.margin": row.get("margin"),
            **{key: value for key, value in row.items() if key != "margin"},
        }
        for number, row in enumerate(rows, start=1)
    ]
    decisions = folder / "decisions.parquet"
    metadata = {
        "cell": {**CELL, **cell},
        "readouts": {name: {"available": True} for name in READOUTS},
        "joint": True,
        "settings": None if compute_dtype is None else {"compute_dtype": compute_dtype},
    }
    schema = decisions_schema(READOUTS)
    write_table(decisions, pa.Table.from_pylist(made, schema=schema), schema, metadata)
    score.run(decisions, folder / "scores.parquet")
    measure_gap.run(decisions, folder / "transitions.parquet", folder / "gap.parquet")
    return {
        "scores": folder / "scores.parquet",
        "transitions": [folder / "transitions.parquet"],
        "gap": [folder / "gap.parquet"],
        "decisions": [decisions],
    }


def adversarial(tp: int, fp: int, *, near: int = 0, moved: int = 0) -> list[dict]:
    """Rows of 1,500 positives and 1,500 negatives; `near` of the true positives have margins near zero.

    `moved` further positives are answered no by both readouts instead of yes.
    """

    def row(label: str, decision: str, margin: float) -> dict:
        token = 3869 if decision == "yes" else 1939
        both = {"legacy_2tok": decision, "legacy_8tok": decision}
        return {"split": "adversarial", "label": label, "margin": margin, "first_token_id": token, **both}

    tp -= moved
    rows = [row("yes", "yes", 0.0156 if number < near else 3.0) for number in range(tp)]
    rows += [row("yes", "no", -3.0) for _ in range(1500 - tp)]
    rows += [row("no", "yes", 3.0) for _ in range(fp)]
    rows += [row("no", "no", -3.0) for _ in range(1500 - fp)]
    return rows
