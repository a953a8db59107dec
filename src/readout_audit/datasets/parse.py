"""Read question files: POPE's JSON lines, its JSON arrays, RePOPE's, and anyone's own CSV or JSON lines.

Reading is strict. A row that cannot be used stops with the file and the row; a key that is not used is
reported, never lost without a word.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from readout_audit.contracts import LABELS
from readout_audit.datasets.objects import extract_object
from readout_audit.errors import AuditError

QUESTION_KEYS = ("text", "question")
"""POPE says `text`; a file of one's own may say `question`. One of the two, not both."""

_USED = frozenset({"question_id", "image", "label", "object", *QUESTION_KEYS})
_LONGEST_NAME = 255  # bytes; what common file systems take


class QuestionRow(NamedTuple):
    """One question as its file has it; `label` is lower case, `object` None where the text does not say."""

    question_id: str
    image: str
    question: str
    label: str
    object: str | None


class QuestionFile(NamedTuple):
    """All questions of one file, in its order.

    `format` is json_lines, json_array or csv; `ignored_keys` the keys that were not used, sorted.
    """

    rows: tuple[QuestionRow, ...]
    format: str
    ignored_keys: tuple[str, ...]


def read_questions(path: Path) -> QuestionFile:
    """Read one question file; the ending .csv says CSV, anything else is JSON lines or a JSON array.

    Raises:
        AuditError: the file is unreadable, empty, or has a row that cannot be used.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise AuditError(f"{path}: the question file cannot be read ({error.strerror or error}).") from error
    return parse_questions(raw, str(path), is_csv=Path(path).suffix.lower() == ".csv")


def parse_questions(raw: bytes, name: str, *, is_csv: bool = False) -> QuestionFile:
    """Parse the bytes of a question file; `name` stands for it in errors. See `read_questions`."""
    try:
        text = raw.decode("utf-8-sig")  # a byte-order mark is no part of the first row
    except UnicodeDecodeError as error:
        raise AuditError(f"{name}: not UTF-8 text (byte {error.start}); save it as UTF-8.") from error
    if is_csv:
        kind, found = "csv", _csv_rows(text, name)
    elif text.lstrip().startswith("["):
        kind, found = "json_array", _array_rows(text, name)
    else:
        kind, found = "json_lines", _json_lines(text, name)
    numbered = list(found)
    if not numbered:
        raise AuditError(f"{name}: holds no questions.")
    rows = _with_ids([(where, _check_row(row, where)) for where, row in numbered], name)
    ignored = sorted({str(key) for _, row in numbered for key in row} - _USED)
    return QuestionFile(rows, kind, tuple(ignored))


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object, refusing a key that stands twice (a plain parser keeps the last one)."""
    built = dict(pairs)
    if len(built) != len(pairs):
        repeated = sorted({key for key, _ in pairs if [k for k, _ in pairs].count(key) > 1})
        raise ValueError(f"the key {', '.join(repeated)} stands twice")
    return built


def _loads(text: str, where: str) -> Any:
    """Parse one JSON text; `where` names it in the error."""
    try:
        return json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise AuditError(f"{where}: not valid JSON ({error}).") from error


