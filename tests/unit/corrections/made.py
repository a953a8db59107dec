"""Records, signals and decisions of small made worlds, written as files."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from readout_audit.contracts import RECORDS, decisions_schema
from readout_audit.corrections.evidence import Evidence, Files, read_files
from readout_audit.datasets.questions import question_uid
from readout_audit.fileio import write_table
from readout_audit.signals.schema import SIGNALS

CELL = {
    "dataset": "demo",
    "model": "a-model",
    "precision": "fp32",
    "template": "authors",
    "source": "inference",
}
IDS = [3, 5, 8, 9]
"""Candidates: yes pieces 3 and 5, no pieces 8 and 9. The excluded pair is 3 and 8."""

RECORD_META: dict[str, Any] = {
    "schema": 1,
    "model": "a-model",
    "settings_id": "s1",
    "candidate_ids": IDS,
    "token_sets": {
        "legacy": {"model": "a-model", "yes": {"yes": 3, " Yes": 5}, "no": {"no": 8, " No": 9}},
        "single": {"yes": [5], "no": [9]},
    },
}
SIGNAL_META: dict[str, Any] = {
    "schema": 1,
    "model": "a-model",
    "record_settings_id": "s1",
    "candidate_ids": IDS,
    "vocabulary_size": 100,
    "n_layers": 3,
    "n_heads": 2,
    "settings": {"entropy_layers": [1, 3], "authors_window": [1, 577]},
}

TABLES = (
    "table_08_corrections",
    "table_09_group_means",
    "table_best_beta",
    "table_correctness",
    "table_probe_comparisons",
    "table_probe_passes",
    "table_excluded_logits",
)
FIGURES = (
    "figure_07_corrections",
    "figure_08_attention",
    "figure_09_logit_gap",
    "figure_beta_sweep",
    "figure_layer_windows",
    "figure_excluded_logits",
)


def question(number: int) -> str:
    return f"Is there a thing {number} in the image?"


def uid(number: int, image: str) -> str:
    return question_uid("made", image, question(number))


def record(number: int, image: str, logits: list[float] | None, **more: Any) -> dict[str, Any]:
    """One record; `logits` are those of IDS, None for an invalid row."""
    row: dict[str, Any] = {
        "uid": uid(number, image),
        "image": image,
        "question": question(number),
        "prompt": "p",
        "status": "invalid" if logits is None else "ok",
    }
    if logits is not None:
        order = np.argsort([-value for value in logits], kind="stable")
        ranks = [0] * len(logits)
        for rank, index in enumerate(order, start=1):
            ranks[index] = rank
        row |= {
            "candidate_logits": logits,
            "candidate_ranks": ranks,
            "argmax_id": IDS[int(order[0])],
            "argmax_logit": max(logits),
            "log_z": float(np.log(np.exp(logits).sum())),
        }
    return row | more


def signal(number: int, image: str, **columns: Any) -> dict[str, Any]:
    """One row of signals; what is not given is null."""
    return {"uid": uid(number, image), "image": image, "status": "ok", **columns}


def decision(
    number: int, image: str, label: str, split: str = "adversarial", answer: str = "no"
) -> dict[str, Any]:
    """One decision row; the answer is only there to make the file a decision file."""
    return {
        "uid": uid(number, image),
        "dataset": "demo",
        "split": split,
        "question_id": str(number),
        "image": image,
        "object": f"thing {number}",
        "question": question(number),
        "label": label,
        "first_token_id": 5,
        "order_known": True,
        "legacy_8tok": answer,
        "legacy_8tok.margin": 1.0,
        "legacy_8tok.tie": False,
    }


def write_records(path: Path, rows: list[dict[str, Any]], **meta: Any) -> Path:
    write_table(path, pa.Table.from_pylist(rows, schema=RECORDS), RECORDS, RECORD_META | meta)
    return path


def write_signals(path: Path, rows: list[dict[str, Any]], **meta: Any) -> Path:
    write_table(path, pa.Table.from_pylist(rows, schema=SIGNALS), SIGNALS, SIGNAL_META | meta)
    return path


def write_decisions(path: Path, rows: list[dict[str, Any]], **meta: Any) -> Path:
    schema = decisions_schema(["legacy_8tok"])
    write_table(path, pa.Table.from_pylist(rows, schema=schema), schema, {"cell": CELL, **meta})
    return path


def files(
    folder: Path, records: list[dict[str, Any]], signals: list[dict[str, Any]] | None, **meta: Any
) -> Files:
    """Write and read one pair of files."""
    there = None if signals is None else write_signals(folder / "signals.parquet", signals, **meta)
    return read_files(write_records(folder / "records.parquet", records), there)


def evidence(
    folder: Path, records: list[dict[str, Any]], signals: list[dict[str, Any]] | None, **meta: Any
) -> Evidence:
    """Write and read one pair of files under the eight-token rule."""
    return files(folder, records, signals, **meta).under("legacy_8tok")


def world(seed: int = 0, images: int = 12, per_image: int = 6, layers: int = 3, heads: int = 2):
    """Rows of records, signals and decisions of a small world, in which the gap knows something of the label."""
    rng = np.random.default_rng(seed)
    records, signals, decisions = [], [], []
    number = 0
    for picture in range(images):
        image = f"{picture:03d}.jpg"
        mood = rng.normal(0, 0.5)
        for place in range(per_image):
            number += 1
            positive = place % 2 == 0
            gap = (1.0 if positive else -0.6) + mood + rng.normal()
            yes, no = 20 + gap / 2, 20 - gap / 2
            logits = [yes - 3 + rng.normal(), yes, no - 3 + rng.normal(), no]
            records.append(record(number, image, np.float32(logits).tolist()))
            clip = 0.22 + (0.03 if positive else -0.03) + rng.normal(0, 0.03)
            attention = rng.uniform(0, 0.1, size=layers * heads)
            noised = (np.array(logits) + rng.normal(0, 0.5, 4)).tolist()
            lens = (np.tile(logits, layers) * np.repeat(np.linspace(0.2, 1, layers), 4)).tolist()
            signals.append(
                signal(
                    number,
                    image,
                    noun=f"thing {number}",
                    answer_candidate_logits=logits,
                    log_z=22.0,
                    entropy=1.0,
                    entropy_normalised=float(rng.uniform(0.1, 0.6)),
                    logit_mean=0.0,
                    logit_sd=2.0,
                    logit_min=-8.0,
                    logit_max=max(logits),
                    midpoint_step=1,
                    midpoint_candidate_logits=noised,
                    layer_candidate_logits=lens,
                    clip_b32_patches=clip,
                    clip_b32_image=clip,
                    clip_b32_crops=clip + 0.01,
                    clip_l_patches=clip,
                    clip_l_cls=clip,
                    vcd_candidate_logits=noised,
                    vcd_uniform_candidate_logits=noised,
                    attention_image=attention.tolist(),
                    attention_window=(attention * 0.9).tolist(),
                    n_image_positions=576,
                    image_start=5,
                    answer_attention_entropy_image=0.8,
                    answer_attention_entropy_window=float(rng.uniform(0.5, 0.9)),
                    noun_attention_entropy_image=float(rng.uniform(0.5, 0.9)),
                    noun_attention_entropy_window=0.8,
                    spatial_attention_entropy_image=0.8,
                    spatial_attention_entropy_window=float(rng.uniform(0.5, 0.9)),
                    spatial_attention_mean_image=0.001,
                    spatial_attention_mean_window=float(rng.uniform(0.001, 0.02)),
                    words_attention_entropy_window=float(rng.uniform(0.5, 0.9)),
                )
            )
            split = ("random", "adversarial")[(number // per_image) % 2]
            decisions.append(decision(number, image, "yes" if positive else "no", split=split))
    return records, signals, decisions
