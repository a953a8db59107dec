"""Rows of printed scores read from a CSV, and what was found about them written as CSV, JSON or text."""

import csv
import difflib
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from readout_audit.consistency.metrics import METRICS
from readout_audit.consistency.search import Consistency, Nearest
from readout_audit.datasets.parse import csv_delimiter
from readout_audit.errors import AuditError
from readout_audit.exact import PrintedValue, printed, read_printed
from readout_audit.fileio import write_json, write_text

COUNTS = ("positives", "negatives")
COLUMNS = (*COUNTS, *METRICS)

_COUNT = re.compile(r"-?[0-9]{1,15}")


@dataclass(frozen=True)
class Row:
    """One row of printed scores: its names, its numbers of positives and negatives, its printed values."""

    names: tuple[str, ...]
    positives: int
    negatives: int
    printed: dict[str, PrintedValue]


class Reading(NamedTuple):
    """How the numbers of a table are to be read.

    Attributes:
        percent: scores are in percent.
        decimals: decimals of every score as printed; None takes them as typed.
        positives, negatives: the counts of rows that give none.
    """

    percent: bool = False
    decimals: int | None = None
    positives: str | None = None
    negatives: str | None = None


class Rows(NamedTuple):
    """A table of printed scores and the headings of its name columns."""

    name_columns: tuple[str, ...]
    rows: tuple[Row, ...]


def read_count(text: str, what: str) -> int:
    """Read a number of questions.

    Raises:
        AuditError: the text is no whole number, or negative.
    """
    if not _COUNT.fullmatch(text.strip()):
        raise AuditError(f"{what}: {text.strip()!r} is not a whole number of questions.")
    if (count := int(text)) < 0:
        raise AuditError(f"{what}: {count} is negative; give the number of questions with that label.")
    return count


def make_row(names: Sequence[str], cells: dict[str, str], where: str, reading: Reading) -> Row:
    """Build a row from the texts of its known columns; an empty text means "not printed".

    Raises:
        AuditError: a count is missing or bad, a score is bad, or no score is printed; starts with `where`.
    """
    positives = _count_of("positives", cells, reading.positives, where)
    negatives = _count_of("negatives", cells, reading.negatives, where)
    printed_values = {
        name: read_printed(cells[name], f"{where}{name}", percent=reading.percent, decimals=reading.decimals)
        for name in METRICS
        if cells.get(name, "").strip()
    }
    if not printed_values:
        raise AuditError(f"{where}no printed value to check; give at least one of {', '.join(METRICS)}.")
    return Row(tuple(names), positives, negatives, printed_values)


def _count_of(name: str, cells: dict[str, str], default: str | None, where: str) -> int:
    """Read one of `COUNTS` from a row's cells, or from the default for rows that do not give it."""
    text = cells.get(name, "").strip() or (default or "")
    if not text:
        raise AuditError(f"{where}{name}: not given; say how many questions have that label (--{name} N).")
    return read_count(text, f"{where}{name}")


def read_rows(path: Path, reading: Reading) -> Rows:
    """Read a CSV of printed scores.

    Columns left of the first known one are names, whatever their headings; the known ones are `COLUMNS`, in
    any order and case ("Yes-rate" is yes_rate). An empty cell is a score that is not printed. Cells may be parted by
    semicolons; a comma in a number is then its decimal point.

    Raises:
        AuditError: the file cannot be read, has no row or an unknown column, or a cell is bad.
    """
    delimiter, lines = _read_csv(path)
    if not lines:
        raise AuditError(f"{path}: no line in it; the first must name the columns.")
    names, known = _headings(path, lines[0][1])
    rows = []
    for number, cells in lines[1:]:
        if len(cells) != len(names) + len(known):
            raise AuditError(
                f"{path}, line {number}: {len(cells)} cells where the header has {len(names) + len(known)}."
            )
        numbers = cells[len(names) :]
        if delimiter == ";":  # written where a comma is the decimal point
            numbers = [number.replace(",", ".") for number in numbers]
        values = dict(zip(known, numbers, strict=True))
        rows.append(make_row(cells[: len(names)], values, f"{path}, line {number}, ", reading))
    if not rows:
        raise AuditError(f"{path}: no row below the header.")
    return Rows(names, tuple(rows))


def _read_csv(path: Path) -> tuple[str, list[tuple[int, list[str]]]]:
    """Return what parts the cells, and (line number, cells) of every line that is not blank."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        delimiter = csv_delimiter(text)
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        return delimiter, [
            (reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)
        ]
    except OSError as error:
        raise AuditError(f"{path}: cannot be read ({error.strerror or error}).") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise AuditError(f"{path}: not a CSV in UTF-8 ({error}).") from error


def _headings(path: Path, header: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split a header into name columns and known columns."""
    plain = [re.sub(r"[ -]+", "_", heading.strip().lower()) for heading in header]
    start = next((i for i, heading in enumerate(plain) if heading in COLUMNS), len(plain))
    names, known = tuple(heading.strip() for heading in header[:start]), tuple(plain[start:])
    for i, heading in enumerate(plain):
        near = difflib.get_close_matches(heading, COLUMNS, n=1, cutoff=0.85)
        if heading not in COLUMNS and (near or i > start):
            known_ones = f"the known ones are {', '.join(COLUMNS)}, and columns of names stand left of them."
            remedy = f"did you mean {near[0]}?" if near else known_ones
            raise AuditError(f"{path}: column {header[i].strip()!r} is not known; {remedy}")
        if heading in plain[:i]:
            raise AuditError(f"{path}: column {header[i].strip()!r} stands there twice.")
    return names, known


