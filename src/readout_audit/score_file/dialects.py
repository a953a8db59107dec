"""Recognise who wrote an answer file by its keys, and say what each key means.

| format | written by | keys |
|---|---|---|
| records | this project's record file | the columns of `contracts.RECORDS` |
| lmms-eval samples | lmms-eval `--log_samples` | doc_id, target, filtered_resps or resps |
| VLMEvalKit | its result TSV or XLSX | index, question, answer (the label), prediction |
| token audit, 2tok/8tok, diagnostic, predictions | the paper's authors | question_id, label and pred_…, prediction |
| LLaVA | its model_vqa scripts, and VCD's | question_id, prompt, text |
| POPE | POPE's own answer files | question, answer |
| own | a CSV, JSON or Parquet file of one's own | image, question and one answer column |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.score_file.answers import Answers
from readout_audit.score_file.columns import IMAGE_KEYS, Columns
from readout_audit.score_file.lmms_samples import from_lmms_eval
from readout_audit.score_file.load import Loaded, Row, load_rows

ANSWER_KEYS = ("prediction", "response", "output", "answer", "text")
"""Names of the answer column in a file of one's own; exactly one may be there."""


@dataclass(frozen=True)
class Dialect:
    """What the keys of one format mean.

    Attributes:
        needs: keys that every row (error rows aside) must have.
        text: key of the answer, None where the file holds decisions only.
        prompt: key of the question or prompt, None where it is not written.
        label: key of the label.
        decisions: key -> readout it is a decision of.
        refuses: keys that make it another format.
    """

    name: str
    needs: frozenset[str]
    text: str | None
    prompt: str | None
    label: str | None = None
    decisions: Mapping[str, str] = field(default_factory=dict)
    refuses: frozenset[str] = frozenset()

    def fits(self, keys: frozenset[str]) -> bool:
        """Tell whether a row with these keys is of this format."""
        return self.needs <= keys and not self.refuses & keys


DIALECTS = (
    Dialect("VLMEvalKit", frozenset({"index", "question", "answer", "prediction"}), "prediction", "question", "answer"),
    Dialect(
        "the authors' token audit",
        frozenset({"question_id", "label", "decoded_response", "pred_legacy_2tok", "pred_legacy_8tok"}),
        "decoded_response",
        None,
        "label",
        {"pred_legacy_2tok": "legacy_2tok", "pred_legacy_8tok": "legacy_8tok", "pred_dynamic_single": "dynamic_single"},
    ),
    Dialect(
        "the authors' two- and eight-token decisions",
        frozenset({"question_id", "label", "pred_2tok", "pred_8tok"}),
        None,
        None,
        "label",
        {"pred_2tok": "legacy_2tok", "pred_8tok": "legacy_8tok"},
    ),
    Dialect(
        "the authors' diagnostic",
        frozenset({"question_id", "label", "baseline_prediction", "gap_raw"}),
        None,
        None,
        "label",
        {"baseline_prediction": "legacy_8tok"},
    ),
    Dialect(
        "the authors' predictions",
        frozenset({"question_id", "question", "label", "prediction"}),
        "prediction",
        "question",
        "label",
        refuses=frozenset({"image", "answer"}),
    ),
    Dialect("LLaVA", frozenset({"question_id", "prompt", "text"}), "text", "prompt", "label"),
    Dialect("POPE", frozenset({"question", "answer"}), "answer", "question", "label", refuses=frozenset({"prediction", "image"})),
)  # fmt: skip


def read_answers(path: Path) -> Answers:
    """Read one answer file, whatever wrote it.

    Raises:
        AuditError: it cannot be read, its format is not recognised, or a row lacks what its format needs.
    """
    loaded = load_rows(path)
    # Of all rows: one that lacks a key must not make its file another format, in which a label is an answer.
    keys = frozenset().union(*(row for row in loaded.rows if not _failed(row))) or frozenset(loaded.rows[0])
    if loaded.container == "Parquet" and set(RECORDS.names) <= keys:
        return _from_records(path)
    if "doc_id" in keys and ("filtered_resps" in keys or "resps" in keys):
        return from_lmms_eval(path, loaded)
    if {"index", "question", "answer"} <= keys and "prediction" not in keys:
        raise AuditError(
            f"{path}: index, question and answer without a prediction are VLMEvalKit's questions, whose answer is the "
            "label; give its result file, or drop the column index if answer is what the model said."
        )
    dialect = next((dialect for dialect in DIALECTS if dialect.fits(keys)), None) or _own(path, keys)
    return _from_rows(path, loaded, dialect)


