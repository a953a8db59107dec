"""The samples that lmms-eval logs: one JSON object per question, without the picture or its name."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from readout_audit.errors import AuditError
from readout_audit.score_file.answers import Answers
from readout_audit.score_file.columns import label_word, plain_name
from readout_audit.score_file.load import Loaded, Row, shown


def from_lmms_eval(path: Path, loaded: Loaded) -> Answers:
    """Read lmms-eval's samples; rows go by `doc_id`, since several processes write them in any order."""
    order = _by_doc_id(path, loaded)
    rows, places = [loaded.rows[i] for i in order], [loaded.places[i] for i in order]
    docs = [_document(row) for row in rows]
    where = [f"{path}, {place}" for place in places]
    categories = [doc.get("category") for doc in docs]
    images = [doc.get("image_source") for doc in docs]
    ids = [doc.get("question_id", _scored_id(row)) for row, doc in zip(rows, docs, strict=True)]
    prompts = [_lmms_prompt(row, doc) for row, doc in zip(rows, docs, strict=True)]
    return Answers(
        name=str(path),
        format=f"lmms-eval samples ({loaded.container})",
        places=places,
        text=[_lmms_answer(row, place) for row, place in zip(rows, where, strict=True)],
        invalid=[False] * len(rows),
        prompt=[str(prompt) for prompt in prompts] if all(prompts) else None,
        image=[plain_name(image, place) for image, place in zip(images, where, strict=True)]
        if all(images)
        else None,
        question_id=[str(value) for value in ids] if all(value is not None for value in ids) else None,
        label=[
            label_word(row.get("target"), f"{place}, target") for row, place in zip(rows, where, strict=True)
        ],
        split=[(str(name).lower(),) for name in categories] if all(categories) else None,
    )


def _document(row: Row) -> Row:
    """Return the question's own record, empty where it was not logged (newer versions leave it out)."""
    document = row.get("doc")
    return document if isinstance(document, dict) else {}


def _by_doc_id(path: Path, loaded: Loaded) -> list[int]:
    """Return the row numbers in the order of their doc_id."""
    ids = [row.get("doc_id") for row in loaded.rows]
    for place, value in zip(loaded.places, ids, strict=True):
        if isinstance(value, bool) or not isinstance(value, int):
            raise AuditError(f"{path}, {place}: doc_id must be a whole number, not {shown(value)}.")
    order = sorted(range(len(ids)), key=lambda row: ids[row] or 0)
    for before, after in pairwise(order):
        if ids[before] == ids[after]:
            raise AuditError(
                f"{path}: doc_id {ids[after]} stands twice ({loaded.places[before]} and {loaded.places[after]}); "
                "the file was appended to by a second run, or several filters were logged: keep one."
            )
    return order


def _scored_id(row: Row) -> Any:
    """Return the question id that a per-row metric holds, where the document itself was not logged."""
    return next(
        (
            value["question_id"]
            for value in row.values()
            if isinstance(value, dict) and "question_id" in value
        ),
        None,
    )


def _lmms_prompt(row: Row, doc: Row) -> Any:
    """Return the question of a sample, or its prompt."""
    if isinstance(doc.get("question"), str):
        return doc["question"]
    given = row.get("input", row.get("arguments"))
    while isinstance(given, list) and given:
        given = given[0]
    return given if isinstance(given, str) else None


def _lmms_answer(row: Row, where: str) -> str | None:
    """Return the first response of a sample: what its rule reads; None where there is none."""
    said = row.get("filtered_resps", row.get("resps"))
    while isinstance(said, list) and said:
        said = said[0]
    if said is not None and not isinstance(said, str):
        raise AuditError(f"{where}: the response must be a text, not {type(said).__name__}.")
    return said
