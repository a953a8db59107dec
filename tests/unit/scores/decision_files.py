"""Decision tables for tests."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from readout_audit.contracts import decisions_schema
from readout_audit.datasets.questions import question_uid
from readout_audit.fileio import write_table

CELL = {"dataset": "d", "model": "m", "precision": "fp32", "template": "t", "source": "inference"}
NAMESPACE = "pictures"


def row(
    split: str, number: int, label: str, image: str | None = "1.jpg", item: str | None = None, **answers: Any
) -> dict[str, Any]:
    """Return one decision row that asks about `item` (by default one of its own) in `image`."""
    item = item or f"thing {split} {number}"
    question = f"Is there a {item} in the image?"
    return {
        "uid": question_uid(NAMESPACE, image, question) if image else None,
        "dataset": "d",
        "split": split,
        "question_id": str(number),
        "image": image,
        "object": item if image else None,
        "question": question if image else None,
        "label": label,
        "first_token_id": None,
        "order_known": image is not None,
        **answers,
    }


def write_decisions(path: Path, rows: list[dict[str, Any]], **metadata: Any) -> Path:
    """Write rows as a decision file; readouts are the keys beyond the identity, margins and ties default to null."""
    readouts = list(
        dict.fromkeys(key for one in rows for key in one if key not in IDENTITY and "." not in key)
    )
    schema = decisions_schema(readouts)
    write_table(path, pa.Table.from_pylist(rows, schema=schema), schema, {"cell": CELL, **metadata})
    return path


IDENTITY = decisions_schema([]).names

# Table 7 of the paper (arXiv 2610.25964, LLaVA-1.5): eight-token decision -> two-token decision, by label.
TABLE_7 = {
    "adversarial": {
        "yes": {"yy": 1174, "yn": 0, "ny": 264, "nn": 62},
        "no": {"yy": 182, "yn": 0, "ny": 660, "nn": 658},
    },
    "popular": {
        "yes": {"yy": 1191, "yn": 0, "ny": 250, "nn": 59},
        "no": {"yy": 112, "yn": 0, "ny": 567, "nn": 821},
    },
    "random": {
        "yes": {"yy": 1191, "yn": 0, "ny": 250, "nn": 59},
        "no": {"yy": 43, "yn": 0, "ny": 448, "nn": 1009},
    },
}


def table_7_rows() -> list[dict[str, Any]]:
    """Return 9,000 rows that realise Table 7's integers; which question is which is not known."""
    words = {"y": "yes", "n": "no"}
    rows = []
    for split, by_label in TABLE_7.items():
        for label, cells in by_label.items():
            for (eight, two), count in cells.items():
                for _ in range(count):
                    answers = {"legacy_8tok": words[eight], "legacy_2tok": words[two]}
                    rows.append(row(split, len(rows) + 1, label, image=None, **answers))
    return rows
