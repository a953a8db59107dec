"""What a finding is: sentences, and the tables that show them."""

from collections.abc import Mapping
from typing import NamedTuple

from readout_audit.report.grid import Grid
from readout_audit.report.inputs import CellKey

Names = Mapping[CellKey, str]
"""Cell -> the short name that the page has for it."""


class Finding(NamedTuple):
    """One finding about one cell.

    Attributes:
        title: what it is about.
        cell: which cell.
        sentences: what was found.
        tables: the numbers behind it.
    """

    title: str
    cell: str
    sentences: tuple[str, ...]
    tables: tuple[Grid, ...]


def name_of(names: Names, cell: CellKey) -> str:
    """Return a cell's short name; its full one where the scores do not know it."""
    return names.get(cell) or ", ".join(cell)