def _own(path: Path, keys: frozenset[str]) -> Dialect:
    """Return the dialect of a file of one's own: an image, a question, one answer."""
    found = [key for key in ANSWER_KEYS if key in keys]
    if "question" in keys and keys & set(IMAGE_KEYS) and len(found) == 1:
        return Dialect(
            "image, question, answer", frozenset({"question", found[0]}), found[0], "question", "label"
        )
    if (
        {"image", "label"} <= keys
        and keys & {"text", "question"}
        and not (keys & set(ANSWER_KEYS) - {"text"})
    ):
        raise AuditError(
            f"{path}: this is a question file, with labels and no answers; put --questions before each question file, or "
            f"name their folder once (--questions {path.parent}/)."
        )
    if len(found) > 1 and "question" in keys:
        raise AuditError(f"{path}: which column is the answer, {' or '.join(found)}? Keep one of them.")
    raise AuditError(
        f"{path}: the format is not recognised by its keys ({', '.join(sorted(map(str, keys))[:12])}); write the "
        "columns image, question and answer, as docs/score-your-answers.md shows."
    )


def _failed(row: Row) -> bool:
    """Tell whether a row is an error row: an id, a label, and the error instead of an answer."""
    return bool(row.get("error")) and "question_id" in row


def _from_rows(path: Path, loaded: Loaded, dialect: Dialect) -> Answers:
    """Read rows whose keys mean what the dialect says."""
    failed = [_failed(row) for row in loaded.rows]
    for row, place, bad in zip(loaded.rows, loaded.places, failed, strict=True):
        missing = sorted(dialect.needs - row.keys())
        if missing and not bad:
            raise AuditError(f"{path}, {place}: the key {missing[0]} is missing from a {dialect.name} row.")
    column = Columns(path, loaded, failed)
    text = column.texts(dialect.text) if dialect.text else None
    if dialect.name == "the authors' predictions" and text is not None:
        failed = [bad or said == "error" for bad, said in zip(failed, text, strict=True)]
    around = loaded.around.get("summary")
    summary = around if isinstance(around, dict) else {}
    return Answers(
        name=str(path),
        format=f"{dialect.name} ({loaded.container})",
        places=loaded.places,
        text=text,
        invalid=failed,
        prompt=column.prompts(dialect.prompt) if dialect.prompt else None,
        image=column.images(),
        question_id=column.ids("question_id"),
        label=column.labels(dialect.label),
        split=column.splits() or _one_split(summary.get("split"), len(loaded.rows)),
        decisions={
            readout: column.decisions(key)
            for key, readout in dialect.decisions.items()
            if key in column.first
        },
        facts=_facts(summary, column.first),
    )


def _one_split(split: Any, n: int) -> Sequence[tuple[str, ...]] | None:
    """Return the split that the whole file says it is about, for each row."""
    return [(split,)] * n if isinstance(split, str) and split else None


def _facts(summary: Mapping[str, Any], first: Row) -> dict[str, Any]:
    """Return what the file says about how its answers were made."""
    names = ("model", "model_id", "model_path", "prompt_mode", "quantize", "mode", "parse_max_new_tokens")
    found = {name: summary[name] for name in names if isinstance(summary.get(name), str | int | float)}
    if isinstance(first.get("model_id"), str):
        found["model_id"] = first["model_id"]
    return found


def _from_records(path: Path) -> Answers:
    """Read our own record file."""
    table = read_table(path, RECORDS, "the record file")
    meta = table_metadata(table)
    settings = meta.get("settings") or {}
    return Answers(
        name=str(path),
        format="records (Parquet)",
        places=[f"row {number}" for number in range(1, table.num_rows + 1)],
        text=table["new_text"].to_pylist(),
        invalid=[status != "ok" for status in table["status"].to_pylist()],
        prompt=table["question"].to_pylist(),
        image=table["image"].to_pylist(),
        facts={"model": meta.get("model"), "settings_id": meta.get("settings_id"), "settings": settings},
        records=table,
        meta=meta,
    )
