"""The running yes-rate: the share of yes among the questions answered so far, in the order they were asked."""

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from readout_audit import contracts
from readout_audit.exact import printed
from readout_audit.figures import style
from readout_audit.tables.inputs import CellKey, RunTables

POINTS = 3000
"""Most points drawn of one curve; a longer stream is thinned evenly, its first and last question kept."""

NO_ORDER = "The source of these answers does not know the order in which the questions were asked."

LABEL_LINE: dict[str, Any] = {"color": style.GREY, "linewidth": 0.9, "linestyle": (0, (1, 2))}
"""How the share of label yes is drawn: where the rate would end if every answer were right."""


class Curve(NamedTuple):
    """One running rate.

    Attributes:
        asked: shape (k,), how many valid questions were answered so far, counted from 1.
        rate: shape (k,), share of yes among them.
        n: valid questions in all.
        last: share of yes among all n.
    """

    asked: npt.NDArray[np.int64]
    rate: npt.NDArray[np.float64]
    n: int
    last: Fraction


def running_rate(decisions: pd.Series) -> Curve | None:
    """Return the running yes-rate of one readout; invalid rows are left out, None where none is left.

    Args:
        decisions: n decisions in the order asked; null where the source cannot say.
    """
    valid = decisions[decisions.notna() & (decisions != contracts.INVALID)]
    n = len(valid)
    if not n:
        return None
    asked = np.arange(1, n + 1)
    yes = np.cumsum((valid == contracts.YES).to_numpy(dtype=np.int64))
    kept = np.unique(np.linspace(0, n - 1, min(n, POINTS)).round().astype(np.int64))
    return Curve(asked[kept], yes[kept] / asked[kept], n, Fraction(int(yes[-1]), n))


def ordered_cells(inputs: RunTables) -> list[CellKey]:
    """Return the cells whose questions are in the order they were asked; printed counts have none."""
    return [cell for cell, found in inputs.decisions.items() if bool(found.rows["order_known"].all())]


def draw_panel(axes: Axes, inputs: RunTables, cell: CellKey, split: str) -> None:
    """Draw both readouts of the gap pair on one split, their last values and the share of label yes."""
    rows = inputs.decisions[cell].rows
    rows = rows[rows["split"] == split]
    ends: list[tuple[Fraction, str]] = []
    longest = 0
    for index, readout in enumerate(pair(inputs)):
        curve = running_rate(rows[readout]) if readout in rows else None
        if curve is None:
            continue
        step = max(1, len(curve.asked) // 8)
        axes.plot(curve.asked, curve.rate, **line(index), markevery=(step // 2, step))
        ends.append((curve.last, style.INK))
        longest = max(longest, curve.n)
    if ends:
        share = Fraction(int((rows["label"] == contracts.YES).sum()), len(rows))
        axes.axhline(float(share), **LABEL_LINE)
        ends.append((share, style.GREY))
    else:
        axes.text(0.5, 0.5, "no decisions on this split", ha="center", va="center", transform=axes.transAxes)
    _name_ends(axes, ends)
    axes.set_ylim(-0.02, 1.02)
    axes.set_xlim(0, max(1, longest))
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10], integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: style.thousands(value)))
    axes.set_xlabel("questions answered so far")
    axes.set_title(f"{split} (n = {style.thousands(longest)})")
    style.grid(axes)


def _name_ends(axes: Axes, ends: list[tuple[Fraction, str]]) -> None:
    """Write the last values to the right of the panel, moved apart where they would touch."""
    heights = style.spread([float(value) for value, _ in ends], gap=0.07, low=0.03, high=0.97)
    for (value, colour), height in zip(ends, heights, strict=True):
        axes.annotate(
            printed(value, 3),
            (1, height),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
            color=colour,
        )


def pair(inputs: RunTables) -> tuple[str, str]:
    """Return the two readouts that are drawn, the emitted-token side first."""
    return inputs.options.readout_from, inputs.options.readout_to


def line(index: int) -> dict[str, Any]:
    """Return how the index-th curve is drawn."""
    look = style.mark(index)
    return {
        "color": look.colour,
        "linestyle": look.dash,
        "marker": look.marker,
        "markersize": 4,
        "markerfacecolor": "white",
    }


def legend(figure: Figure, inputs: RunTables) -> None:
    """Explain curves and reference line once, above the panels."""
    handles = [Line2D([], [], **line(index), label=readout) for index, readout in enumerate(pair(inputs))]
    handles.append(Line2D([], [], **LABEL_LINE, label="share of questions labelled yes"))
    figure.legend(handles=handles, loc="outside upper center", ncols=3, handlelength=3.2)
