"""Decisions from the authors' published per-question files.

Two formats are read, told apart by their keys: `…_2tok_vs_8tok.json` (LLaVA-1.5) and `…_token_audit.json`
(other models). A file is joined to its release by question id, and only after every label was found to agree.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from readout_audit.contracts import INVALID, LABELS, NO, UNPARSED, YES, decisions_schema
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json

KEYS = {
    "pred_2tok": "legacy_2tok",
    "pred_8tok": "legacy_8tok",
    "pred_legacy_2tok": "legacy_2tok",
    "pred_legacy_8tok": "legacy_8tok",
    "pred_dynamic_single": "dynamic_single",
    "pred_string_parse": "string_parse",
}
"""Key of a published record -> readout."""

_DECISIONS = {"yes": YES, "no": NO, "unknown": UNPARSED}
_INT32 = range(2**31)


TEXTS, WHOLE_NUMBERS = "texts", "numbers"
"""How a file writes its question ids."""


class Published(NamedTuple):
    """One published row.

    Attributes:
        question_id: as text, however it is written.
        id_form: `TEXTS` or `WHOLE_NUMBERS`.
        label: yes or no.
        decisions: by readout.
        first_token_id: None where the row is an error row.
    """

    question_id: str
    id_form: str
    label: str
    decisions: Mapping[str, str]
    first_token_id: int | None


def read_published(path: Path) -> list[Published]:
    """Read one published file, in its order.

    An error row (`question_id`, `label`, `error`) is invalid under every readout of the file.

    Raises:
        AuditError: the file has another form, a row that cannot be used, a repeated id, or a summary that its
            own rows contradict.
    """
    document = read_json(path, "the published decisions")
    if not isinstance(document, dict) or not isinstance(document.get("results"), list):
        raise AuditError(
            f"{path}: not a published decision file; an object with summary and results is expected."
        )
    records = document["results"]
    readouts = _readouts(records, path)
    rows = [_row(record, readouts, f"{path}, result {n}") for n, record in enumerate(records, start=1)]
    seen: set[str] = set()
    for row in rows:
        if row.question_id in seen:
            raise AuditError(f"{path}: question_id {row.question_id} stands twice.")
        seen.add(row.question_id)
    _check_summary(document.get("summary"), rows, path)
    return rows


def _readouts(records: Sequence[Any], path: Path) -> dict[str, str]:
    """Return key -> readout of a file, from its first row that is no error row."""
    for record in records:
        if isinstance(record, dict) and "error" not in record:
            found = {key: KEYS[key] for key in record if key in KEYS}
            if found:
                return found
    raise AuditError(f"{path}: no row has a decision ({', '.join(KEYS)}).")


def _row(record: Any, readouts: Mapping[str, str], where: str) -> Published:
    """Read one record."""
    if not isinstance(record, dict):
        raise AuditError(f"{where}: a JSON object is expected.")
    question_id, label = record.get("question_id"), record.get("label")
    if isinstance(question_id, bool) or not isinstance(question_id, int | str) or question_id == "":
        raise AuditError(f"{where}: question_id must be a whole number or a text, not {question_id!r}.")
    if label not in LABELS:
        raise AuditError(f"{where}: label must be yes or no, not {label!r}.")
    named = (str(question_id), TEXTS if isinstance(question_id, str) else WHOLE_NUMBERS)
    if "error" in record:
        return Published(*named, label, dict.fromkeys(readouts.values(), INVALID), None)
    decisions = {readout: _decision(record, key, where) for key, readout in readouts.items()}
    token = record.get("top_token_id")
    if isinstance(token, bool) or not isinstance(token, int) or token not in _INT32:
        raise AuditError(f"{where}: top_token_id must be a token id, not {token!r}.")
    return Published(*named, label, decisions, token)


def _decision(record: Mapping[str, Any], key: str, where: str) -> str:
    """Return the decision under one key."""
    value = record.get(key)
    if not isinstance(value, str) or value not in _DECISIONS:
        raise AuditError(f"{where}: {key} must be yes, no or unknown, not {value!r}.")
    return _DECISIONS[value]


def _check_summary(summary: Any, rows: Sequence[Published], path: Path) -> None:
    """Refuse a file whose summary its own rows contradict: it was cut, or put together from two runs."""
    if not isinstance(summary, dict):
        raise AuditError(f"{path}: the summary is missing.")
    try:
        counts = list(_stated_counts(summary, rows))
    except (KeyError, TypeError, ValueError) as error:
        raise AuditError(
            f"{path}: the summary has another form ({type(error).__name__}: {error})."
        ) from error
    for what, stated, counted in counts:
        if stated != counted:
            raise AuditError(
                f"{path}: the summary says {what} {stated}, the rows say {counted}; fetch it again."
            )


def _stated_counts(summary: Mapping[str, Any], rows: Sequence[Published]) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a summary states that its rows can confirm: name, stated value, counted value."""
    yield "rows", summary.get("n", summary.get("n_total")), len(rows)
    for key, readout in _EVALUATIONS.items():
        evaluation = summary.get(key)
        if isinstance(evaluation, dict) and "yes_predictions" in evaluation:
            yes = sum(row.decisions.get(readout) == YES for row in rows)
            yield f"{readout} yes answers", evaluation["yes_predictions"], yes
    tokens = _stated_tokens(summary)
    if tokens is not None:
        counted = Counter(row.first_token_id for row in rows if row.first_token_id is not None)
        yield "first tokens", tokens, dict(sorted(counted.items()))


