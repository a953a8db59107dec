"""The authors' further per-question files of LLaVA-1.5: a corrected run's answers, its summary, a tokenizer's ids.

Formats: Kesav2k04/ugaa-research, `…_predictions.json` and `…_summary.json` as written by src/run_pope_eval_full.py
and src/run_ablation_a.py, `…_tokenizer_dryrun.json` by src/run_cross_model_token_audit.py. A row's question text
stands in the file, so it is joined to its release by id, and only after label and text were found to agree.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from readout_audit.contracts import INVALID, LABELS, NO, UNPARSED, YES
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json
from readout_audit.readouts.strings import string_parse
from readout_audit.scores.confusion import Confusion

ERROR = "error"
"""Upstream's word for a row that could not be asked (a missing image, an exception)."""

MISSPELT, SPELT = "imange", "image"

_CELLS = ("tp", "fp", "tn", "fn")
_FORMS = ("yes", "Yes", " yes", " Yes", "no", "No", " no", " No")


class Prediction(NamedTuple):
    """One row: `decision` is yes, no, unparsed or invalid."""

    question_id: str
    question: str
    label: str
    decision: str


def read_predictions(path: Path) -> list[Prediction]:
    """Read one prediction file, in its order.

    The uncorrected run's `prediction` is the decoded continuation, the corrected runs' is "yes" or "no"; both are
    read by the authors' own string parse, so free text without either word is unparsed and never a yes.

    Raises:
        AuditError: the file has another form, a row lacks a value, or an id stands twice.
    """
    document = read_json(path, "the published predictions")
    if not isinstance(document, list) or not document:
        raise AuditError(f"{path}: not a published prediction file; a list of rows is expected.")
    rows = [_row(record, f"{path}, row {number}") for number, record in enumerate(document, start=1)]
    seen: set[str] = set()
    for row in rows:
        if row.question_id in seen:
            raise AuditError(f"{path}: question_id {row.question_id} stands twice.")
        seen.add(row.question_id)
    return rows


def _row(record: Any, where: str) -> Prediction:
    """Read one row."""
    if not isinstance(record, dict):
        raise AuditError(f"{where}: a JSON object is expected.")
    question_id = record.get("question_id")
    if isinstance(question_id, bool) or not isinstance(question_id, int | str) or question_id == "":
        raise AuditError(f"{where}: question_id must be a whole number or a text, not {question_id!r}.")
    if record.get("label") not in LABELS:
        raise AuditError(f"{where}: label must be yes or no, not {record.get('label')!r}.")
    texts = {name: record.get(name) for name in ("question", "prediction")}
    for name, value in texts.items():
        if not isinstance(value, str):
            raise AuditError(f"{where}: {name} must be a text, not {value!r}.")
    prediction = str(texts["prediction"])
    decision = INVALID if prediction == ERROR else string_parse(prediction)
    return Prediction(str(question_id), str(texts["question"]), str(record["label"]), decision)


def matrix(rows: Sequence[Prediction]) -> Confusion:
    """Count rows as a confusion matrix."""
    counts = {
        (label, decision): sum((row.label, row.decision) == (label, decision) for row in rows)
        for label in LABELS
        for decision in (YES, NO, UNPARSED, INVALID)
    }
    return Confusion(
        tp=counts[YES, YES],
        fp=counts[NO, YES],
        tn=counts[NO, NO],
        fn=counts[YES, NO],
        unparsed_pos=counts[YES, UNPARSED],
        unparsed_neg=counts[NO, UNPARSED],
        invalid_pos=counts[YES, INVALID],
        invalid_neg=counts[NO, INVALID],
    )


