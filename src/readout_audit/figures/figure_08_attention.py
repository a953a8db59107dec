"""Figure 8: attention to the image, right answers against wrong ones (paper, Appendix F.3)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from readout_audit.figures import style
from readout_audit.figures.measured import (
    NOTHING,
    Floats,
    Panels,
    answer_panels,
    caption,
    column,
    say_in_panel,
)
from readout_audit.probe.answers import ATTENTION_IMAGE, ATTENTION_WINDOW
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.table_09_group_means import signal_title

BINS = 30
FILL = 0.25
"""Opacity of the filled histogram: light enough for the other's outline to be seen in grey."""

SHOWN = (ATTENTION_WINDOW, ATTENTION_IMAGE)
CAPTION = (
    "Shares within right and within wrong answers; vertical lines: their means. Attention of the last prompt "
    "token, summed over positions, mean over heads and layers."
)


def draw(inputs: RunTables) -> Figure:
    """Draw one row of panels per cell and set of positions, one column per split."""
    found = answer_panels(inputs)
    splits = inputs.options.splits
    figure = style.new_figure(style.WIDTH, 0.7 + 4.3 * max(1, len(found)) if found else 1.0)
    if not found:
        return style.say_nothing_to_show(figure, NOTHING)
    rows = figure.subfigures(len(found), 1, squeeze=False)
    for (row,), one in zip(rows, found, strict=True):
        row.suptitle(one.title(found))
        shown = measured_signals(one) or SHOWN[:1]
        grid = row.subplots(len(shown), len(splits), squeeze=False, sharex="row", sharey="row")
        for line, signal in zip(grid, shown, strict=True):
            for axes, split in zip(line, splits, strict=True):
                sizes = _draw_panel(axes, one.by_split.get(split, []), signal)
                axes.set_title(f"{split}\n{sizes}" if signal == shown[0] else sizes)
            title = signal_title(signal, inputs.window(one.cell)).removeprefix("attention, ")
            line[0].set_ylabel(f"{title}\nshare of answers")
    caption(rows[-1][0], CAPTION)
    _legend(figure)
    return figure


def measured_signals(one: Panels) -> list[str]:
    """Return the sets of positions whose attention a cell has; a published file may lack the image's own."""
    rows = [row for rows in one.by_split.values() for row in rows]
    return [signal for signal in SHOWN if not np.isnan(column(rows, signal)).all()]


def _draw_panel(axes: Axes, rows: Sequence[Mapping[Any, Any]], signal: str) -> str:
    """Draw both histograms on common bins; return how many answers are in each."""
    values = column(list(rows), signal)
    right = np.array([row["answer"] == row["label"] for row in rows], dtype=bool)
    known = ~np.isnan(values)
    groups = [values[known & right], values[known & ~right]]
    if not known.any():
        say_in_panel(axes, "not available")
        return ""
    edges = np.histogram_bin_edges(values[known], BINS)
    for index, group in enumerate(groups):
        if group.size:
            _draw_group(axes, group, edges, index)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.set_xlabel("attention")
    style.grid(axes)
    sizes = [style.thousands(len(group)) for group in groups]
    return f"{sizes[0]} right, {sizes[1]} wrong"


def _draw_group(axes: Axes, group: Floats, edges: Floats, index: int) -> None:
    """Draw one histogram: right answers filled, wrong ones hatched in outline."""
    look = style.mark(index)
    shares = np.histogram(group, edges)[0] / len(group)
    if index == 0:
        axes.stairs(shares, edges, fill=True, color=look.colour, alpha=FILL)
    else:
        axes.stairs(shares, edges, fill=False, edgecolor=look.colour, hatch=look.hatch, linewidth=1.2)
    axes.axvline(float(group.mean()), color=look.colour, linestyle=look.dash, linewidth=1.2)


def _legend(figure: Figure) -> None:
    """Explain both histograms once."""
    right, wrong = style.mark(0), style.mark(1)
    handles = [
        Patch(facecolor=right.colour, alpha=FILL, label="right answers"),
        Patch(facecolor="none", edgecolor=wrong.colour, hatch=wrong.hatch, label="wrong answers"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
