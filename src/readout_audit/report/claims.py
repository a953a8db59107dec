"""The claims table on the page: what each verdict means, how many there are, which rows need a reader."""

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from readout_audit.errors import AuditError
from readout_audit.report.grid import Cell, Column, Grid, Mark, grid
from readout_audit.report.inputs import CellKey, short_names
from readout_audit.report.text import listed

COLUMNS = ("id", "section", "claim", "published", "reproduced", "decimals", "status", "source", "note")


class Verdict(NamedTuple):
    """A status in words, with a sign and the name of its colour."""

    mark: Mark
    meaning: str


VERDICTS = {
    "reproduced": Verdict(
        Mark("reproduced", "✓", "good"), "found here, rounded to the printed decimals, as printed"
    ),
    "within_noise": Verdict(
        Mark("within noise", "≈", "near"), "differs by no more than counted near-tied decisions allow"
    ),
    "differs": Verdict(Mark("differs", "✗", "bad"), "possible as printed, and this run contradicts it"),
    "inconsistent_in_paper": Verdict(
        Mark("inconsistent in the paper", "!", "odd"),
        "printed numbers that belong together cannot all be true; nothing had to be run to see it",
    ),
    "derived": Verdict(Mark("derived", "→", "calm"), "follows from other numbers, was not measured"),
    "not_identifiable": Verdict(
        Mark("not identifiable", "?", "calm"), "several values fit everything the source says"
    ),
    "not_run": Verdict(Mark("not run", "–", "calm"), "this run did not do what the number is about"),
}
"""Status -> how it is shown and what it means, the order in which they are counted."""

NEED_A_READER = ("differs", "inconsistent_in_paper", "within_noise")


class VerdictCount(NamedTuple):
    """How many claims have one verdict."""

    verdict: Verdict
    number: int


class Section(NamedTuple):
    """The claims of one section; `judged` counts its verdicts in words."""

    name: str
    judged: str
    rows: Grid


class Claims(NamedTuple):
    """The claims of a run, ready to be shown.

    Attributes:
        total: published numbers.
        counts: of every verdict, zeros included.
        notable: those that differ, contradict each other or need noise to agree, told together where one note does.
        sections: every row, by section of the paper.
        is_own: some number was held against answers of this run.
        about: whose answers the verdicts are about, where that is not every cell of the run; else empty.
    """

    total: int
    counts: tuple[VerdictCount, ...]
    notable: Grid | None
    sections: tuple[Section, ...]
    is_own: bool
    about: str


def read_claims(path: Path, cells: Sequence[CellKey]) -> Claims:
    """Read the claims table of a run with these cells.

    Raises:
        AuditError: the file cannot be read, has other columns, or has an unknown status.
    """
    rows = _rows(path)
    unknown = next((row for row in rows if row["status"] not in VERDICTS), None)
    if unknown is not None:
        raise AuditError(f"{path}: claim {unknown['id']!r} has the unknown status {unknown['status']!r}.")
    counted = Counter(row["status"] for row in rows)
    counts = tuple(VerdictCount(verdict, counted[status]) for status, verdict in VERDICTS.items())
    notable = merged([row for status in NEED_A_READER for row in rows if row["status"] == status])
    sections = dict.fromkeys(row["section"] for row in rows)
    sources = {row["source"] for row in rows}
    held = [cell for cell in cells if cell.text in sources]
    return Claims(
        len(rows),
        counts,
        _grid(notable, with_section=True) if notable else None,
        tuple(_section(section, [row for row in rows if row["section"] == section]) for section in sections),
        bool(held),
        _about(cells, held),
    )


def _about(cells: Sequence[CellKey], held: Sequence[CellKey]) -> str:
    """Say whose answers the verdicts are about, where some or all cells of the run are not among them."""
    names = {cell: _bracketed(name) for cell, name in short_names(cells).items()}
    others = [cell for cell in cells if cell not in held]
    if not others:
        return ""
    if not held:
        return (
            f"The verdicts are not about {listed(list(dict.fromkeys(cell.model for cell in others)))}. The paper asked "
            "other models, or other questions: nothing below was held against an answer of this run. What is left is what "
            "the printed numbers say about each other."
        )
    return (
        f"The verdicts are about {listed([names[cell] for cell in held])}, and not about "
        f"{listed([names[cell] for cell in others])}."
    )


def _bracketed(name: str) -> str:
    """Return a short name of a cell so that it can stand in a list: what differs beside the model in brackets."""
    model, comma, rest = name.partition(", ")
    return f"{model} ({rest})" if comma else model


def merged(rows: Sequence[dict[str, str]]) -> list[dict[str, str]]:
    """Join neighbours that one sentence explains (the numbers of one printed row) into one row.

    They share section, status and a note, and nothing was found here for any of them.
    """
    joined: list[dict[str, str]] = []
    for row in rows:
        before = joined[-1] if joined else None
        if before is not None and row["note"] and _reason(row) == _reason(before):
            joined[-1] = before | {
                "claim": f"{before['claim']}; {row['claim']}",
                "published": f"{before['published']}; {row['published']}",
            }
        else:
            joined.append(row)
    return joined


def _reason(row: dict[str, str]) -> tuple[str, str, str, str]:
    """Return what rows that are told together have in common."""
    return row["section"], row["status"], row["note"], row["reproduced"]


def _section(name: str, rows: Sequence[dict[str, str]]) -> Section:
    """Return one section's rows and how they were judged."""
    counted = Counter(row["status"] for row in rows)
    judged = ", ".join(
        f"{counted[status]:,} {verdict.mark.word}" for status, verdict in VERDICTS.items() if counted[status]
    )
    return Section(name, judged, _grid(rows))


def _rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of the file as they are."""
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream)
            rows = list(reader)
    except (OSError, UnicodeDecodeError) as error:
        raise AuditError(f"{path}: the claims table cannot be read ({error}).") from error
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise AuditError(f"{path}: the claims table must have the columns {', '.join(COLUMNS)}.")
    if any(None in row or None in row.values() for row in rows):
        raise AuditError(f"{path}: a row of the claims table has too many or too few cells; make it again.")
    return rows


def _grid(rows: Sequence[dict[str, str]], *, with_section: bool = False) -> Grid:
    """Return claims as a table."""
    columns = [
        *([Column("section", "short")] if with_section else []),
        Column("claim", "long"),
        Column("published", "value"),
        Column("here", "value"),
        Column("verdict", "short"),
        Column("note", "long"),
    ]
    cells: list[list[Cell]] = [
        [
            *([row["section"]] if with_section else []),
            row["claim"],
            row["published"],
            row["reproduced"] or "–",
            VERDICTS[row["status"]].mark,
            row["note"] or "–",
        ]
        for row in rows
    ]
    return grid(columns, cells)
