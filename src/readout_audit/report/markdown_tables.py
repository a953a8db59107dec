"""A table that `tables.render.to_markdown` wrote, read back: title, cells as they were, notes.

The Markdown file is what a run keeps with title and notes; every escape of it is undone here, so that the page
escapes the texts once, in its own way.
"""

import re
from html import unescape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from readout_audit.errors import AuditError
from readout_audit.report.grid import Column, Grid, grid

_TITLE = re.compile(r"\*\*(?:Table (\d+)|Beyond the paper)\.\*\* (.*)", re.DOTALL)
_ESCAPED = re.compile(r"\\([\\`*\[\]|~_])")
_BAR = re.compile(r"(?<!\\)((?:\\\\)*)\|")


LONG = 28
"""A text column with a longer cell may break its lines."""


class PaperTable(NamedTuple):
    """One table of the run; `number` is None for tables that the paper does not have."""

    name: str
    number: int | None
    title: str
    table: Grid

    @property
    def heading(self) -> str:
        """What stands over the table."""
        return self.title if self.number is None else f"Table {self.number}. {self.title}"

    @property
    def place(self) -> tuple[bool, int, str]:
        """Where it stands: the paper's tables by number, then the others by name."""
        return self.number is None, self.number or 0, self.name


def read_markdown_table(path: Path) -> PaperTable:
    """Read one table.

    Raises:
        AuditError: the file cannot be read or is no such table.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AuditError(f"{path}: the table cannot be read ({error}).") from error
    paragraphs = text.rstrip("\n").split("\n\n")
    title = _TITLE.fullmatch(paragraphs[0])
    lines = paragraphs[1].split("\n") if len(paragraphs) > 1 else []
    if title is None or len(lines) < 2:
        raise AuditError(f"{path}: this is no table as readout-audit writes it; make it again.")
    headings, rules = _cells(lines[0]), _cells(lines[1])
    rows = [_cells(line) for line in lines[2:]]
    if any(len(row) != len(headings) for row in (rules, *rows)):
        raise AuditError(f"{path}: a row has another number of cells than the heading; make it again.")
    notes = [plain_text(paragraph) for paragraph in paragraphs[2:]]
    return PaperTable(
        path.stem,
        int(title[1]) if title[1] else None,
        plain_text(title[2]),
        grid(_columns(headings, rules, rows), rows, "", notes),
    )


def _cells(line: str) -> list[str]:
    """Return the cells of one line "| a | b |" as plain texts."""
    inner = line.strip()[1:-1]
    marked = _BAR.sub(lambda match: f"{match[1]}\x00", inner)
    return [plain_text(cell.strip()) for cell in marked.split("\x00")]


def _columns(headings: list[str], rules: list[str], rows: list[list[str]]) -> list[Column]:
    """Return the columns; neighbours that share what stands before ": " become a group."""
    widths = [max(map(len, cells)) for cells in zip(headings, *rows, strict=True)]
    kinds = [
        "number" if rule.endswith(":") else "long" if width > LONG else "text"
        for rule, width in zip(rules, widths, strict=True)
    ]
    columns: list[Column] = []
    for group, members in groupby(zip(headings, kinds, strict=True), key=lambda item: _prefix(item[0])):
        several = list(members)
        grouped = bool(group) and len(several) > 1
        columns += [
            Column(heading.removeprefix(f"{group}: "), kind, group) if grouped else Column(heading, kind)
            for heading, kind in several
        ]
    return columns


def _prefix(heading: str) -> str:
    """Return what stands before the first ": ", empty where there is none."""
    group, mark, _ = heading.partition(": ")
    return group if mark else ""


def plain_text(text: str) -> str:
    """Undo `tables.render.markdown_text`."""
    return unescape(_ESCAPED.sub(r"\1", text))
