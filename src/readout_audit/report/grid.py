"""A table as the page shows it: texts only. The template escapes them."""

from collections.abc import Sequence
from typing import NamedTuple


class Mark(NamedTuple):
    """A word with a sign and a colour; the word alone suffices."""

    word: str
    sign: str
    css: str


Cell = str | Mark


class Column(NamedTuple):
    """A heading; `kind` is "number" (right), "value" (right, may break), "text", "short" or "long" (may break)."""

    name: str
    kind: str = "text"
    group: str = ""


class Group(NamedTuple):
    """A heading over `span` columns."""

    name: str
    span: int


class Grid(NamedTuple):
    """One table; every row has as many cells as there are columns."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    notes: tuple[str, ...] = ()

    @property
    def stacks(self) -> bool:
        """Whether rows are set below each other on a narrow screen: two columns of prose do not fit side by side."""
        return sum(column.kind == "long" for column in self.columns) > 1

    @property
    def groups(self) -> tuple[Group, ...]:
        """The line of headings above the headings; empty where no column has one."""
        if not any(column.group for column in self.columns):
            return ()
        groups: list[Group] = []
        for column in self.columns:
            if groups and groups[-1].name == column.group:
                groups[-1] = Group(column.group, groups[-1].span + 1)
            else:
                groups.append(Group(column.group, 1))
        return tuple(groups)


def numbers(*names: str, group: str = "") -> tuple[Column, ...]:
    """Return columns of numbers."""
    return tuple(Column(name, "number", group) for name in names)


def texts(*names: str) -> tuple[Column, ...]:
    """Return columns of short texts."""
    return tuple(Column(name) for name in names)


def grid(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], caption: str = "", notes: Sequence[str] = ()
) -> Grid:
    """Return a checked table.

    Raises:
        ValueError: a row has another number of cells.
    """
    for row in rows:
        if len(row) != len(columns):
            raise ValueError(f"{caption!r}: a row has {len(row)} cells, not {len(columns)}")
    return Grid(tuple(columns), tuple(tuple(row) for row in rows), caption, tuple(notes))
