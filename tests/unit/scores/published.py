"""The authors' 9,000 LLaVA-1.5 decisions as a decision file, from the mirror beside the repository."""

import json
import re
from pathlib import Path

import pyarrow as pa

from readout_audit.contracts import QUESTIONS
from readout_audit.datasets.questions import question_uid
from readout_audit.fileio import write_table
from scores.decision_files import write_decisions

NAMESPACE = "coco"
SPLITS = ("adversarial", "popular", "random")
# One letter per question: the eight-token answer and the two-token answer.
ANSWERS = {"A": ("yes", "yes"), "B": ("yes", "no"), "C": ("no", "yes"), "D": ("no", "no")}


def read_questions(path: Path) -> list[dict]:
    """Read a POPE file of JSON lines, with the noun that the question asks for."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["object"] = re.fullmatch(r"Is there an? (.*) in the iman?ge\?", row["text"])[1]
    return rows


def write_published(mirror: Path, path: Path) -> Path:
    """Write the decisions of all three splits."""
    rows = []
    for split in SPLITS:
        codes = "".join(line.split()[1] for line in (mirror / f"published/llava15_{split}.codes.txt").open())
        questions = read_questions(mirror / f"pope/coco-2023-10/coco_pope_{split}.json")
        for question, code in zip(questions, codes, strict=True):
            eight, two = ANSWERS[code]
            rows.append(
                {
                    "uid": question_uid(NAMESPACE, question["image"], question["text"]),
                    "dataset": "coco-2023-10",
                    "split": split,
                    "question_id": str(question["question_id"]),
                    "image": question["image"],
                    "object": question["object"],
                    "question": question["text"],
                    "label": question["label"],
                    "first_token_id": None,
                    "order_known": True,
                    "legacy_8tok": eight,
                    "legacy_2tok": two,
                }
            )
    return write_decisions(path, rows)


def write_repope(mirror: Path, path: Path) -> Path:
    """Write RePOPE's labels as a question table; it drops the questions that it found ambiguous."""
    rows = [
        {
            "uid": question_uid(NAMESPACE, question["image"], question["text"]),
            "dataset": "repope",
            "split": split,
            "question_id": str(question["question_id"]),
            "image": question["image"],
            "image_namespace": NAMESPACE,
            "object": question["object"],
            "question": question["text"],
            "label": question["label"],
        }
        for split in SPLITS
        for question in read_questions(mirror / f"repope/coco_repope_{split}.json")
    ]
    write_table(path, pa.Table.from_pylist(rows, schema=QUESTIONS), QUESTIONS)
    return path
