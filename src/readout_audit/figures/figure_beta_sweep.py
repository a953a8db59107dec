"""The sweep: F1 of every correction from strength 0 to 3, against the baseline at 0."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from readout_audit.corrections.registry import correction
from readout_audit.figures import style
from readout_audit.figures.measured import NOTHING, caption, panels
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.table_08_corrections import matrix_of

FAMILIES = ("F.1", "code")
CAPTION = "Every line starts at the F1 without correction. Large marks: the best strength in hindsight."
_MARKERS = "os^DvP*X<"


def draw(inputs: RunTables) -> Figure:
    """Draw two rows of panels per cell, Appendix F.1 above the authors' code, one column per split."""
    found = panels(inputs, "sweeps")
    splits = inputs.options.splits
    figure = style.new_figure(style.WIDTH + 1.6, 0.5 + 4.6 * max(1, len(found)) if found else 1.0)
    if not found:
        return style.say_nothing_to_show(figure, NOTHING)
    rows = figure.subfigures(len(found), 1, squeeze=False)
    for (row,), one in zip(rows, found, strict=True):
        row.suptitle(one.title(found))
        grid = row.subplots(2, len(splits), squeeze=False, sharex=True, sharey=True)
        for line, family in zip(grid, FAMILIES, strict=True):
            methods = _methods(one.by_split.values(), family)
            for axes, split in zip(line, splits, strict=True):
                _draw_panel(axes, one.by_split.get(split, []), methods)
            line[0].set_ylabel(f"{'Appendix F.1' if family == 'F.1' else 'the code'}\nF1")
            handles = [
                Line2D([], [], label=correction(name).title, **_look(i)) for i, name in enumerate(methods)
            ]
            if handles:
                line[-1].legend(
                    handles=handles, loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=7, handlelength=3
                )
        for axes, split in zip(grid[0], splits, strict=True):
            axes.set_title(f"{split}{_size(one.by_split.get(split, []))}")
        for axes in grid[-1]:
            axes.set_xlabel("strength (β, or α of a contrast)")
    caption(rows[-1][0], CAPTION)
    return figure


def _size(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Return " (n = 3,000)", the most questions of a correction."""
    sizes = [matrix_of(row).n for row in rows]
    return f" (n = {style.thousands(max(sizes))})" if sizes else ""


def _methods(splits: Any, family: str) -> list[str]:
    """Return the methods of a family in the order of the files."""
    names = dict.fromkeys(row["method"] for rows in splits for row in rows)
    return [name for name in names if correction(name).family == family]


def _look(index: int) -> dict[str, Any]:
    """Return how the index-th line is drawn: after five, a colour comes again with another marker."""
    look = style.mark(index)
    return {
        "color": look.colour,
        "linestyle": look.dash,
        "marker": _MARKERS[index % len(_MARKERS)],
        "markersize": 4,
        "markerfacecolor": "white" if index >= len(style.MARKS) else look.colour,
        "linewidth": 1.1,
    }


def _draw_panel(axes: Axes, rows: Sequence[Mapping[Any, Any]], methods: Sequence[str]) -> None:
    """Draw one line per method, with a mark at its largest F1."""
    for index, name in enumerate(methods):
        points = [(float(row["strength"]), matrix_of(row).f1) for row in rows if row["method"] == name]
        known = [(x, float(f1)) for x, f1 in points if f1 is not None]
        if not known:
            continue
        strengths, scores = zip(*known, strict=True)
        best = scores.index(max(scores))
        step = max(1, len(scores) // 4)
        axes.plot(strengths, scores, markevery=(index * step // 8, step), **_look(index))
        axes.plot(strengths[best], scores[best], **_look(index) | {"markersize": 7.5})
    style.grid(axes)
