"""Figure 7: corrections against their baseline, as F1 and in the precision-recall plane (paper, Section 5)."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from readout_audit.corrections.registry import correction
from readout_audit.corrections.schema import FIXED, OK
from readout_audit.figures import style
from readout_audit.figures.measured import NOTHING, Panels, caption, panels
from readout_audit.tables.common import hardest_split
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.table_08_corrections import baseline_matrix, matrix_of, strength_text

_PANEL = (120.0, 150.0)
"""About the width and height of a panel of (b) in points, to tell which numbers would overlap."""

_NUMBER = (10.0, 8.0)
"""About the room a number takes, in points."""

LOOKS = {"F.1": 0, "code": 1}
FAMILIES = {"F.1": "as in Appendix F.1", "code": "as in the authors' code"}
CAPTION = (
    "Bars: 95% interval of the difference from the baseline, images resampled. Numbers in (b) are those of (a); "
    "grey curves: equal F1."
)


class Point(NamedTuple):
    """One correction at one strength.

    Attributes:
        key: method and strength.
        label: its name in the figure.
        family: F.1 or code.
        f1, precision, recall: None where 0/0.
        baseline: F1 without correction, on the same questions.
        low, high: ends of the interval of F1 minus baseline, None where there is none.
    """

    key: tuple[str, str]
    label: str
    family: str
    f1: float | None
    precision: float | None
    recall: float | None
    baseline: float | None
    low: float | None
    high: float | None


def draw(inputs: RunTables) -> Figure:
    """Draw two rows of panels per cell, one column per split: F1 in order (a), precision and recall (b)."""
    found = panels(inputs, "corrections")
    splits = inputs.options.splits
    height = 5.9 if found else 1.0
    figure = style.new_figure(style.WIDTH, 0.4 + height * max(1, len(found)))
    if not found:
        return style.say_nothing_to_show(figure, NOTHING)
    rows = figure.subfigures(len(found), 1, squeeze=False)
    for (row,), one in zip(rows, found, strict=True):
        row.suptitle(one.title(found))
        _draw_cell(row, one, splits, hardest_split(inputs.options))
    caption(rows[-1][0], f"In the order of F1 on {hardest_split(inputs.options)}. {CAPTION}")
    _legend(figure)
    return figure


def _draw_cell(row: SubFigure, one: Panels, splits: Sequence[str], hardest: str) -> None:
    """Draw one cell's panels; all splits share the order of the hardest."""
    axes = row.subplots(2, len(splits), squeeze=False, height_ratios=(1.35, 1.0))
    points = {split: points_of(rows) for split, rows in one.by_split.items()}
    order = ordered(points.get(hardest) or next(iter(points.values()), []))
    for place, split in enumerate(splits):
        of_split = {point.key: point for point in points.get(split, [])}
        _draw_scores(axes[0][place], of_split, order, first=place == 0)
        axes[0][place].set_title(f"{split}{_size(one.by_split.get(split, []))}")
        _draw_plane(axes[1][place], of_split, order, one.by_split.get(split, []))
    axes[0][0].set_ylabel("(a)", rotation=0, ha="right", va="bottom", y=1.0)
    axes[1][0].set_ylabel("(b) precision")


def points_of(rows: Sequence[Mapping[Any, Any]]) -> list[Point]:
    """Return the corrections of a split at their given strengths."""
    found = []
    for row in rows:
        if row["choice"] != FIXED or row["status"] != OK:
            continue
        about, strength = correction(row["method"]), strength_text(row["strength"])
        several = len(about.strengths) > 1
        matrix, before = matrix_of(row), baseline_matrix(row)
        found.append(
            Point(
                key=(about.name, strength),
                label=f"{about.title}, β {strength}" if several else about.title,
                family=about.family,
                f1=_float(matrix.f1),
                precision=_float(matrix.precision),
                recall=_float(matrix.recall),
                baseline=_float(before.f1),
                low=_float(row["delta_f1_low"]),
                high=_float(row["delta_f1_high"]),
            )
        )
    return found


def _float(value: Any) -> float | None:
    """Return a number as a float, None where it is undefined or null."""
    return None if value is None or value != value else float(value)


def ordered(points: Sequence[Point]) -> list[Point]:
    """Return the corrections from the largest F1 to the smallest."""
    return sorted(points, key=lambda point: -1.0 if point.f1 is None else point.f1, reverse=True)


def _size(rows: Sequence[Mapping[Any, Any]]) -> str:
    """Return " (n = 3,000)", the most questions of a correction."""
    sizes = [int(row["n"]) for row in rows if row["status"] == OK]
    return f" (n = {style.thousands(max(sizes))})" if sizes else ""


def _draw_scores(axes: Axes, points: Mapping[Any, Point], order: Sequence[Point], *, first: bool) -> None:
    """Draw F1 of every correction, the largest on top, with the baseline as a line."""
    labels = [f"{point.label}  {place}" for place, point in enumerate(order, start=1)]
    axes.set_yticks(
        range(len(order)), labels if first else [str(i + 1) for i in range(len(order))], fontsize=7
    )
    axes.set_ylim(len(order) - 0.4, -0.6)
    for height, named in enumerate(order):
        point = points.get(named.key)
        if point is None or point.f1 is None:
            continue
        look = style.mark(LOOKS[point.family])
        if point.low is not None and point.high is not None and point.baseline is not None:
            axes.plot(
                [point.baseline + point.low, point.baseline + point.high],
                [height, height],
                color=look.colour,
                linewidth=1.1,
            )
        axes.plot([point.f1], [height], marker=look.marker, color=look.colour, markersize=4, linestyle="none")
    baselines = [point.baseline for point in points.values() if point.baseline is not None]
    if baselines:
        axes.axvline(float(np.median(baselines)), color=style.INK, linewidth=0.9, linestyle=(0, (4, 2)))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.set_xlabel("F1")
    axes.tick_params(axis="y", length=0)
    style.grid(axes, "x")