def _json_lines(text: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield place and object of each line that is not blank."""
    _refuse_document(text, name)
    # Not splitlines(): it also breaks at U+2028 and the like, which may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{name}, line {number}"
            yield where, _as_object(_loads(line, where), where)


def _refuse_document(text: str, name: str) -> None:
    """Refuse one JSON object over several lines, such as a COCO annotation: it is valid JSON, but no questions."""
    first = text.lstrip().partition("\n")[0].strip()
    if first in ("{", "{}") or (first.startswith("{") and first.endswith((",", "[", "{"))):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return
        raise AuditError(
            f"{name}: one JSON object over several lines; questions stand one object a line, in a JSON array or in a "
            "CSV (from a COCO annotation they are drawn first, see docs/data.md)."
        )


def _array_rows(text: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield place and object of each element of a JSON array."""
    for number, row in enumerate(_loads(text, name), start=1):
        where = f"{name}, element {number}"
        yield where, _as_object(row, where)


def csv_delimiter(text: str) -> str:
    """Return what parts the header's names: spreadsheets of some countries write semicolons for commas."""
    header = text.lstrip().partition("\n")[0]
    return ";" if ";" in header and "," not in header else ","


def _csv_rows(text: str, name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield place and cells of each CSV row; an empty question_id or object cell counts as absent."""
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=csv_delimiter(text), strict=True)
    header = reader.fieldnames or []
    if len(set(header)) != len(header):
        raise AuditError(f"{name}: a column name stands twice in the header ({', '.join(header)}).")
    try:
        for row in reader:
            where = f"{name}, line {reader.line_num}"
            if None in row or None in row.values():
                raise AuditError(f"{where}: the number of cells is not that of the header ({len(header)}).")
            yield (
                where,
                {key: value for key, value in row.items() if value or key not in ("question_id", "object")},
            )
    except csv.Error as error:
        raise AuditError(f"{name}, line {reader.line_num}: not valid CSV ({error}).") from error


def _as_object(row: Any, where: str) -> Mapping[str, Any]:
    """Return a JSON object, refusing any other JSON value."""
    if not isinstance(row, dict):
        raise AuditError(f"{where}: a JSON object is expected, not {type(row).__name__}.")
    return row


def _check_row(row: Mapping[str, Any], where: str) -> QuestionRow:
    """Check one row; a missing question id is returned as the empty string, for `_with_ids` to settle."""
    texts = [key for key in QUESTION_KEYS if key in row]
    if len(texts) != 1:
        raise AuditError(
            f"{where}: exactly one of the keys text and question is needed, found {texts or 'none'}."
        )
    question = _text(row, texts[0], where)
    given = _text(row, "object", where) if row.get("object") is not None else None
    return QuestionRow(
        question_id=_question_id(row, where) if "question_id" in row else "",
        image=check_image_name(_text(row, "image", where), where),
        question=question,
        label=_label(row, where),
        object=given.strip() if given is not None else extract_object(question),
    )


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    """Return a non-blank text that UTF-8 can hold, exactly as written."""
    if key not in row:
        raise AuditError(f"{where}: the key {key} is missing.")
    value = row[key]
    if not isinstance(value, str) or not value.strip():
        raise AuditError(f"{where}: {key} must be a text that is not blank, not {value!r}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise AuditError(f"{where}: {key} holds half a surrogate pair, which is no character.") from error
    return value


def _question_id(row: Mapping[str, Any], where: str) -> str:
    """Return the id as text: the same question has an int id in one release and a string in another."""
    value = row["question_id"]
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise AuditError(f"{where}: question_id must be a whole number or a text, not {value!r}.")
    return str(value) if isinstance(value, int) else _text(row, "question_id", where).strip()


def _label(row: Mapping[str, Any], where: str) -> str:
    """Return the label in lower case."""
    label = _text(row, "label", where).strip().lower()
    if label not in LABELS:
        raise AuditError(f"{where}: label must be yes or no, not {row['label']!r}.")
    return label


def check_image_name(name: str, where: str) -> str:
    """Return `name` if it is a plain file name, so that joining it to a folder cannot leave the folder.

    Raises:
        AuditError: it has a separator, a control character, a blank end, is "." or "..", or is too long.
    """
    plain = (
        name not in ("", ".", "..")
        and name == name.strip()
        and not any(character in "/\\" or not character.isprintable() for character in name)
        and len(name.encode("utf-8", "surrogatepass")) <= _LONGEST_NAME
    )
    if not plain:
        raise AuditError(f"{where}: image must be a plain file name without a folder, not {name!r}.")
    return name


def _with_ids(rows: list[tuple[str, QuestionRow]], name: str) -> tuple[QuestionRow, ...]:
    """Number the rows from 1 where no row has an id; refuse ids on some rows only, and an id used twice."""
    missing = [where for where, row in rows if not row.question_id]
    if len(missing) == len(rows):
        return tuple(row._replace(question_id=str(number)) for number, (_, row) in enumerate(rows, start=1))
    if missing:
        raise AuditError(
            f"{missing[0]}: question_id is missing though other rows have one; give all rows one or none."
        )
    _refuse_repeated(((row.question_id, where) for where, row in rows), name)
    return tuple(row for _, row in rows)


def _refuse_repeated(ids: Iterable[tuple[str, str]], name: str) -> None:
    """Raise for the first question id that stands on two rows."""
    seen: dict[str, str] = {}
    for question_id, where in ids:
        if question_id in seen:
            first, second = (place.removeprefix(f"{name}, ") for place in (seen[question_id], where))
            raise AuditError(f"{name}: question_id {question_id} stands twice ({first} and {second}).")
        seen[question_id] = where
