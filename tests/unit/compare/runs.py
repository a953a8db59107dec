"""Runs on disk, small enough to count by hand."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from scores.decision_files import row, write_decisions

from readout_audit.contracts import RECORDS
from readout_audit.fileio import write_json, write_table

TEMPLATE = {"name": "t", "text": "Q: {question}\nA:", "chat": False, "suffix": ""}


COMPUTE = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "nf4": "float16"}


def made_settings(precision: str, **more: Any) -> dict[str, Any]:
    """Settings as a record file has them."""
    return {"template": TEMPLATE, "precision": precision, "compute_dtype": COMPUTE[precision], **more}


def write_cell(
    root: Path,
    run: str,
    rows: list[dict[str, Any]],
    *,
    dataset: str = "d",
    model: str = "m",
    precision: str = "fp16",
    template: str = "t",
    source: str = "inference",
    settings: dict[str, Any] | None = None,
    **metadata: Any,
) -> str:
    """Write one cell's decisions and return the run's name."""
    cell = {
        "dataset": dataset,
        "model": model,
        "precision": precision,
        "template": template,
        "source": source,
    }
    path = root / "results" / run / "decisions" / dataset / model / precision / f"{template}.parquet"
    metadata = {
        "settings": made_settings(precision) if settings is None else settings,
        **metadata,
    }
    write_decisions(path, [{**one, "dataset": dataset} for one in rows], cell=cell, **metadata)
    return run


def write_records(
    root: Path, run: str, prompts: dict[str, str], cell: str = "d/m/fp16/t", **described: Any
) -> None:
    """Write a record file that holds nothing but prompts."""
    rows = [
        {"uid": uid, "image": "i", "question": "q", "prompt": prompt, "status": "ok"}
        for uid, prompt in prompts.items()
    ]
    path = root / "results" / run / "records" / f"{cell}.parquet"
    write_table(path, pa.Table.from_pylist(rows, schema=RECORDS), RECORDS, described)


def write_manifest(root: Path, run: str, device: str, cell: str = "d/m/fp16/t") -> None:
    write_json(
        root / "results" / run / "records" / f"{cell}.manifest.json",
        {"shards": {"1-of-1": {"device": device}}},
    )


def answer(
    split: str, number: int, label: str, decision: str, margin: float | None = None, **more: Any
) -> dict[str, Any]:
    """One row with one logit readout."""
    item = more.pop("item", None)
    columns = {"r": decision, "r.margin": margin, "r.tie": None if margin is None else margin == 0}
    return row(split, number, label, "1.jpg", item, **columns, **more)
