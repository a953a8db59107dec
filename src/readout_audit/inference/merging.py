"""Joining the shards of one cell: each distinct question exactly once, all made under the same settings."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from readout_audit.contracts import OK, QUESTIONS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json, read_table, table_metadata, write_json, write_table
from readout_audit.inference.questions import distinct_questions

_COUNTS = ("n_ok", "n_invalid")


def merge(shards: Sequence[Path], questions: Path, output: Path, schema: pa.Schema) -> None:
    """Join `shards`, files under `schema`, and write the manifest of the whole beside the output.

    Every distinct question of `questions` must be in exactly one shard; rows come in the questions' order.

    Raises:
        AuditError: a question is missing, twice there or not asked for, or two shards were made
            under different settings.
    """
    tables = [read_table(path, schema, "the shard") for path in shards]
    described = common_description(shards, tables)
    uids = [row["uid"] for row in distinct_questions(read_table(questions, QUESTIONS, "the question table"))]
    joined = pa.concat_tables(tables)
    check_complete(joined["uid"].to_pylist(), uids, output)
    places = {uid: place for place, uid in enumerate(joined["uid"].to_pylist())}
    ordered = joined.take(pa.array([places[uid] for uid in uids], pa.int64()))
    valid = ordered["status"].to_pylist().count(OK)
    counts = {"n_ok": valid, "n_invalid": len(ordered) - valid}
    write_table(output, ordered, schema, {**described, **counts})
    write_json(output.with_suffix(".manifest.json"), joined_manifest(shards))


def common_description(shards: Sequence[Path], tables: Sequence[pa.Table]) -> dict[str, Any]:
    """Return the description that all shards share."""
    described = [
        {key: value for key, value in table_metadata(table).items() if key not in _COUNTS} for table in tables
    ]
    for path, other in zip(shards[1:], described[1:], strict=True):
        differing = sorted(key for key in {*described[0], *other} if described[0].get(key) != other.get(key))
        if differing:
            raise AuditError(
                f"{path}: this shard differs from {shards[0]} in {', '.join(differing)}; "
                f"remove both and run the inference again."
            )
    return described[0]


def check_complete(found: list[str], wanted: list[str], output: Path) -> None:
    """Refuse rows that are not exactly one per wanted uid."""
    counts = Counter(found)
    problems = {
        "missing": sorted(set(wanted) - set(counts)),
        "there more than once": sorted(uid for uid, count in counts.items() if count > 1),
        "not asked for": sorted(set(counts) - set(wanted)),
    }
    for what, uids in problems.items():
        if uids:
            raise AuditError(
                f"{output}: not written, {len(uids)} questions are {what} in the shards (first: {uids[0]}); "
                f"make the shards again from the same question table."
            )


def joined_manifest(shards: Sequence[Path]) -> dict[str, Any]:
    """Return the shards' volatile facts, one entry each, and their totals."""
    entries = {}
    for path in shards:
        manifest = path.with_suffix(".manifest.json")
        entries[path.stem] = read_json(manifest, "the manifest") if manifest.is_file() else None
    known = [entry for entry in entries.values() if entry is not None]
    return {
        "shards": entries,
        "asked": sum(entry["asked"] for entry in known),
        "seconds": sum(entry["seconds"] for entry in known),
        "peak_memory_bytes": max((entry["peak_memory_bytes"] for entry in known), default=None),
    }
