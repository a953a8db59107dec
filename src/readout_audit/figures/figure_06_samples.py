"""Figure 6: two questions for each outcome, with their pictures where those are at hand (paper, Appendix)."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from readout_audit import contracts
from readout_audit.figures import style
from readout_audit.figures.common import cell_title
from readout_audit.tables.common import hardest_split
from readout_audit.tables.inputs import Decisions, RunTables

PER_OUTCOME = 2
OUTCOMES = {
    "TP": (contracts.YES, contracts.YES),
    "FP": (contracts.NO, contracts.YES),
    "TN": (contracts.NO, contracts.NO),
    "FN": (contracts.YES, contracts.NO),
}
"""Outcome -> (label, decision)."""

_PIXELS = 400
"""Longest side of a picture in the figure."""


def draw(inputs: RunTables) -> Figure:
    """Draw the first two questions of each outcome under `readout_from`, in the file's order.

    Shows the first cell whose questions are known, on the hardest split.
    """
    options = inputs.options
    split = hardest_split(options)
    for cell, found in inputs.decisions.items():
        samples = _samples(found, split, options.readout_from, options.samples)
        if samples:
            figure = style.new_figure(style.WIDTH, 5.2)
            panels = figure.subplots(PER_OUTCOME, len(OUTCOMES), squeeze=False)
            for column, outcome in enumerate(OUTCOMES):
                for row in range(PER_OUTCOME):
                    _draw_sample(panels[row][column], outcome, samples.get((outcome, row)), inputs)
            figure.suptitle(
                f"{cell_title(cell, inputs.decisions)}, {split}: outcomes under {options.readout_from}"
            )
            return figure
    figure = style.new_figure(style.WIDTH, 1.0)
    return style.say_nothing_to_show(
        figure, "The source of these answers has no questions behind single rows."
    )


def _samples(
    found: Decisions, split: str, readout: str, preferred: tuple[str, ...]
) -> dict[tuple[str, int], Mapping[Any, Any]]:
    """Return (outcome, which) -> row for the first rows of each outcome that have a question text.

    Rows whose question id is preferred come before the others.
    """
    rows = found.rows
    if readout not in rows:
        return {}
    rows = rows[(rows["split"] == split) & rows["question"].notna()]
    rows = pd.concat([rows[rows["question_id"].isin(preferred)], rows[~rows["question_id"].isin(preferred)]])
    return {
        (outcome, index): row
        for outcome, (label, decision) in OUTCOMES.items()
        for index, row in enumerate(
            rows[(rows["label"] == label) & (rows[readout] == decision)].head(PER_OUTCOME).to_dict("records")
        )
    }


def _draw_sample(axes: Axes, outcome: str, row: Mapping[Any, Any] | None, inputs: RunTables) -> None:
    """Draw one picture with its question and both decisions; right answers have a heavy frame."""
    axes.set_xticks([])
    axes.set_yticks([])
    right = outcome in ("TP", "TN")
    for spine in axes.spines.values():
        spine.set_visible(True)
        spine.set_linewidth(2.0 if right else 0.8)
        spine.set_linestyle("-" if right else (0, (4, 2)))
        spine.set_color(style.INK)
    if row is None:
        axes.set_title(outcome)
        axes.text(0.5, 0.5, "no such answer", ha="center", va="center", transform=axes.transAxes)
        return
    axes.set_title(f"{outcome}, id {row['question_id']}")
    picture = read_picture(inputs.sources.images, row["image"])
    if picture is None:
        axes.text(0.5, 0.5, "picture\nnot at hand", ha="center", va="center", transform=axes.transAxes)
        axes.set_facecolor(style.tint(0.05))
        axes.set_box_aspect(1)
    else:
        axes.imshow(picture)
    other = row.get(inputs.options.readout_to)
    asked = textwrap.shorten(row["question"], 90, placeholder=" …")
    lines = [
        *textwrap.wrap(asked, 26),
        f"label {row['label']}, read {row[inputs.options.readout_from]}",
        f"{inputs.options.readout_to}: {other}",
    ]
    axes.set_xlabel("\n".join(lines), fontsize=7)


def read_picture(folder: Path | None, name: str | None) -> npt.NDArray[np.uint8] | None:
    """Return a picture as (side, side, 3) bytes, small, on white; None where it is missing or no picture.

    The name comes from a question file: anything but a plain file name is not followed.
    """
    if folder is None or not name or Path(name).name != name:
        return None
    try:
        with Image.open(folder / name) as opened:
            opened.draft("RGB", (_PIXELS, _PIXELS))
            picture = opened.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    picture.thumbnail((_PIXELS, _PIXELS))
    square = Image.new("RGB", (max(picture.size),) * 2, "white")
    square.paste(picture, ((square.width - picture.width) // 2, (square.height - picture.height) // 2))
    return np.asarray(square, dtype=np.uint8)
