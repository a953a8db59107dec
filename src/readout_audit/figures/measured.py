"""What the figures of corrections and of the probe share: their blocks by cell and split."""

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure

from readout_audit.figures import style
from readout_audit.figures.common import cell_title
from readout_audit.tables.inputs import CellKey, RunTables
from readout_audit.tables.measured import Block, blocks

CAPTION_WIDTH = 110
"""Characters of a caption's line: what fits under the narrowest figure."""

NOTHING = "This run has no signals, so there is nothing to show here."

Floats = npt.NDArray[np.float64]


class Panels(NamedTuple):
    """The rows of one cell under one readout, by split."""

    cell: CellKey
    readout: str
    by_split: dict[str, list[Mapping[Any, Any]]]

    def title(self, others: list["Panels"]) -> str:
        """Name the cell, and the readout where several are shown."""
        title = cell_title(self.cell, [one.cell for one in others])
        several = len({one.readout for one in others}) > 1
        return f"{title} · {self.readout}" if several else title


def panels(inputs: RunTables, kind: str) -> list[Panels]:
    """Return the rows of a kind of file by cell, readout and split, under the primary labels."""
    return _grouped(block for block in blocks(inputs, kind) if block.labels == inputs.options.labels[0])


def _grouped(found: Iterator[Block]) -> list[Panels]:
    """Gather the blocks of one cell and readout."""
    grouped: dict[tuple[CellKey, str], Panels] = {}
    for block in found:
        place = grouped.setdefault((block.cell, block.readout), Panels(block.cell, block.readout, {}))
        place.by_split[block.split] = block.rows
    return list(grouped.values())


def answer_panels(inputs: RunTables) -> list[Panels]:
    """Return the answers of the probe by cell, readout and split, under the primary labels."""
    found: list[Panels] = []
    for cell, answers in inputs.probe.items():
        frame = answers.rows[answers.rows["labels"] == inputs.options.labels[0]]
        for readout in dict.fromkeys(frame["readout"]):
            part = frame[frame["readout"] == readout]
            by_split = {
                split: part[part["split"] == split].to_dict("records")
                for split in inputs.options.splits
                if (part["split"] == split).any()
            }
            found.append(Panels(cell, readout, by_split))
    return found


def column(rows: list[Mapping[Any, Any]], name: str) -> Floats:
    """Return a column of rows as float64, NaN where it is null."""
    return np.array([np.nan if pd.isna(row[name]) else row[name] for row in rows], dtype=np.float64)


def say_in_panel(axes: Axes, why: str) -> None:
    """Put one sentence into an empty panel."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, why, ha="center", va="center", wrap=True, transform=axes.transAxes, color=style.GREY)


def caption(row: SubFigure, text: str) -> None:
    """Write what is to be known of a figure under its last row."""
    row.supxlabel(textwrap.fill(text, CAPTION_WIDTH), fontsize=7, color=style.GREY)
