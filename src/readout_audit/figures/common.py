"""What several figures share: how a cell is named."""

from collections.abc import Iterable

from readout_audit.figures.style import describe
from readout_audit.tables.inputs import CellKey


def cell_title(cell: CellKey, cells: Iterable[CellKey], width: int = 60) -> str:
    """Name a cell by its model and by whatever else differs between the cells of a figure."""
    others = list(cells)
    parts = [cell.model] + [
        f"prompt {value}" if field == "template" else value
        for index, (field, value) in enumerate(zip(CellKey._fields, cell, strict=True))
        if field != "model" and len({other[index] for other in others}) > 1
    ]
    return describe(parts, width)
