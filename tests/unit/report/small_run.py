"""A small run made by the real stages, its texts as hostile as a question file may be."""

import csv
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
from scores.decision_files import NAMESPACE, row, write_decisions

from readout_audit.contracts import QUESTIONS
from readout_audit.datasets.questions import question_uid
from readout_audit.fileio import write_table, write_text
from readout_audit.report.claims import COLUMNS
from readout_audit.report.inputs import CellKey, Files
from readout_audit.stages import (
    compare_releases,
    compare_splits,
    concatenate_scores,
    measure_gap,
    relabel,
    score,
)
from readout_audit.tables.base import Column, Table, text_column
from readout_audit.tables.render import to_markdown

HOSTILE = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>\u202e]]>"
"""Markup, quotes, an event handler, and a character that turns the text around."""

MODEL = "<script>alert(3)</script>"
CELL = {
    "dataset": "release<b>",
    "model": MODEL,
    "precision": "fp16",
    "template": "t\"'",
    "source": "inference",
}
OTHER_RELEASE = "<img src=y onerror=alert(5)>"
PAIR = ("legacy_8tok", "legacy_2tok")
SETTINGS = {
    "model": MODEL,
    "repository": "someone/<i>model</i>",
    "folder": None,
    "revision": None,
    "adapter": "llava",
    "precision": "fp16",
    "compute_dtype": "float16",
    "template": {
        "name": "t",
        "text": "USER: <image>\n{question}\nASSISTANT:",
        "chat": False,
        "suffix": " Answer yes or no only.",
    },
    "image_mode": "pad",
    "attention": "sdpa",
    "engine": {"name": "sequential", "batch_size": 1},
    "max_new_tokens": 6,
}
READOUTS = {
    "legacy_8tok": {
        "available": True,
        "kind": "logit",
        "source": "the paper",
        "rule": "largest yes > largest no",
        "ids": {"yes": [3, 5], "no": [4, 6]},
        "pieces": {"3": "yes", "5": "▁Yes", "4": "no", "6": "▁No"},
        "flags": {"quirk & co": {"adversarial": 2, "random": 0}},
    },
    "legacy_2tok": {
        "available": True,
        "kind": "logit",
        "source": "the paper",
        "rule": "yes > no",
        "ids": {"yes": [3], "no": [4]},
        "pieces": {"3": "yes", "4": "no"},
    },
    "string_parse": {
        "available": False,
        "kind": "string",
        "source": "s",
        "why_not": "no text <here>",
        "ids": None,
        "pieces": None,
    },
}

# label, eight-token answer, two-token answer, first token. Of random's four, one question (same object) stands in
# both splits and is answered otherwise in adversarial.
ADVERSARIAL = [
    ("yes", "yes", "yes", 5, "dog"),
    ("yes", "no", "yes", 6, HOSTILE),
    ("no", "no", "yes", 6, "car"),
    ("no", "no", "no", 6, "cup"),
]
RANDOM = [
    ("yes", "yes", "no", 5, "dog"),
    ("yes", "yes", "yes", 5, "cat"),
    ("no", "no", "no", 6, "bus"),
    ("no", "no", "no", 6, "pen"),
]


def decision_rows() -> list[dict[str, Any]]:
    """Eight rows about two pictures."""
    rows = []
    for split, answers in (("adversarial", ADVERSARIAL), ("random", RANDOM)):
        for number, (label, eight, two, token, item) in enumerate(answers):
            image = f"{number % 2}.jpg"
            one = row(
                split, number, label, image, item, legacy_8tok=eight, legacy_2tok=two, string_parse=None
            )
            rows.append({**one, "dataset": CELL["dataset"], "first_token_id": token})
    return rows