def read_summary(path: Path) -> dict[str, Any]:
    """Read one summary file: counts of a prediction file, as its authors state them.

    Raises:
        AuditError: it has another form, or its counts contradict each other.
    """
    summary = read_json(path, "the published summary")
    names = (*_CELLS, "n_total", "n_valid", "n_errors")
    if not isinstance(summary, dict) or not isinstance(summary.get("split"), str):
        raise AuditError(f"{path}: not a published summary; an object with split and counts is expected.")
    for name in names:
        value = summary.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise AuditError(f"{path}: {name} must be a count, not {value!r}.")
    if sum(summary[name] for name in _CELLS) != summary["n_valid"]:
        raise AuditError(f"{path}: tp, fp, tn and fn do not add up to n_valid; fetch it again.")
    if summary["n_valid"] + summary["n_errors"] != summary["n_total"]:
        raise AuditError(f"{path}: n_valid and n_errors do not add up to n_total; fetch it again.")
    return dict(summary)


def check_summary(rows: Sequence[Prediction], summary: Mapping[str, Any], path: Path) -> None:
    """Refuse a prediction file that its own summary contradicts: it was cut, or is of another run.

    How the authors counted free text without yes or no is not recorded, so with unparsed rows only the number of
    rows and of errors is compared.

    Raises:
        AuditError: a count differs.
    """
    counted = matrix(rows)
    found = {"n_total": len(rows), "n_errors": counted.invalid_pos + counted.invalid_neg}
    if not counted.unparsed_pos + counted.unparsed_neg:
        found |= {name: getattr(counted, name) for name in _CELLS}
    for name, count in found.items():
        if summary[name] != count:
            raise AuditError(
                f"{path}: its summary says {name} {summary[name]}, the rows say {count}; fetch both again."
            )


def check_questions(
    rows: Sequence[Prediction], asked: Mapping[str, tuple[str, str]], path: Path, split: str
) -> int:
    """Check that rows are about the questions of a release with the same ids.

    Args:
        rows: the published rows.
        asked: question_id -> (question, label) of the release's split.
        path: the file, for the sentence.
        split: name of the split, for the sentence.

    Returns:
        How many rows differ from the release in the spelling of "image" alone.

    Raises:
        AuditError: an id is not in the release, or a label or a text is another.
    """
    respelt = 0
    for row in rows:
        if row.question_id not in asked:
            raise AuditError(
                f"{path}: question_id {row.question_id} is not in split {split}; the file belongs to another release."
            )
        question, label = asked[row.question_id]
        same = respell(row.question) == respell(question)
        if row.label != label or not same:
            what = "text" if row.label == label else "label"
            raise AuditError(
                f"{path}: question_id {row.question_id} has another {what} than in split {split}; the file "
                "belongs to another release."
            )
        respelt += row.question != question
    return respelt


def respell(question: str) -> str:
    """Return a question with the misspelling of release 2023-10 mended."""
    return question.replace(MISSPELT, SPELT)


def read_dryrun(path: Path) -> dict[str, list[int]]:
    """Read a tokenizer dry run: form -> the ids it encodes to, and `yes` and `no` sets under "single:yes", "single:no".

    Raises:
        AuditError: the file has another form, or its single-token sets are not those of its forms.
    """
    document = read_json(path, "the tokenizer dry run")
    if not isinstance(document, dict):
        raise AuditError(f"{path}: not a tokenizer dry run; a JSON object is expected.")
    found: dict[str, list[int]] = {}
    for answer in (YES, NO):
        forms = document.get(f"{answer}_form_to_ids")
        single = document.get(f"dynamic_{answer}_ids")
        if not isinstance(forms, dict) or not isinstance(single, list) or not _ids(single):
            raise AuditError(f"{path}: {answer}_form_to_ids or dynamic_{answer}_ids is missing.")
        for form, ids in forms.items():
            if form not in _FORMS or not _ids(ids):
                raise AuditError(f"{path}: {form!r} must be one of the eight forms with a list of ids.")
            found[form] = ids
        kept = sorted({ids[0] for ids in forms.values() if len(ids) == 1})
        if kept != sorted(single):
            raise AuditError(
                f"{path}: dynamic_{answer}_ids is {single}, but its forms of one token give {kept}."
            )
        found[f"single:{answer}"] = sorted(single)
    return found


def _ids(value: Any) -> bool:
    """Tell whether a value is a list of token ids."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(token, int) and not isinstance(token, bool) and token >= 0 for token in value)
    )
