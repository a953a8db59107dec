"""The attention effect for every window of layers, the one the numbers use marked."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from readout_audit.figures import style
from readout_audit.figures.measured import NOTHING, Floats, Panels, caption, panels, say_in_panel
from readout_audit.probe.answers import ATTENTION_IMAGE, ATTENTION_WINDOW
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.table_09_group_means import signal_title

SHOWN = (ATTENTION_WINDOW, ATTENTION_IMAGE)
COLOURS = LinearSegmentedColormap.from_list(
    "effect", [style.MARKS[1].colour, "#FFFFFF", style.MARKS[0].colour]
)
CAPTION = (
    "Cohen's d of right minus wrong answers for the mean over layers from first to last, counted from 0; framed: the "
    "window the other numbers use; a dot: the 95% interval over images holds 0{signs}."
)
PARTED = "; line: where the sign changes"
_WRITTEN = 8
"""Up to so many layers the effects are written into the map; beyond, a line parts the signs."""


def draw(inputs: RunTables) -> Figure:
    """Draw one row of heat maps per cell and set of positions, one column per split."""
    found = panels(inputs, "probe_windows")
    splits = inputs.options.splits
    figure = style.new_figure(style.WIDTH + 0.6, 0.6 + 4.3 * max(1, len(found)) if found else 1.0)
    if not found:
        return style.say_nothing_to_show(figure, NOTHING)
    largest = max((abs(row["d"]) for one in found for row in _all(one) if row["d"] == row["d"]), default=0.0)
    norm = TwoSlopeNorm(0.0, -max(largest, 1e-6), max(largest, 1e-6))
    rows = figure.subfigures(len(found), 1, squeeze=False)
    for (row,), one in zip(rows, found, strict=True):
        row.suptitle(one.title(found))
        grid = row.subplots(len(SHOWN), len(splits), squeeze=False)
        for line, signal in zip(grid, SHOWN, strict=True):
            for axes, split in zip(line, splits, strict=True):
                some = [window for window in one.by_split.get(split, []) if window["signal"] == signal]
                _draw_map(axes, some, norm)
                axes.set_title(f"{split}{_size(some)}" if signal == SHOWN[0] else "")
            title = signal_title(signal, inputs.window(one.cell)).removeprefix("attention, ")
            line[0].set_ylabel(f"{title}\nlast layer")
        images = [axes.images[0] for axes in grid.flat if axes.images]
        if images:
            row.colorbar(images[0], ax=grid, label="d, right minus wrong", shrink=0.6)
    # A colour bar has collections too; only a map has an image.
    parted = any(axes.collections for row in rows.flat for axes in row.axes if axes.images)
    caption(rows[-1][0], CAPTION.format(signs=PARTED if parted else ""))
    return figure


def _all(one: Panels) -> list[Mapping[Any, Any]]:
    """Return every window of a cell."""
    return [row for rows in one.by_split.values() for row in rows]


def _size(windows: Sequence[Mapping[Any, Any]]) -> str:
    """Return how many answers are right and how many wrong, as a second line of the title."""
    if not windows:
        return ""
    right, wrong = (style.thousands(windows[0][name]) for name in ("n_correct", "n_wrong"))
    return f"\n{right} right, {wrong} wrong"


def _part_signs(axes: Axes, effect: Floats) -> None:
    """Make the sign readable without colour: as numbers, or by a line between the signs."""
    if len(effect) > _WRITTEN:
        known = np.ma.masked_invalid(effect)
        if known.count() and known.min() < 0 < known.max():
            axes.contour(known, levels=[0.0], colors=style.INK, linewidths=0.7)
        return
    for (last, first), d in np.ndenumerate(effect):
        if not np.isnan(d):
            axes.text(
                first, last - 0.3, _printed(d), ha="center", va="center", fontsize=6.5, color=_ink(d, axes)
            )


def _printed(d: float) -> str:
    """Return an effect with two decimals and a minus sign; what rounds to zero has none."""
    return f"{d:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _ink(d: float, axes: Axes) -> str:
    """Return the text colour that can be read on an effect's colour."""
    red, green, blue, _ = axes.images[0].to_rgba(np.array(d))
    return style.ink_on((float(red), float(green), float(blue)))


def _draw_map(axes: Axes, windows: Sequence[Mapping[Any, Any]], norm: TwoSlopeNorm) -> None:
    """Draw one heat map: first layer across, last layer up, counted from 0."""
    if not windows:
        say_in_panel(axes, "not available")
        return
    layers = max(int(row["end"]) for row in windows)
    effect = np.full((layers, layers), np.nan)
    for row in windows:
        effect[int(row["end"]) - 1, int(row["start"])] = row["d"]
    # Hatched, not grey: no window ends before it begins, and grey would read as an effect.
    axes.patch.set(facecolor="white", edgecolor=style.PALE, hatch="////")
    axes.imshow(effect, origin="lower", cmap=COLOURS, norm=norm, interpolation="nearest")
    unsure = [row for row in windows if row["d_low"] <= 0 <= row["d_high"]]
    size = max(0.4, 30 / layers)
    axes.plot(
        [row["start"] for row in unsure],
        [row["end"] - 1 for row in unsure],
        marker=".",
        color=style.GREY,
        markersize=size,
        markeredgewidth=0,
        linestyle="none",
    )
    _part_signs(axes, effect)
    for row in windows:
        if row["chosen"]:
            corner = (row["start"] - 0.5, row["end"] - 1.5)
            axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=style.INK, linewidth=1.6))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("first layer")
