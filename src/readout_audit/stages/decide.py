"""From records to decisions: every readout's answer to every question of a dataset."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from readout_audit.contracts import CELL, DECISION_IDENTITY, QUESTIONS, RECORDS, decisions_schema
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata, write_table
from readout_audit.readouts.base import Decided, NotAvailableError, Readout, TokenSets, valid_rows
from readout_audit.readouts.diagnose import Coverage, cover, exclusion, first_tokens
from readout_audit.readouts.registry import get

LOGGER = logging.getLogger(__name__)

SHARED = ("uid", "dataset", "split", "question_id", "image", "object", "question", "label")
"""Identity columns that come from the question table as they are."""


def run(
    records: Path,
    questions: Path,
    output: Path,
    readouts: Sequence[str],
    cell: Mapping[str, str],
    splits: Sequence[str] | None = None,
    expect_excluded: bool = False,
) -> None:
    """Write the decision table of one cell: one row per (split, question_id), in the questions' order.

    Args:
        records: record file of one dataset, model, precision and template.
        questions: question table of the same dataset.
        output: decision file to write, under `decisions_schema(readouts)`.
        readouts: names of the readouts to apply, without repeats.
        cell: dataset, model, precision, template and source of what is decided.
        splits: the splits to decide; None for all that the question table has.
        expect_excluded: whether readouts whose sets miss an emitted yes or no are named on purpose; if not,
            the log warns of them.

    Raises:
        AuditError: the files do not belong together, a readout is unknown, or one reads ids that the
            records do not hold.
    """
    if sorted(cell) != sorted(CELL.names):
        raise AuditError(f"{output}: the cell must have {', '.join(CELL.names)}, not {', '.join(cell)}.")
    chosen = [get(name) for name in dict.fromkeys(readouts)]
    recorded = read_table(records, RECORDS, "the record file")
    asked = in_splits(read_table(questions, QUESTIONS, "the question table"), splits, questions)
    rows = rows_of(recorded, asked, records, questions)
    meta = table_metadata(recorded)
    columns = identity(asked, recorded, rows)
    described: dict[str, Any] = {}
    for readout in chosen:
        decided, described[readout.name] = apply(readout, recorded, meta, rows, asked)
        columns |= _columns(readout.name, decided, asked.num_rows)
    add_coverage(described, chosen, recorded, meta, expect_excluded)
    schema = decisions_schema([readout.name for readout in chosen])
    metadata = {
        "cell": dict(cell),
        "readouts": described,
        "record_settings_id": meta.get("settings_id"),
        "settings": meta.get("settings"),
        "expect_excluded": expect_excluded,
    }
    write_table(output, pa.table(columns), schema, metadata)


def in_splits(asked: pa.Table, splits: Sequence[str] | None, questions: Path) -> pa.Table:
    """Return the questions of the given splits.

    Raises:
        AuditError: the question table lacks one of them.
    """
    if splits is None:
        return asked
    there = asked["split"].unique().to_pylist()
    for split in splits:
        if split not in there:
            raise AuditError(
                f"{questions}: no questions of split {split} (there are {', '.join(there)}); name other splits, "
                "or take a run that asked it."
            )
    return asked.filter(pc.is_in(asked["split"], value_set=pa.array(splits)))


def rows_of(recorded: pa.Table, asked: pa.Table, records: Path, questions: Path) -> pa.Array:
    """Return, for each question row, the row of its uid in the records (int32).

    Raises:
        AuditError: the records lack a uid or have one twice.
    """
    counts = pc.value_counts(recorded["uid"])
    twice = counts.filter(pc.greater(counts.field("counts"), 1)).field("values")
    if len(twice):
        raise AuditError(
            f"{records}: {len(twice)} uids stand there more than once, such as {twice[0]}; make it again."
        )
    rows = pc.index_in(asked["uid"], value_set=recorded["uid"]).combine_chunks()
    missing = asked.filter(pc.is_null(rows))
    if missing.num_rows:
        first = missing.slice(0, 1).to_pylist()[0]
        raise AuditError(
            f"{records}: {pc.count_distinct(missing['uid'])} of the {pc.count_distinct(asked['uid'])} "
            f"distinct questions of {questions} are not there, such as question_id {first['question_id']} of "
            f"{first['split']} ({first['image']}, uid {first['uid']}); ask them, or take other records."
        )
    return rows


def identity(asked: pa.Table, recorded: pa.Table, rows: pa.Array) -> dict[str, Any]:
    """Return the identity columns of the decision table."""
    columns = {name: asked[name] for name in SHARED}
    columns["first_token_id"] = recorded["argmax_id"].take(rows)
    columns["order_known"] = pa.array(np.ones(asked.num_rows, dtype=bool))
    return {name: columns[name] for name in DECISION_IDENTITY.names}


def apply(
    readout: Readout, recorded: pa.Table, meta: Mapping[str, Any], rows: pa.Array, asked: pa.Table
) -> tuple[Decided | None, dict[str, Any]]:
    """Return one readout's decisions per question row (None: not available) and its description.

    A readout that looks at labels is given one record row per question row; any other decides each
    distinct question once.
    """
    try:
        sets = readout.ids(meta)
        if readout.needs_labels:
            decided = readout.decide(recorded.take(rows), meta, asked["label"].combine_chunks())
        else:
            decided = spread(readout.decide(recorded, meta), rows)
    except NotAvailableError as error:
        return None, describe(readout, meta, None) | {"available": False, "why_not": str(error)}
    return decided, describe(readout, meta, sets) | {
        "available": True,
        "why_not": None,
        "flags": flag_counts(decided, asked),
        "settings": dict(decided.settings),
    }


def spread(decided: Decided, rows: pa.Array) -> Decided:
    """Return the decisions of the rows `rows`, one per entry."""
    return Decided(
        decision=decided.decision.take(rows),
        margin=None if decided.margin is None else decided.margin.take(rows),
        tie=None if decided.tie is None else decided.tie.take(rows),
        flags={name: flag.take(rows) for name, flag in decided.flags.items()},
        settings=decided.settings,
    )


def describe(readout: Readout, meta: Mapping[str, Any], sets: TokenSets | None) -> dict[str, Any]:
    """Return what a readout reads: its rule and source, its ids and their pieces in this model, its words."""
    pieces = {**meta.get("candidate_pieces", {}), **meta.get("token_map", {}).get("pieces", {})}
    ids = {"yes": list(sets.yes), "no": list(sets.no)} if sets else None
    return {
        "kind": readout.kind,
        "source": readout.source,
        "rule": readout.rule,
        "needs_labels": readout.needs_labels,
        "ids": ids,
        "pieces": {str(token): pieces.get(str(token)) for token in [*sets.yes, *sets.no]} if sets else None,
        "strings": {answer: list(words) for answer, words in readout.strings.items()},
    }


def add_coverage(
    described: dict[str, Any],
    readouts: Sequence[Readout],
    recorded: pa.Table,
    meta: Mapping[str, Any],
    expected: bool,
) -> None:
    """Add to each logit readout's description which emitted yes and no it does not read, and warn of it."""
    valid = recorded.filter(pa.array(valid_rows(recorded)))
    tokens = first_tokens(valid)
    for readout in readouts:
        if readout.kind == "logit" and described[readout.name]["available"]:
            found = cover(readout, meta, tokens)
            described[readout.name]["coverage"] = _coverage(found, valid.num_rows)
            if found.excluded:
                level = logging.INFO if expected else logging.WARNING
                LOGGER.log(
                    level, "%s: %s", meta.get("model"), exclusion(found, valid.num_rows, expected=expected)
                )


def _coverage(found: Coverage, rows: int) -> dict[str, Any]:
    """Return what a readout misses of the distinct questions' first tokens, as plain values."""
    return {
        "questions": rows,
        "outside": found.unread,
        "excluded": [
            {"id": token.id, "piece": token.piece, "says": token.says, "count": token.count}
            for token in found.excluded
        ],
        "foreign": {str(token): piece for token, piece in found.foreign.items()},
    }


def flag_counts(decided: Decided, asked: pa.Table) -> dict[str, dict[str, int]]:
    """Return, by flag and split, how many question rows a quirk of the rule decided."""
    splits = asked["split"].combine_chunks()
    return {
        name: {
            split: pc.sum(pc.and_(flag, pc.equal(splits, split))).as_py() or 0
            for split in splits.unique().to_pylist()
        }
        for name, flag in decided.flags.items()
    }


def _columns(name: str, decided: Decided | None, n: int) -> dict[str, Any]:
    """Return the three columns of a readout; null where it gives nothing."""
    parts = (decided.decision, decided.margin, decided.tie) if decided else (None, None, None)
    return {
        column: pa.nulls(n) if part is None else part
        for column, part in zip((name, f"{name}.margin", f"{name}.tie"), parts, strict=True)
    }
