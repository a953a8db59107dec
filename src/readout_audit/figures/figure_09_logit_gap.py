"""Figure 9: the absolute logit gap by outcome: mean with one SD, and its density (paper, Appendix F.3)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import gaussian_kde

from readout_audit.figures import style
from readout_audit.figures.measured import Floats, answer_panels, caption, column
from readout_audit.tables.inputs import RunTables

OUTCOMES = ("tp", "tn", "fp", "fn")
GAP = "|yes logit − no logit|"
NOTHING = "This run has no probe of single answers, so there is nothing to show here."
CAPTION = (
    "Gap: largest logit among the readout's yes ids minus largest among its no ids. Above: mean and one sample SD. "
    "Below: Gaussian kernel density (Scott's bandwidth), cut at 0."
)


def draw(inputs: RunTables) -> Figure:
    """Draw two rows of panels per cell, one column per split."""
    found = answer_panels(inputs)
    splits = inputs.options.splits
    figure = style.new_figure(style.WIDTH, 0.7 + 4.4 * max(1, len(found)) if found else 1.0)
    if not found:
        return style.say_nothing_to_show(figure, NOTHING)
    rows = figure.subfigures(len(found), 1, squeeze=False)
    for (row,), one in zip(rows, found, strict=True):
        row.suptitle(one.title(found))
        means, densities = row.subplots(2, len(splits), squeeze=False, sharey="row")
        for place, split in enumerate(splits):
            groups = gaps(one.by_split.get(split, []))
            _draw_means(means[place], groups)
            _draw_densities(densities[place], groups)
            means[place].set_title(split)
        # Only now: a limit set earlier would stop the other panels from widening the common axis.
        means[0].set_ylim(bottom=min(0.0, means[0].get_ylim()[0]))
        densities[0].set_ylim(bottom=0)
        means[0].set_ylabel(GAP)
        densities[0].set_ylabel("density")
    caption(rows[-1][0], CAPTION)
    handles = [
        Line2D([], [], color=style.mark(i).colour, linestyle=style.mark(i).dash, label=name.upper())
        for i, name in enumerate(OUTCOMES)
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4, handlelength=3.0)
    return figure


def gaps(rows: Sequence[Mapping[Any, Any]]) -> dict[str, Floats]:
    """Return the absolute gaps of each outcome."""
    values = np.abs(column(list(rows), "yes_logit") - column(list(rows), "no_logit"))
    outcomes = np.array([row["outcome"] for row in rows], dtype=object)
    return {name: values[outcomes == name] for name in OUTCOMES}


def _draw_means(axes: Axes, groups: Mapping[str, Floats]) -> None:
    """Draw mean and one SD of each outcome, with its n."""
    for place, values in enumerate(groups.values()):
        if not values.size:
            continue
        look = style.mark(place)
        sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        axes.errorbar(
            [place],
            [values.mean()],
            yerr=[sd],
            color=look.colour,
            marker=look.marker,
            markersize=5,
            capsize=3,
        )
    names = [f"{name.upper()}\nn = {style.thousands(len(values))}" for name, values in groups.items()]
    axes.set_xticks(range(len(groups)), names, fontsize=7)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.tick_params(axis="x", length=0)
    style.grid(axes)


def _draw_densities(axes: Axes, groups: Mapping[str, Floats]) -> None:
    """Draw the density of each outcome that has at least two different gaps."""
    largest = max((float(values.max()) for values in groups.values() if values.size), default=1.0)
    grid = np.linspace(0, largest * 1.05 or 1.0, 300)
    for place, values in enumerate(groups.values()):
        if len(values) > 1 and np.ptp(values) > 0:
            look = style.mark(place)
            axes.plot(grid, gaussian_kde(values)(grid), color=look.colour, linestyle=look.dash)
    axes.set_xlabel(GAP)
    style.grid(axes)