_EVALUATIONS = {
    "eval_2token": "legacy_2tok",
    "eval_8token": "legacy_8tok",
    "eval_legacy_2tok": "legacy_2tok",
    "eval_legacy_8tok": "legacy_8tok",
    "eval_dynamic_single": "dynamic_single",
    "eval_string_parse": "string_parse",
}
"""Key of a summary -> readout."""


def _stated_tokens(summary: Mapping[str, Any]) -> dict[int, int] | None:
    """Return the first tokens a summary counts, zeros left out; None where it counts none."""
    if isinstance(tokens := summary.get("top_tokens_generated"), dict):
        pairs = [(int(token), count) for token, count in tokens.items()]
    elif isinstance(listed := summary.get("top_token_counts"), list):
        pairs = [(entry["token_id"], entry["count"]) for entry in listed]
    else:
        return None
    return dict(sorted((token, count) for token, count in pairs if count))


def join_published(splits: Mapping[str, Sequence[Published]], questions: pa.Table) -> pa.Table:
    """Join published rows to the question table of their release, in the published order.

    Args:
        splits: split -> published rows.
        questions: question table of the release the decisions were made on.

    Returns:
        A decision table with `order_known` true; a readout that a split's file lacks is null there.

    Raises:
        AuditError: a split or an id is not in the release, or a label differs from the release's.
    """
    asked = {(row["split"], row["question_id"]): row for row in questions.to_pylist()}
    known = {split for split, _ in asked}
    names = sorted({name for rows in splits.values() for row in rows for name in row.decisions})
    joined: list[dict[str, Any]] = []
    for split in sorted(splits):
        if split not in known:
            raise AuditError(f"split {split} of the published decisions is not in the question table.")
        _check_labels(split, splits[split], asked)
        for row in splits[split]:
            question = asked[split, row.question_id]
            identity = {key: question[key] for key in ("uid", "dataset", "image", "object", "question")}
            joined.append(
                {
                    **identity,
                    "split": split,
                    "question_id": row.question_id,
                    "label": row.label,
                    "first_token_id": row.first_token_id,
                    "order_known": True,
                    **row.decisions,
                }
            )
    return pa.Table.from_pylist(joined, schema=decisions_schema(names))


def _check_labels(
    split: str, rows: Sequence[Published], asked: Mapping[tuple[str, str], Mapping[str, Any]]
) -> None:
    """Refuse rows whose ids or labels are not the release's: they belong to another release."""
    for row in rows:
        if (split, row.question_id) not in asked:
            raise AuditError(
                f"published decisions, {split}, question_id {row.question_id}: not in the question table; "
                f"the decisions belong to another release."
            )
    differing = [row.question_id for row in rows if asked[split, row.question_id]["label"] != row.label]
    if differing:
        raise AuditError(
            f"published decisions, {split}: {len(differing)} of {len(rows)} labels differ from the question "
            f"table (first at question_id {differing[0]}); the decisions belong to another release."
        )
