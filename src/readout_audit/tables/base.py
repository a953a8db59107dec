"""What a table is: columns, rows of exact cells, a title, its n and its notes. No file, no markup.

A cell holds an integer, an exact ratio, a text, or a word that says why there is no number. It is never
empty, and what was not measured is never zero: `Table` refuses an empty cell.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

from readout_audit.exact import UNDEFINED, printed

NOT_RUN = "not_run"
"""The run does not hold this combination; another run may."""
NOT_AVAILABLE = "not_available"
"""The source of these answers cannot say (printed counts have no logits, for one)."""
DERIVED = "derived"
"""The number follows from others by a theorem; nobody measured it."""
PRINTED = "printed"
"""The number is the one the paper prints; several matrices give it, so nothing was counted for it."""
NOT_IDENTIFIABLE = "not_identifiable"
"""Several values fit everything the source says."""

WORDS = {
    UNDEFINED: "undefined: the ratio is zero to zero, as precision is where nothing was called yes "
    "(the paper prints 0).",
    NOT_RUN: "not_run: not part of this run.",
    NOT_AVAILABLE: "not_available: the source of these answers cannot say.",
    DERIVED: "derived: follows by Theorem 1 from the readout over all emitted tokens; it was not measured.",
    PRINTED: "printed: as the paper prints it; several confusion matrices give it, so the source counts nothing for it.",
    NOT_IDENTIFIABLE: "not_identifiable: several values fit everything the source states.",
}
"""What each word in a cell means; a table that uses one explains it in its notes."""


class Marked(NamedTuple):
    """An exact number and a word that qualifies it, printed as "0.8221 (derived)"."""

    value: Fraction | None
    word: str


class Range(NamedTuple):
    """Two exact ends and, where it is not an interval of a measured number, a word: "0.470 to 0.532"."""

    low: Fraction | int | None
    high: Fraction | int | None
    word: str = ""


def resampled(low: Fraction | None, high: Fraction | None, undefined: int, resamples: int) -> "Range | str":
    """Return an interval over resamples as a cell that says how many were left out of it as 0/0.

    Args:
        low: its lower end; None where no resample defines the value.
        high: its upper end.
        undefined: resamples left out.
        resamples: all of them.
    """
    if low is None or high is None:
        return f"{UNDEFINED} in all {resamples:,} resamples"
    return Range(low, high, f"{UNDEFINED} in {undefined:,} of {resamples:,} resamples" if undefined else "")


Cell = int | Fraction | Marked | Range | str | None
"""None is a ratio of zero to zero and prints as "undefined"."""


@dataclass(frozen=True)
class Column:
    """One column.

    Attributes:
        name: heading; unique together with `group`.
        decimals: digits after the point of every ratio in the column; None where it holds none.
        group: heading over several neighbouring columns; "" for none.
        identity: it names what a row is about (dataset, model); Markdown and LaTeX state it once, above the
            notes, where it is the same in every row. The CSV always has it.
        align: how the column is set; numbers stand right.
    """

    name: str
    decimals: int | None = None
    group: str = ""
    identity: bool = False
    align: Literal["left", "right"] = "right"

    @property
    def heading(self) -> str:
        """The column's name in one line, its group first."""
        return f"{self.group}: {self.name}" if self.group else self.name


def text_column(name: str, *, identity: bool = False) -> Column:
    """Return a column of texts, set left."""
    return Column(name, identity=identity, align="left")


@dataclass(frozen=True)
class Table:
    """One table of the paper, for whatever the run holds.

    Attributes:
        number: the paper's number; None for a table the paper does not have.
        name: file name without suffix, such as "table_02_protocols".
        title: one line; says what the cells are.
        columns: C columns.
        rows: any number of rows of C cells.
        n: what the rows count, in words ("3,000 questions per split").
        notes: sentences under the table.

    Raises:
        ValueError: a row has other than C cells, a cell is empty, or two columns have one heading.
    """

    number: int | None
    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    n: str
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        headings = [column.heading for column in self.columns]
        if len(set(headings)) != len(headings):
            raise ValueError(f"{self.name}: two columns share a heading in {headings}")
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.name}: a row has {len(row)} cells, not {len(self.columns)}: {row}")
            if any(isinstance(cell, str) and not cell.strip() for cell in row):
                raise ValueError(f"{self.name}: a cell is empty in {row}")

    def texts(self) -> list[list[str]]:
        """Return every cell as it is printed: ratios rounded half-up to their column's decimals."""
        return [
            [cell_text(cell, column) for cell, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]

    def all_notes(self) -> tuple[str, ...]:
        """Return the notes, then what each word used in a cell means."""
        used = {word for row in self.texts() for text in row for word in WORDS if _uses(text, word)}
        return (*self.notes, *(WORDS[word] for word in WORDS if word in used))


def _uses(text: str, word: str) -> bool:
    """Tell whether a cell uses a word; "printed", which other texts may hold, only in brackets."""
    return (f"({word})" if word == PRINTED else word) in text


def cell_text(cell: Cell, column: Column) -> str:
    """Return one cell as it is printed.

    Raises:
        ValueError: the column has no decimals for a ratio.
    """
    if isinstance(cell, Marked):
        return f"{cell_text(cell.value, column)} ({cell.word})"
    if isinstance(cell, Range):
        ends = f"{cell_text(cell.low, column)} to {cell_text(cell.high, column)}"
        return f"{ends} ({cell.word})" if cell.word else ends
    if isinstance(cell, str):
        return cell
    if cell is None:
        return UNDEFINED
    if isinstance(cell, int):
        return str(cell)
    if column.decimals is None:
        raise ValueError(f"column {column.heading!r} has no decimals for {cell}")
    return printed(cell, column.decimals)


def fold_constant_columns(
    table: Table,
) -> tuple[tuple[Column, ...], list[list[str]], tuple[tuple[str, str], ...]]:
    """Split off the identity columns that are the same in every row.

    Returns:
        The columns left, the printed rows with those columns alone, and (name, value) of each one split off.
        A table without rows keeps all its columns.
    """
    texts = table.texts()
    constant = [
        index
        for index, column in enumerate(table.columns)
        if column.identity and len({row[index] for row in texts}) == 1
    ]
    kept = [index for index in range(len(table.columns)) if index not in constant]
    columns = tuple(table.columns[index] for index in kept)
    rows = [[row[index] for index in kept] for row in texts]
    return columns, rows, tuple((table.columns[index].name, texts[0][index]) for index in constant)


def n_text(counts: Sequence[int], unit: str) -> str:
    """Say how many: "3,000 questions per split", or the range where splits differ ("0 ..." for none)."""
    distinct = sorted(set(counts))
    if not distinct:
        return f"0 {unit}"
    if len(distinct) == 1:
        return f"{distinct[0]:,} {unit}"
    return f"{distinct[0]:,} to {distinct[-1]:,} {unit}"
