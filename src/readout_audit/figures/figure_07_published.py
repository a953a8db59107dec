"""Figure 7 as published: the printed rows of Table 8, and which of them no confusion matrix gives."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from readout_audit.claims.groups import fitting, grouped
from readout_audit.claims.numbers import read_numbers, select
from readout_audit.corrections.published import METRICS, metric_name
from readout_audit.figures import style
from readout_audit.figures.figure_07_corrections import Point, frame_plane, number_points, ordered
from readout_audit.tables.inputs import RunTables

TABLE = "Table 8"
BASELINE = "no correction"
POSSIBLE, IMPOSSIBLE = "an integer matrix prints as the row", "no integer matrix does"
LOOKS = {POSSIBLE: 0, IMPOSSIBLE: 1}
"""Whether a row can be true -> its mark."""

CAPTION = (
    "As the paper prints them: adversarial, 1,500 questions of each label; nothing was run here. Numbers in (b) are those of "
    "(a); grey curves: equal F1."
)


def draw(inputs: RunTables) -> Figure:
    """Draw printed F1 in order (a), and printed precision against recall (b)."""
    figure = style.new_figure(style.WIDTH, 3.4)
    if inputs.sources.claims is None:
        why = "This run is not held against the paper (claims: false), so its Table 8 is not at hand."
        return style.say_nothing_to_show(figure, why)
    rows = published_points(inputs)
    baseline = next(row for row in rows if row.label == BASELINE)
    order = ordered([row for row in rows if row is not baseline])
    scores, plane = figure.subplots(1, 2, width_ratios=(1.0, 1.1))
    _draw_scores(scores, order, baseline)
    _draw_plane(plane, order, baseline)
    _legend(figure)
    figure.supxlabel(CAPTION, fontsize=7, color=style.GREY)
    return figure


def published_points(inputs: RunTables) -> list[Point]:
    """Return the printed rows of Table 8, the one without a correction among them."""
    assert inputs.sources.claims is not None
    numbers = select(read_numbers(inputs.sources.claims), section=TABLE)
    found = []
    for members in grouped(numbers).values():
        by_metric = {metric_name(one) or one.quantity: float(one.printed) for one in members}
        verdict = fitting(members)
        # "F1, CLIP-B/32 certainty, β 1.0, eight-token rule, adversarial" names the row between metric and rule.
        label = ", ".join(members[0].claim.split(", ")[1:-2])
        found.append(
            Point(
                key=(label, ""),
                label=label,
                family=POSSIBLE if verdict is not None and verdict.fits else IMPOSSIBLE,
                **{metric: by_metric[metric] for metric in METRICS},
                baseline=None,
                low=None,
                high=None,
            )
        )
    return found


def _draw_scores(axes: Axes, order: Sequence[Point], baseline: Point) -> None:
    """Draw F1 of every row, the largest on top, with the row without a correction as a line."""
    labels = [f"{point.label}  {place}" for place, point in enumerate(order, start=1)]
    axes.set_yticks(range(len(order)), labels, fontsize=7)
    axes.set_ylim(len(order) - 0.4, -0.6)
    for height, point in enumerate(order):
        _mark(axes, point.f1 or 0.0, height, point)
        axes.annotate(
            f"{point.f1:.4f}",
            (point.f1 or 0.0, height),
            (6, 0),
            textcoords="offset points",
            va="center",
            fontsize=6.5,
        )
    axes.axvline(baseline.f1 or 0.0, color=style.INK, linewidth=0.9, linestyle=(0, (4, 2)))
    low = min(point.f1 or 0.0 for point in order)
    room = (baseline.f1 or 0.0) - low
    axes.set_xlim(low - 0.1 * room, (baseline.f1 or 0.0) + 0.15 * room)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.set_title("(a)", loc="left")
    axes.set_xlabel("F1")
    axes.tick_params(axis="y", length=0)
    style.grid(axes, "x")


def _draw_plane(axes: Axes, order: Sequence[Point], baseline: Point) -> None:
    """Draw precision against recall with curves of equal F1."""
    start = (baseline.recall or 0.0, baseline.precision or 0.0)
    shown = [(place, p.recall or 0.0, p.precision or 0.0) for place, p in enumerate(order, start=1)]
    axes.plot(*start, marker="*", color=style.INK, markersize=10, linestyle="none", zorder=4)
    for point, (_, recall, precision) in zip(order, shown, strict=True):
        _mark(axes, recall, precision, point)
    frame_plane(axes, [start[0], *(x for _, x, _ in shown)], [start[1], *(y for _, _, y in shown)])
    number_points(axes, shown, start)
    axes.set_title("(b)", loc="left")
    axes.set_xlabel("recall")
    axes.set_ylabel("precision")


def _mark(axes: Axes, x: float, y: float, point: Point) -> None:
    """Draw one row: hollow where no matrix gives it."""
    look = style.mark(LOOKS[point.family])
    face = look.colour if point.family == POSSIBLE else "white"
    axes.plot(
        [x],
        [y],
        marker=look.marker,
        color=look.colour,
        markerfacecolor=face,
        markersize=4.5,
        linestyle="none",
    )


def _legend(figure: Figure) -> None:
    """Explain the marks once."""
    handles = []
    for words, index in LOOKS.items():
        look = style.mark(index)
        face = look.colour if words == POSSIBLE else "white"
        handles.append(
            Line2D(
                [],
                [],
                marker=look.marker,
                color=look.colour,
                markerfacecolor=face,
                linestyle="none",
                label=words,
            )
        )
    handles.append(Line2D([], [], color=style.INK, linestyle=(0, (4, 2)), label="no correction (a)"))
    handles.append(
        Line2D([], [], marker="*", color=style.INK, markersize=9, linestyle="none", label="no correction (b)")
    )
    figure.legend(handles=handles, loc="outside upper center", ncols=2)
