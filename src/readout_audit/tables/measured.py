"""What the tables of corrections and of the probe share: which rows, in which order, and floats as cells."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import isnan
from typing import Any, NamedTuple

import pandas as pd

from readout_audit.exact import p_text
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Range, text_column
from readout_audit.tables.common import IDENTITY
from readout_audit.tables.inputs import CellKey, RunTables

LEADING: tuple[Column, ...] = (*IDENTITY, text_column("readout", identity=True), text_column("split"))
"""Leading columns: the cell, the label set, whose logits, the split."""


class Block(NamedTuple):
    """Rows of one (cell, labels, split, readout)."""

    cell: CellKey
    labels: str
    split: str
    readout: str
    rows: list[Mapping[Any, Any]]

    @property
    def leading(self) -> tuple[str, ...]:
        """The cells of `LEADING`."""
        return (*self.cell, self.labels, self.readout, self.split)


def blocks(inputs: RunTables, kind: str) -> Iterator[Block]:
    """Yield the rows of a kind of file by block: cells and readouts as first met, labels and splits as in the options."""
    frame = inputs.rows(kind)
    by_key: dict[tuple[CellKey, str, str, str], list[Mapping[Any, Any]]] = {}
    for row in frame.to_dict("records"):
        cell = CellKey(*(row[name] for name in CellKey._fields))
        by_key.setdefault((cell, row["labels"], row["split"], row["readout"]), []).append(row)
    for cell, readout in dict.fromkeys((key[0], key[3]) for key in by_key):
        for labels in inputs.options.labels:
            for split in inputs.options.splits:
                rows = by_key.get((cell, labels, split, readout))
                if rows is not None:
                    yield Block(cell, labels, split, readout, rows)


def number(value: Any) -> Fraction | None:
    """Return a float of a frame as an exact number, None where it is null."""
    return None if value is None or pd.isna(value) else Fraction(float(value))


def known(value: Any) -> Cell:
    """Return a float as a cell, `not_available` where it is null."""
    exact = number(value)
    return NOT_AVAILABLE if exact is None else exact


def count(value: Any) -> Cell:
    """Return a count as a cell, `not_available` where it is null."""
    return NOT_AVAILABLE if value is None or pd.isna(value) else int(value)


def ends(row: Mapping[Any, Any], name: str, low: str = "low", high: str = "high") -> Cell:
    """Return both ends of an interval as one cell."""
    bounds = number(row[f"{name}_{low}"]), number(row[f"{name}_{high}"])
    return NOT_AVAILABLE if None in bounds else Range(*bounds)


def p_value(value: Any) -> str:
    """Return a p-value with three significant digits."""
    return NOT_AVAILABLE if value is None or isnan(value) else p_text(value)
