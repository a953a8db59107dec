"""Read any answer file into rows of keys and values; what they mean is decided in `dialects`."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from readout_audit.datasets.parse import csv_delimiter
from readout_audit.errors import AuditError

Row = Mapping[str, Any]

WIDEST_CELL = 2**27
"""Characters; result files of some kits carry whole pictures in base64."""


LONGEST_SHOWN = 160
"""Characters of a value that a sentence quotes."""


ANY_FILE = "write it anew, as one JSON array or one object per line"
ANY_LINE = "mend that line, or ask its question again"
LAST_LINE = (
    "it is the last line, so the file may have been cut off: copy it again, or leave the line out and score the rest with "
    "--partial, which needs an image column"
)
"""What to do about a text that is not JSON."""


class Loaded(NamedTuple):
    """Rows of a file, where each stands, the container they came in, and what stands around them."""

    rows: Sequence[Row]
    places: Sequence[str]
    container: str
    around: Mapping[str, Any]


def load_rows(path: Path) -> Loaded:
    """Read a file by its content: Parquet, XLSX, JSON lines, a JSON array or document, TSV or CSV.

    Raises:
        AuditError: the file cannot be read, is empty or is none of these.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise AuditError(f"{path}: the answer file cannot be read ({error.strerror or error}).") from error
    if raw.startswith(b"PAR1"):
        return _parquet(path)
    if raw.startswith(b"PK\x03\x04"):
        return _xlsx(raw, path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AuditError(f"{path}: not UTF-8 text (byte {error.start}); save it as UTF-8.") from error
    start = text.lstrip()[:1]
    loaded = _json(text, path) if start in ("{", "[") else _delimited(text, path)
    if not loaded.rows:
        raise AuditError(f"{path}: holds no answers.")
    return loaded


def _parquet(path: Path) -> Loaded:
    """Read the rows of a Parquet file."""
    try:
        rows = pq.read_table(path).to_pylist()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise AuditError(
            f"{path}: not a readable Parquet file ({_one_line(error)}); copy it or make it again."
        ) from error
    if not rows:
        raise AuditError(f"{path}: holds no answers.")
    return Loaded(rows, _numbered("row", len(rows)), "Parquet", {})


def _xlsx(raw: bytes, path: Path) -> Loaded:
    """Read the first sheet of a workbook; its first row is the header."""
    import openpyxl  # slow to import and needed for this container alone

    try:
        book = openpyxl.load_workbook(io.BytesIO(raw), read_only=True, data_only=True)
        cells = [list(row) for row in book.worksheets[0].iter_rows(values_only=True)]
    except Exception as error:  # damage shows as whatever the zip, XML and sheet readers meet in it
        raise AuditError(f"{path}: not a readable XLSX workbook ({_one_line(error)}).") from error
    filled = [(number, row) for number, row in enumerate(cells, start=1) if any(v is not None for v in row)]
    if len(filled) < 2:
        raise AuditError(f"{path}: the first sheet holds no answers.")
    header = _header(["" if name is None else str(name) for name in filled[0][1]], path)
    # Empty cells at the end of a row are left out by some writers; the key is there all the same.
    rows = [dict(zip_longest(header, row[: len(header)])) for _, row in filled[1:]]
    return Loaded(rows, [f"row {number}" for number, _ in filled[1:]], "XLSX", {})


def _json(text: str, path: Path) -> Loaded:
    """Read JSON lines, one array, or one document that holds its rows under `results` or `logs`."""
    whole = _whole_document(text, path)
    if whole is None:
        return _json_lines(text, path)
    rows, around = whole, {}
    if isinstance(whole, dict):
        key = next((key for key in ("results", "logs") if isinstance(whole.get(key), list)), None)
        if key is None:
            # One line of JSON lines is a document too.
            return Loaded([whole], ["line 1"], "JSON lines", {})
        rows, around = whole[key], {name: value for name, value in whole.items() if name != key}
    places = _numbered("element", len(rows))
    for row, place in zip(rows, places, strict=True):
        if not isinstance(row, dict):
            raise AuditError(f"{path}, {place}: a JSON object is expected, not {type(row).__name__}.")
    return Loaded(rows, places, "JSON", around)


def _whole_document(text: str, path: Path) -> Any:
    """Return the file as one JSON value; None where its first line is a value of its own and more follow."""
    first, _, rest = text.strip().partition("\n")
    if rest and first.startswith("{"):
        try:
            json.loads(first)
        except ValueError:
            pass
        else:
            return None
    return _loads(text, str(path), ANY_FILE)


def _json_lines(text: str, path: Path) -> Loaded:
    """Read one JSON object per line; blank lines are passed over."""
    rows, places = [], []
    last = text.rstrip().count("\n") + 1
    # Not splitlines(): it also breaks at U+2028 and the like, which may stand inside a JSON string.
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            place = f"line {number}"
            row = _loads(line, f"{path}, {place}", LAST_LINE if number == last else ANY_LINE)
            if not isinstance(row, dict):
                raise AuditError(f"{path}, {place}: a JSON object is expected, not {type(row).__name__}.")
            rows.append(row)
            places.append(place)
    return Loaded(rows, places, "JSON lines", {})


def _loads(text: str, where: str, remedy: str) -> Any:
    """Parse one JSON text, refusing a key that stands twice (a plain parser keeps the last).

    Raises:
        AuditError: it is not JSON; the sentence ends with the remedy.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            raise ValueError("a key stands twice in one object")
        return built

    try:
        value = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise AuditError(f"{where}: not valid JSON ({error}); {remedy}.") from error
    if "\\ud" in text.lower():  # only an escape can bring in what UTF-8 has no bytes for
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise AuditError(f"{where}: holds half a surrogate pair, which is no character.") from error
    return value


def _delimited(text: str, path: Path) -> Loaded:
    """Read TSV where the header has a tab, else CSV."""
    delimiter = "\t" if "\t" in text.lstrip().partition("\n")[0] else csv_delimiter(text)
    csv.field_size_limit(WIDEST_CELL)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, places = [], []
    try:
        header = _header(next(reader, []), path)
        for cells in reader:
            if not cells:
                continue
            place = f"line {reader.line_num}"
            if len(cells) != len(header):
                raise AuditError(f"{path}, {place}: {len(cells)} cells under a header of {len(header)}.")
            rows.append(dict(zip(header, cells, strict=True)))
            places.append(place)
    except csv.Error as error:
        raise AuditError(f"{path}, line {reader.line_num}: not valid CSV or TSV ({error}).") from error
    return Loaded(rows, places, "TSV" if delimiter == "\t" else "CSV", {})


def _header(names: list[str], path: Path) -> list[str]:
    """Return stripped column names; two alike are refused."""
    header = [name.strip() for name in names]
    named = [name for name in header if name]
    if len(set(named)) != len(named):
        raise AuditError(f"{path}: a column name stands twice in the header ({', '.join(named)}).")
    return header


def shown(value: object) -> str:
    """Return a value as Python writes it, cut to what a sentence bears."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


def _one_line(error: Exception) -> str:
    """Return what a library says is wrong, on one line."""
    return " ".join(str(error).split()).rstrip(".")


def _numbered(word: str, n: int) -> list[str]:
    """Return "word 1" to "word n"."""
    return [f"{word} {number}" for number in range(1, n + 1)]
