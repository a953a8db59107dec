"""What moves F1: readout, precision, template, release or model, over a balanced grid."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from readout_audit.figures import style
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.table_variance import variance

HIGHER = "three or more together"
NOTHING = "The grid of this run has one cell: nothing varies."

Row = dict[str, Any]


def draw(inputs: RunTables) -> Figure:
    """Draw one row of panels per scope: shares of the variance, and the range of F1 along each factor."""
    rows, metadata = variance(inputs)
    primary = [row for row in rows if row["labels"] == inputs.options.labels[0]]
    scopes = shown_scopes(primary)
    if not scopes:
        return style.say_nothing_to_show(style.new_figure(style.WIDTH, 1.0), NOTHING)
    splits = [split for split in inputs.options.splits if any(row["split"] == split for row in primary)]
    names = {scope: factor_names([row for row in primary if row["scope"] == scope]) for scope in scopes}
    heights = [1.1 + 0.3 * len(found) for found in names.values()]
    figure = style.new_figure(style.WIDTH, 0.9 + sum(heights))
    grid = figure.subplots(len(scopes), 2, squeeze=False, height_ratios=heights, width_ratios=(1.25, 1))
    for (left, right), scope in zip(grid, scopes, strict=True):
        chosen = [row for row in primary if row["scope"] == scope]
        for index, split in enumerate(splits):
            on_split = [row for row in chosen if row["split"] == split]
            offset = (index - (len(splits) - 1) / 2) * 0.24
            _draw_shares(left, on_split, names[scope], style.mark(index), offset)
            _draw_reaches(right, on_split, names[scope], style.mark(index), offset)
        _finish(left, right, names[scope])
        if scope != scopes[-1]:
            left.set_xlabel("")
            right.set_xlabel("")
        left.set_title(style.describe([scope, f"{chosen[0]['cells']} values of F1"], 46), loc="left")
        right.set_title(_levels(metadata, scope), loc="left", fontsize=7)
    _share_scale([right for _, right in grid])
    _legend(figure, primary, splits)
    return figure


def shown_scopes(rows: Sequence[Row]) -> list[str]:
    """Return the scopes in which several factors vary: one alone has all of the variance. All where none does."""
    scopes = list(dict.fromkeys(row["scope"] for row in rows))
    crossed = {row["scope"] for row in rows if row["order"] > 1}
    return [scope for scope in scopes if scope in crossed] or scopes


def factor_names(rows: Sequence[Row]) -> list[str]:
    """Return the factors, then pairs of factors, then one line for all higher interactions."""
    names = list(dict.fromkeys(row["factor"] for row in rows if row["order"] <= 2))
    return [*names, HIGHER] if any(row["order"] > 2 for row in rows) else names


def share_of(rows: Sequence[Row], name: str) -> float | None:
    """Return the share of a line of the figure; None where nothing varies."""
    shares = [row["share"] for row in rows if (row["order"] > 2 if name == HIGHER else row["factor"] == name)]
    return None if not shares or None in shares else sum(shares)


def _draw_shares(
    axes: Axes, rows: Sequence[Row], names: Sequence[str], look: style.Mark, offset: float
) -> None:
    """Draw the shares of one split with their intervals."""
    by_name = {row["factor"]: row for row in rows}
    for place, name in enumerate(names):
        share = share_of(rows, name)
        if share is None:
            continue
        row = by_name.get(name)
        if row is not None and row["share_low"] is not None:
            axes.plot(
                [row["share_low"], row["share_high"]], [place + offset] * 2, color=look.colour, linewidth=1
            )
        axes.plot(share, place + offset, color=look.colour, marker=look.marker, markersize=4.5)


def _draw_reaches(
    axes: Axes, rows: Sequence[Row], names: Sequence[str], look: style.Mark, offset: float
) -> None:
    """Draw, per factor, the mean range of F1 as a mark and a line on to the largest."""
    for row in rows:
        if row["order"] != 1:
            continue
        place = names.index(row["factor"]) + offset
        mean, largest = 100 * row["mean_reach"], 100 * row["largest_reach"]
        axes.plot([mean, largest], [place, place], color=look.colour, linewidth=1)
        axes.plot(largest, place, color=look.colour, marker="|", markersize=6)
        axes.plot(mean, place, color=look.colour, marker=look.marker, markersize=4.5)


def _finish(left: Axes, right: Axes, names: Sequence[str]) -> None:
    """Name the lines and the units."""
    left.set_yticks(range(len(names)), names)
    right.set_yticks(range(len(names)), [])
    for axes in (left, right):
        axes.set_ylim(len(names) - 0.5, -0.5)
        style.grid(axes, "x")
    left.set_xlim(-0.02, 1.02)
    left.set_xlabel("share of the variance of F1 (η²)")
    right.set_xlabel("range of F1 along the factor (points)")


def _share_scale(panels: Sequence[Axes]) -> None:
    """Give every scope the same axis of points, from zero."""
    top = max(axes.get_xlim()[1] for axes in panels)
    for axes in panels:
        axes.set_xlim(0, top)


def _levels(metadata: dict[str, Any], scope: str) -> str:
    """Say how many levels each factor has."""
    levels = metadata.get("levels", {}).get(scope, {})
    return style.describe([f"{len(names)} {factor}s" for factor, names in levels.items()], 46)


def _legend(figure: Figure, rows: Sequence[Row], splits: Sequence[str]) -> None:
    """Explain the marks, and what the two panels say."""
    handles = []
    for index, split in enumerate(splits):
        look, n = style.mark(index), max(row["n"] for row in rows if row["split"] == split)
        label = f"{split} (n = {style.thousands(n)})"
        handles.append(
            Line2D([], [], color=look.colour, marker=look.marker, markersize=4.5, linewidth=1, label=label)
        )
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    figure.supxlabel(
        "Left: how much of the variance of F1 goes with each factor (balanced ANOVA, one F1 per cell); whiskers: 95% "
        "intervals, images resampled.\nRight: change one factor, hold the others: largest minus smallest F1. Mark: its "
        "mean; end of the line: its largest. All of it for these levels alone.",
        fontsize=7,
        color=style.GREY,
    )