def _draw_plane(
    axes: Axes, points: Mapping[Any, Point], order: Sequence[Point], rows: Sequence[Mapping[Any, Any]]
) -> None:
    """Draw precision against recall with curves of equal F1."""
    shown = [(place, points[one.key]) for place, one in enumerate(order, start=1) if one.key in points]
    shown = [(place, p) for place, p in shown if p.precision is not None and p.recall is not None]
    before = [baseline_matrix(row) for row in rows if row["status"] == OK]
    start = max(before, key=lambda matrix: matrix.n) if before else None
    xs = [p.recall for _, p in shown if p.recall is not None]
    ys = [p.precision for _, p in shown if p.precision is not None]
    if start is not None and start.precision is not None and start.recall is not None:
        xs.append(float(start.recall))
        ys.append(float(start.precision))
        axes.plot([xs[-1]], [ys[-1]], marker="*", color=style.INK, markersize=10, linestyle="none", zorder=4)
    for _, point in shown:
        look = style.mark(LOOKS[point.family])
        axes.plot(
            point.recall or 0.0, point.precision or 0.0, marker=look.marker, color=look.colour, markersize=4
        )
    if xs:
        frame_plane(axes, xs, ys)
        number_points(
            axes, [(place, p.recall or 0.0, p.precision or 0.0) for place, p in shown], (xs[-1], ys[-1])
        )
    axes.set_xlabel("recall")


def number_points(axes: Axes, shown: Sequence[tuple[int, float, float]], start: tuple[float, float]) -> None:
    """Write each point's number beside it where there is room, a line leading to one that had to move away."""
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()

    def in_points(x: float, y: float) -> tuple[float, float]:
        return (x - left) / (right - left) * _PANEL[0], (y - bottom) / (top - bottom) * _PANEL[1]

    marks = [in_points(x, y) for _, x, y in shown] + [in_points(*start)]
    boxes: list[tuple[float, float]] = []
    for place, x, y in sorted(shown, key=lambda one: one[1]):
        at = in_points(x, y)
        dx, dy = free_place(at, [*marks, *boxes])
        boxes.append((at[0] + dx, at[1] + dy))
        axes.annotate(
            str(place),
            (x, y),
            xytext=(dx, dy),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=5.5,
            color=style.INK,
            arrowprops={"arrowstyle": "-", "color": style.GREY, "linewidth": 0.4, "shrinkA": 0, "shrinkB": 0},
        )


def free_place(at: tuple[float, float], taken: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the nearest offset from a point at which a number overlaps nothing that is taken.

    Args:
        at: the point, in points of the panel.
        taken: centres of marks and of numbers already placed.
    """
    for distance in range(8, 60, 4):
        for angle in range(90, 450, 30):
            dx, dy = distance * np.cos(np.radians(angle)), distance * np.sin(np.radians(angle))
            x, y = at[0] + dx, at[1] + dy
            inside = 0 < x < _PANEL[0] and 0 < y < _PANEL[1]
            if inside and all(
                abs(x - other[0]) >= _NUMBER[0] or abs(y - other[1]) >= _NUMBER[1] for other in taken
            ):
                return float(dx), float(dy)
    return 8.0, 0.0


def frame_plane(axes: Axes, xs: Sequence[float], ys: Sequence[float]) -> None:
    """Set the limits around the points and draw the curves of equal F1 that cross them."""
    margins = [0.12 * max(max(values) - min(values), 0.02) for values in (xs, ys)]
    # A rate ends at 1; a little more lets the mark of a rate of 1 stand whole.
    left, right = min(xs) - margins[0], min(max(xs) + margins[0], 1.01)
    bottom, top = min(ys) - margins[1], min(max(ys) + margins[1], 1.01)
    recall = np.linspace(max(left, 1e-3), min(right, 1.0), 200)
    step = 0.05 if max(right - left, top - bottom) < 0.4 else 0.1
    for f1 in np.arange(step, 1.0, step):
        # F1 = 2PR / (P + R), so P = F1 · R / (2R − F1) where that is positive.
        precision = np.where(
            2 * recall > f1, f1 * recall / np.where(2 * recall > f1, 2 * recall - f1, 1), np.nan
        )
        inside = (precision > bottom) & (precision < min(top, 1.0))
        if not inside.any():
            continue
        axes.plot(recall, precision, color=style.PALE, linewidth=0.8, zorder=0)
        last = int(np.flatnonzero(inside)[-1])
        axes.text(recall[last], precision[last], f"{f1:.2f}", fontsize=5.5, color=style.GREY, ha="right")
    axes.set_xlim(left, right)
    axes.set_ylim(bottom, top)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def _legend(figure: Figure) -> None:
    """Explain the marks once."""
    handles = [
        Line2D(
            [],
            [],
            marker=style.mark(i).marker,
            color=style.mark(i).colour,
            linestyle="none",
            label=FAMILIES[name],
        )
        for name, i in LOOKS.items()
    ]
    handles.append(Line2D([], [], color=style.INK, linestyle=(0, (4, 2)), label="no correction (a)"))
    handles.append(
        Line2D([], [], marker="*", color=style.INK, markersize=9, linestyle="none", label="no correction (b)")
    )
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
