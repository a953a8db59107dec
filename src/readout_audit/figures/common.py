"""What several figures share: which split stands for the paper's hardest, and how a cell is named."""

from collections.abc import Iterable

from readout_audit.figures.style import describe
from readout_audit.tables.inputs import CellKey, Options

ADVERSARIAL = "adversarial"


def hardest_split(options: Options) -> str:
    """Return the split that Figures 2 and 3 show: adversarial; a run without it shows its last one."""
    return ADVERSARIAL if ADVERSARIAL in options.splits else options.splits[-1]


def cell_title(cell: CellKey, cells: Iterable[CellKey], width: int = 60) -> str:
    """Name a cell by its model and by whatever else differs between the cells of a figure."""
    others = list(cells)
    parts = [cell.model] + [
        value
        for index, value in enumerate(cell)
        if CellKey._fields[index] != "model" and len({other[index] for other in others}) > 1
    ]
    return describe(parts, width)
