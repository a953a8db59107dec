"""The distinct questions of a question table, and how they are dealt out to shards."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from readout_audit.errors import AuditError
from readout_audit.fileio import sha256_text

_COLUMNS = ["uid", "image", "image_namespace", "object", "question"]


def distinct_questions(questions: pa.Table) -> list[dict[str, Any]]:
    """Return one row per uid, in order of first appearance, as dicts of what is asked.

    Raises:
        AuditError: two rows share a uid but not the image and the text.
    """
    seen: dict[str, dict[str, Any]] = {}
    for row in questions.select(_COLUMNS).to_pylist():
        first = seen.setdefault(row["uid"], row)
        if (first["image"], first["question"]) != (row["image"], row["question"]):
            raise AuditError(
                f"the question table uses uid {row['uid']} for two different questions; make it again."
            )
    return list(seen.values())


def shard_of(image_namespace: str, image: str, shards: int) -> int:
    """Return which of `shards` shards, counted from 1, an image's questions belong to.

    By hash of the image, so that all questions of an image share a shard and the order of the question
    table does not matter.
    """
    return int(sha256_text(f"{image_namespace}\n{image}")[:15], 16) % shards + 1


def in_order(rows: Iterable[dict[str, Any]], uids: Sequence[str]) -> list[dict[str, Any]]:
    """Return rows in the order of `uids`."""
    by_uid = {row["uid"]: row for row in rows}
    return [by_uid[uid] for uid in uids]
