"""Questions without a valid answer: about which picture, and why."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from readout_audit.contracts import INVALID, RECORDS
from readout_audit.fileio import read_table
from readout_audit.report.grid import Column, Grid, grid, numbers, texts
from readout_audit.report.inputs import CellKey, RunData, short_names
from readout_audit.report.text import of, plural

MOST_ROWS = 50
SECTION = "Answers without a clear reading"
"""Where the page lists them."""


class Unanswered(NamedTuple):
    """The invalid rows of a record file.

    Attributes:
        asked: its distinct questions.
        reasons: (image, reason) -> how many of them, most first.
    """

    asked: int
    reasons: Counter[tuple[str, str]]


def unanswered(data: RunData, cell: CellKey) -> Unanswered | None:
    """Return what has no valid answer in a cell; None where the run has no record file of it.

    Raises:
        AuditError: the record file cannot be read.
    """
    path = record_file(data, cell)
    if path is None:
        return None
    rows = read_table(path, RECORDS, "the record file").select(["image", "status", "reason"]).to_pylist()
    invalid = ((row["image"], row["reason"]) for row in rows if row["status"] == INVALID)
    return Unanswered(len(rows), Counter(invalid))


def record_file(data: RunData, cell: CellKey) -> Path | None:
    """Return a cell's record file among the manifests: its path ends in the cell's names."""
    ending = f"/records/{cell.dataset}/{cell.model}/{cell.precision}/{cell.template}.parquet"
    return next((path for path in data.files.manifests if path.as_posix().endswith(ending)), None)


def warnings(data: RunData) -> list[str]:
    """Return one sentence per cell in which questions have no valid answer."""
    names = short_names(data.cells)
    found = [(names[cell], unanswered(data, cell)) for cell in data.cells]
    return [
        f"{name}: {of(one.reasons.total(), one.asked)} distinct questions have no valid answer and are in no rate; "
        f"“{SECTION}” lists their pictures and the reasons."
        for name, one in found
        if one is not None and one.reasons
    ]


def table(found: Unanswered) -> Grid:
    """Return pictures and reasons, most questions first."""
    rows = [
        (image, _without_name(image, reason), f"{count:,}")
        for (image, reason), count in found.reasons.most_common(MOST_ROWS)
    ]
    left_out = len(found.reasons) - len(rows)
    notes = (f"{plural(left_out, 'line')} more in the record file.",) if left_out else ()
    columns = (*texts("picture"), Column("reason", "long"), *numbers("questions"))
    return grid(columns, rows, "Distinct questions without a valid answer", notes)


def _without_name(image: str, reason: str) -> str:
    """Return a reason without the picture's name, which stands in a column of its own."""
    return reason.removeprefix(f"{image}: ")
