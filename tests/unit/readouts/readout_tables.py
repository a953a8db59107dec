"""Small record and question tables for the readout tests."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from readout_audit.contracts import QUESTIONS, RECORDS

YES_FORMS = {"yes": 3582, "Yes": 8241, " yes": 4874, " Yes": 3869}
NO_FORMS = {"no": 1217, "No": 3782, " no": 694, " No": 1939}


def metadata(candidate_ids: Sequence[int], **token_sets: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "model": "toy",
        "settings_id": "s1",
        "candidate_ids": sorted(candidate_ids),
        "token_sets": token_sets,
        "token_map": {"pieces": {"3869": "▁Yes", "1939": "▁No"}},
    }


def sets(yes: Sequence[int], no: Sequence[int]) -> dict[str, list[int]]:
    return {"yes": list(yes), "no": list(no)}


def records(logits: Sequence[Sequence[float]] | None = None, **columns: Sequence[Any]) -> pa.Table:
    """A record table: `logits` are candidate logits by row, None for an invalid row."""
    n = len(logits) if logits is not None else len(next(iter(columns.values())))
    rows = list(logits) if logits is not None else [[]] * n
    base: dict[str, Any] = {
        "uid": [f"u{i}" for i in range(n)],
        "image": [f"{i}.jpg" for i in range(n)],
        "question": ["Is there a dog in the image?"] * n,
        "prompt": ["p"] * n,
        "candidate_logits": rows,
        "status": ["ok" if row is not None else "invalid" for row in rows],
    }
    base |= columns
    return pa.table({f.name: pa.array(base.get(f.name, [None] * n), f.type) for f in RECORDS}, schema=RECORDS)


def full_records(logits: np.ndarray, candidate_ids: Sequence[int], **columns: Sequence[Any]) -> pa.Table:
    """Records of models whose whole vocabulary is `logits` (n, V), argmax with the lowest id on a tie."""
    return records(
        [list(map(float, row)) for row in logits[:, sorted(candidate_ids)]],
        argmax_id=[int(i) for i in logits.argmax(axis=1)],
        **columns,
    )


def questions(uids: Sequence[str], splits: Sequence[str], labels: Sequence[str]) -> pa.Table:
    n = len(uids)
    return pa.table(
        {
            "uid": list(uids),
            "dataset": ["toy"] * n,
            "split": list(splits),
            "question_id": [str(i + 1) for i in range(n)],
            "image": [f"{u}.jpg" for u in uids],
            "image_namespace": ["toy"] * n,
            "object": ["dog"] * n,
            "question": ["Is there a dog in the image?"] * n,
            "label": list(labels),
        },
        schema=QUESTIONS,
    )