def write_png(path: Path, width: int = 3, height: int = 2) -> Path:
    """Write a grey picture."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    lines = b"".join(b"\x00" + b"\x80" * width for _ in range(height))
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path


def hostile_table() -> Table:
    """A table whose every text is hostile."""
    columns = (text_column(HOSTILE), Column("P", 4, "g"), Column("R", 4, "g"))
    return Table(
        2, "table_02_x", f"Title {HOSTILE}", columns, ((HOSTILE, 1, "a | b \\ c"),), HOSTILE, (HOSTILE,)
    )


def write_labels(folder: Path) -> Path:
    """Labels that call the missed positive of adversarial a no and do not know the cup."""
    question = f"Is there a {HOSTILE} in the image?"
    known = [("1.jpg", HOSTILE, "no"), ("0.jpg", "dog", "yes"), ("0.jpg", "car", "no")]
    rows = [
        {
            "uid": question_uid(NAMESPACE, image, question),
            "dataset": "other",
            "split": "adversarial",
            "question_id": str(place),
            "image": image,
            "image_namespace": NAMESPACE,
            "object": item,
            "question": question,
            "label": label,
        }
        for place, (image, item, label) in enumerate(known)
    ]
    path = folder / "labels.parquet"
    write_table(path, pa.Table.from_pylist(rows, schema=QUESTIONS), QUESTIONS)
    return path


def write_claims(path: Path, source: str = CellKey(**CELL).text) -> Path:
    """Four claims, two of which one note explains, and two held against answers of `source`."""
    rows = (
        (
            "a",
            "Table 8",
            "F1 of x",
            "0.1",
            "",
            "1",
            "inconsistent_in_paper",
            "the paper",
            "No matrix, at all.",
        ),
        (
            "b",
            "Table 8",
            "recall of x",
            "0.2",
            "",
            "1",
            "inconsistent_in_paper",
            "the paper",
            "No matrix, at all.",
        ),
        ("c", "Table 1", "<script>alert(4)</script>", "5", "5", "0", "reproduced", source, ""),
        ("d", "Table 1", "other", "6", "7", "0", "differs", source, ""),
    )
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([COLUMNS, *rows])
    return path


def write_other_release(folder: Path) -> Path:
    """The same rows in a release of another name that asks about the hostile object in other words, answered otherwise."""
    rows = []
    for one in decision_rows():
        if one["object"] == HOSTILE:
            question = f"Is there a {HOSTILE} in the imange?"
            one |= {
                "question": question,
                "uid": question_uid(NAMESPACE, one["image"], question),
                "legacy_8tok": "yes",
            }
        rows.append(one | {"dataset": OTHER_RELEASE})
    cell = CELL | {"dataset": OTHER_RELEASE}
    return write_decisions(folder / "other.parquet", rows, cell=cell, readouts=READOUTS, settings=SETTINGS)


def make_run(folder: Path, readouts: dict[str, Any] = READOUTS, **metadata: Any) -> Files:
    """Run the stages on the rows and return the run's files; `metadata` goes into the decision file."""
    decisions = write_decisions(
        folder / "decisions.parquet",
        decision_rows(),
        cell=CELL,
        readouts=readouts,
        settings=SETTINGS,
        record_settings_id="s1",
        **metadata,
    )
    labels = {"repope": [write_labels(folder)]}
    paths = {
        name: folder / f"{name}.parquet"
        for name in ("score", "scores", "t", "gap", "agree", "dis", "re", "c", "releases", "changes")
    }
    score.run(decisions, paths["score"], relabel=labels, resamples=50)
    concatenate_scores.run([paths["score"]], paths["scores"])
    measure_gap.run(decisions, paths["t"], paths["gap"], relabel=labels, resamples=50)
    compare_splits.run(decisions, paths["agree"], paths["dis"])
    relabel.run(decisions, paths["re"], paths["c"], labels, PAIR)
    pair = (decisions, write_other_release(folder))
    compare_releases.run([pair], paths["releases"], paths["changes"], folder / "changes.csv")
    table = folder / "table_02_x.md"
    write_text(table, to_markdown(hostile_table()))
    manifest = folder / f"m{HOSTILE.replace('/', '')}.json"
    write_text(manifest, '{"host": "<b>box</b>", "list": [1, {"deep": null}], "long": "' + "x" * 400 + '"}')
    return Files(
        scores=paths["scores"],
        tables=(table,),
        figures=(write_png(folder / "figure_02_confusion.png"), write_png(folder / "<b>odd.png")),
        claims=write_claims(folder / "claims.csv"),
        decisions=(decisions,),
        gap=(paths["gap"],),
        self_agreement=(paths["agree"],),
        disagreements=(paths["dis"],),
        relabel=(paths["re"],),
        carriers=(paths["c"],),
        releases=(paths["releases"],),
        release_changes=(paths["changes"],),
        manifests=(manifest,),
    )