def write_results(path: Path, rows: Rows, results: Sequence[Consistency]) -> None:
    """Write one record per row: JSON with every list, or CSV with lists as text, by the file's suffix.

    Raises:
        AuditError: the suffix is neither .csv nor .json.
    """
    if path.suffix == ".json":
        pairs = zip(rows.rows, results, strict=True)
        write_json(path, [_json_record(rows.name_columns, row, result) for row, result in pairs])
    elif path.suffix == ".csv":
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*rows.name_columns, *COLUMNS, *_RESULT_COLUMNS])
        for row, result in zip(rows.rows, results, strict=True):
            texts = [row.printed[name].text if name in row.printed else "" for name in METRICS]
            writer.writerow([*row.names, row.positives, row.negatives, *texts, *_csv_cells(result)])
        write_text(path, stream.getvalue())
    else:
        raise AuditError(f"{path}: name a file that ends in .csv or .json.")


_RESULT_COLUMNS = (
    *("fits", "matrices", "tp", "fp", "fn", "tn", "conflict"),
    *("nearest_tp", "nearest_fp", "nearest_fn", "nearest_tn", "nearest_distance", "nearest_prints", "notes"),
)


def _csv_cells(result: Consistency) -> list[object]:
    """Return the cells of `_RESULT_COLUMNS`; the matrix only where exactly one fits."""
    only: Sequence[object] = result.matrices[0] if result.count == 1 and result.matrices else [""] * 4
    nearest: list[object] = [""] * 6
    if result.nearest:
        near = result.nearest
        prints = ", ".join(f"{name} {text}" for name, text in near.prints.items())
        nearest = [*near.matrix, printed(near.distance, 2), prints]
    notes = " ".join(result.notes)
    return ["yes" if result.fits else "no", result.count, *only, result.blame, *nearest, notes]


def _json_record(name_columns: Sequence[str], row: Row, result: Consistency) -> dict[str, Any]:
    """Return everything that was found about a row as plain JSON values."""
    return {
        "names": dict(zip(name_columns, row.names, strict=True)),
        "positives": row.positives,
        "negatives": row.negatives,
        "printed": {name: value.text for name, value in row.printed.items()},
        "rounding": result.rounding,
        "fits": result.fits,
        "count": result.count,
        "matrices": [matrix._asdict() for matrix in result.matrices],
        "conflicts": [list(names) for names in result.conflicts],
        "nearest": _json_nearest(result.nearest) if result.nearest else None,
        "notes": list(result.notes),
    }


def _json_nearest(near: Nearest) -> dict[str, Any]:
    """Return the nearest matrix as plain JSON values; the distance in units of the last printed digit."""
    return {
        "matrix": near.matrix._asdict(),
        "distance": printed(near.distance, 2),
        "count": near.count,
        "prints": dict(near.prints),
    }


def describe(rows: Rows, results: Sequence[Consistency]) -> Iterator[str]:
    """Yield the lines of a short report for people."""
    titles = [
        _printable(" / ".join(filter(None, row.names))) or f"row {i}"
        for i, row in enumerate(rows.rows, start=1)
    ]
    width = max(map(len, titles)) if len(titles) > 1 else 0
    for title, result in zip(titles, results, strict=True):
        lead = f"{title:<{width}}  " if len(titles) > 1 else ""
        for line in _lines(result):
            yield lead + line
            lead = " " * len(lead)
    if len(titles) > 1:
        none = sum(not result.fits for result in results)
        yield f"{len(titles)} rows: {len(titles) - none} have a matrix, {none} have none."


def _lines(result: Consistency) -> Iterator[str]:
    """Yield the lines about one row."""
    if result.count == 1:
        yield f"1 matrix{''.join(f': {matrix}' for matrix in result.matrices)}"
    elif result.fits:
        yield f"{result.count:,} matrices"
        yield from (f"  {matrix}" for matrix in result.matrices)
        if result.count > len(result.matrices) > 0:
            yield f"  and {result.count - len(result.matrices):,} more"
    else:
        yield f"no matrix: {result.blame}"
    if result.nearest:
        near = result.nearest
        others = f", one of {near.count:,} as near" if near.count > 1 else ""
        prints = ", ".join(f"{name} {text}" for name, text in near.prints.items())
        yield f"  nearest: {near.matrix}{others}, prints {prints}"
        yield f"  (off by up to {printed(near.distance, 1)} units of the last digit)"
    yield from (f"  note: {note}" for note in result.notes)


def _printable(text: str) -> str:
    """Replace characters that would steer a terminal."""
    return "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
