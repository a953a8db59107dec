"""F1 under every readout with its interval, and which cells stand for their model."""

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import pandas as pd

from readout_audit.scores.confusion import Confusion
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Range
from readout_audit.tables.inputs import ALL_ROWS, CellKey, RunTables, SplitKey


class Scored(NamedTuple):
    """One readout on one split of one cell.

    Attributes:
        key: (cell, labels, split).
        readout: its name.
        confusion: its counts.
        low, high: ends of the 95% interval of F1 over images; None where there is none.
    """

    key: SplitKey
    readout: str
    confusion: Confusion
    low: float | None
    high: float | None

    @property
    def interval(self) -> Cell:
        """The interval as a cell of a table."""
        return between(self.low, self.high)


def scored(inputs: RunTables) -> dict[SplitKey, dict[str, Scored]]:
    """Return every readout of every split, both in the run's order; readouts as the score file has them."""
    ends: dict[tuple[SplitKey, str], tuple[float | None, float | None]] = {}
    for row in inputs.scores.to_dict("records"):
        if row["subset"] == ALL_ROWS:
            cell = CellKey(*(row[name] for name in CellKey._fields))
            key = (cell, row["labels"], row["split"])
            ends[key, row["readout"]] = known(row["f1_low"]), known(row["f1_high"])
    found: dict[SplitKey, dict[str, Scored]] = {key: {} for key in inputs.scored_splits()}
    for (key, readout), (low, high) in ends.items():
        confusion = inputs.confusion(*key, readout) if key in found else None
        if confusion is not None:
            found[key][readout] = Scored(key, readout, confusion, low, high)
    return found


def first_cells(cells: Iterable[CellKey]) -> list[CellKey]:
    """Return the first cell of each model and source: the one its others are compared with."""
    firsts: dict[tuple[str, str], CellKey] = {}
    for cell in cells:
        firsts.setdefault((cell.model, cell.source), cell)
    return list(firsts.values())


def known(value: float | None) -> float | None:
    """Return a number of a frame, None where it is null."""
    return None if value is None or pd.isna(value) else float(value)


def exactly(value: float | None) -> Cell:
    """Return a float as a cell, with a word where it is null."""
    return NOT_AVAILABLE if known(value) is None else Fraction(float(value or 0.0))


def between(low: float | None, high: float | None) -> Cell:
    """Return two ends as a cell, with a word where one is null."""
    low, high = known(low), known(high)
    return NOT_AVAILABLE if low is None or high is None else Range(Fraction(low), Fraction(high))
