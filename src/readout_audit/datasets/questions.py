"""The question table of one release, and what a person should know about it."""

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from readout_audit.contracts import LABELS, QUESTIONS
from readout_audit.datasets.objects import is_misspelt
from readout_audit.datasets.parse import QuestionFile
from readout_audit.fileio import canonical_json, sha256_text

_UID_DIGITS = 32


def question_uid(image_namespace: str, image: str, question: str) -> str:
    """Return the id that two rows share exactly when they ask the same text about the same image.

    First 32 hex digits of the SHA-256 of the canonical JSON [namespace, image, question]. The namespace keeps
    data sets apart that ask alike: 30 (image, question) pairs stand in both COCO and A-OKVQA POPE, one of
    them with opposite labels.
    """
    return sha256_text(canonical_json([image_namespace, image, question]))[:_UID_DIGITS]


def build_question_table(dataset: str, image_namespace: str, splits: Mapping[str, QuestionFile]) -> pa.Table:
    """Build the question table of one release: splits by name, rows in their file's order.

    The result depends on names and content alone, so that building it again reschedules nothing.
    """
    rows = [
        {
            "uid": question_uid(image_namespace, row.image, row.question),
            "dataset": dataset,
            "split": split,
            "image_namespace": image_namespace,
            **row._asdict(),
        }
        for split in sorted(splits)
        for row in splits[split].rows
    ]
    return pa.Table.from_pylist(rows, schema=QUESTIONS)


def report_questions(table: pa.Table, splits: Mapping[str, QuestionFile]) -> dict[str, Any]:
    """Count what stands in a question table.

    Returns:
        "splits": per split `rows`, `distinct`, `labels`, `images`, `misspelt` ("imange") with its counts by
        label, `no_object` (ids whose noun could not be told), `format`, `ignored_keys`;
        and over all splits `rows`, `distinct` (image, question) pairs, `images`, `distinct_per_image`
        (smallest, mean, largest), `misspelt`, `label_conflicts` (pairs of image and object with both labels).
    """
    rows = table.to_pylist()
    by_split = {name: [row for row in rows if row["split"] == name] for name in sorted(splits)}
    asked = defaultdict(set)
    labels = defaultdict(set)
    for row in rows:
        asked[row["image"]].add(row["uid"])
        if row["object"] is not None:
            labels[row["image"], row["object"]].add(row["label"])
    per_image = [len(uids) for uids in asked.values()]
    return {
        "splits": {
            name: _report_split(by_split[name])
            | {"format": splits[name].format, "ignored_keys": list(splits[name].ignored_keys)}
            for name in by_split
        },
        "rows": len(rows),
        "distinct": len({row["uid"] for row in rows}),
        "images": len(asked),
        "distinct_per_image": [min(per_image), sum(per_image) / len(per_image), max(per_image)],
        "misspelt": sum(is_misspelt(row["question"]) for row in rows),
        "label_conflicts": sorted(list(pair) for pair, found in labels.items() if len(found) > 1),
    }


def _report_split(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Count the rows of one split; see `report_questions`."""
    misspelt = [row for row in rows if is_misspelt(row["question"])]
    uids = Counter(row["uid"] for row in rows)
    return {
        "rows": len(rows),
        "distinct": len(uids),
        "repeated": sorted(row["question_id"] for row in rows if uids[row["uid"]] > 1),
        "labels": _count_labels(rows),
        "images": len({row["image"] for row in rows}),
        "misspelt": len(misspelt),
        "misspelt_labels": _count_labels(misspelt),
        "no_object": [row["question_id"] for row in rows if row["object"] is None],
    }


def _count_labels(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Count rows by label, both labels always there."""
    counts = Counter(row["label"] for row in rows)
    return {label: counts[label] for label in LABELS}
