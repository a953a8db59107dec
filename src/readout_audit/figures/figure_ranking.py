"""Does the readout change which model scores higher? Ranks of the models under every readout."""

import math
import textwrap
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from readout_audit.audit.schema import MODEL
from readout_audit.exact import printed
from readout_audit.figures import style
from readout_audit.figures.measured import CAPTION_WIDTH
from readout_audit.matrix.ranking import Ends, Order, orders, ranks
from readout_audit.tables.inputs import CellKey, RunTables
from readout_audit.tables.readout_scores import Scored, scored
from readout_audit.tables.table_settings_audit import settings_audit

Setting = tuple[str, str, str, str]
"""(dataset, precision, template, source): what models share when they are ranked."""

ALONE = "No two models of this run were asked in the same way: there is nothing to rank."


class Panel(NamedTuple):
    """The models of one setting on one split: model -> readout -> its score."""

    setting: Setting
    split: str
    models: Mapping[str, Mapping[str, Scored]]

    @property
    def readouts(self) -> list[str]:
        """The readouts that at least two models have, in the score file's order."""
        names = dict.fromkeys(name for by_readout in self.models.values() for name in by_readout)
        return [name for name in names if sum(name in one for one in self.models.values()) > 1]


def draw(inputs: RunTables) -> Figure:
    """Draw one panel per split for the first setting in which two models were asked."""
    panels = ranked_panels(inputs)
    if not panels:
        return style.say_nothing_to_show(style.new_figure(style.WIDTH, 1.0), ALONE)
    models = list(panels[0].models)
    intervals = model_intervals(inputs, panels[0].setting)
    height = sum(0.5 + 0.36 * len(panel.models) for panel in panels)
    figure = style.new_figure(style.WIDTH, 1.9 + height)
    rows = figure.subplots(len(panels), 1, squeeze=False)
    for (axes,), panel in zip(rows, panels, strict=True):
        found = orders(f1_of(panel), intervals[panel.split])
        resampled = any(low is not None for low, _ in intervals[panel.split].values())
        draw_panel(axes, panel)
        sizes = {one.confusion.n for by_readout in panel.models.values() for one in by_readout.values()}
        n = " to ".join(style.thousands(size) for size in sorted({min(sizes), max(sizes)}))
        axes.set_title(f"{panel.split} (n = {n}): {verdict(found, resampled)}", loc="left")
        if panel is not panels[-1] and panel.readouts == panels[-1].readouts:
            axes.tick_params(axis="x", labelbottom=False)
    _legend(figure, models, panels[0].setting)
    return figure


def ranked_panels(inputs: RunTables) -> list[Panel]:
    """Return the panels of the first setting with two models or more, one per split, primary labels."""
    by_setting: dict[Setting, dict[str, dict[str, Mapping[str, Scored]]]] = {}
    for (cell, labels, split), by_readout in scored(inputs).items():
        if labels == inputs.options.labels[0]:
            splits = by_setting.setdefault(_setting(cell), {})
            splits.setdefault(split, {})[cell.model] = by_readout
    for setting, splits in by_setting.items():
        if any(len(models) > 1 for models in splits.values()):
            return [
                Panel(setting, split, splits[split])
                for split in inputs.options.splits
                if len(splits.get(split, {})) > 1
            ]
    return []


def _setting(cell: CellKey) -> Setting:
    """Return what a cell shares with other models'."""
    return cell.dataset, cell.precision, cell.template, cell.source


def model_intervals(inputs: RunTables, setting: Setting) -> dict[str, dict[tuple[str, str, str], Ends]]:
    """Return split -> (first model, second model, readout) -> interval of F1(first) − F1(second)."""
    found: dict[str, dict[tuple[str, str, str], Ends]] = {split: {} for split in inputs.options.splits}
    for row in settings_audit(inputs).rows:
        here = (row["dataset"], row["precision"], row["template"], row["source"])
        if row["varied"] != MODEL or here != setting or row["labels"] != inputs.options.labels[0]:
            continue
        low, high = row["delta_low"], row["delta_high"]
        one, other, readout = row["model"], row["reference_model"], row["readout"]
        found.setdefault(row["split"], {})[one, other, readout] = (low, high)
        turned = (None if high is None else -high, None if low is None else -low)
        found[row["split"]][other, one, readout] = turned
    return found


def f1_of(panel: Panel) -> dict[str, dict[str, Fraction | None]]:
    """Return model -> readout -> exact F1."""
    return {
        model: {name: one.confusion.f1 for name, one in by_readout.items()}
        for model, by_readout in panel.models.items()
    }


def verdict(found: Sequence[Order], resampled: bool) -> str:
    """Say whether the order of the models depends on the readout, and, with intervals, how surely."""
    changing = [order for order in found if order.changes]
    if not changing:
        return "every readout puts the models in the same order"
    sure = f", {sum(order.changes_surely for order in changing)} beyond sampling" if resampled else ""
    pairs = "the one pair" if len(found) == 1 else f"{len(changing)} of {len(found)} pairs"
    return f"{pairs} of models change{'s' if len(found) == 1 else ''} order with the readout{sure}"


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw the rank of every model under every readout, its F1 inside the mark."""
    f1s, readouts = f1_of(panel), panel.readouts
    by_readout = [places([f1s[model].get(name) for model in panel.models]) for name in readouts]
    small = len(readouts) > 9
    for index, model in enumerate(panel.models):
        look = style.mark(index)
        at = [
            (float(x), float(column[index]), f1s[model][name])
            for x, (name, column) in enumerate(zip(readouts, by_readout, strict=True))
            if name in f1s[model]
        ]
        ranked = [(x, y if f1 is not None else math.nan) for x, y, f1 in at]
        axes.plot(
            [x for x, _ in ranked], [y for _, y in ranked], color=look.colour, linestyle=look.dash, zorder=1
        )
        for x, y, f1 in at:
            _draw_value(axes, (x, y), f1, look, small)
    for x, name in enumerate(readouts):
        _join_equals(
            axes,
            x,
            [(f1s[model].get(name), place) for model, place in zip(panel.models, by_readout[x], strict=True)],
        )
    axes.set_xticks(range(len(readouts)), readouts, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, len(readouts) - 0.4)
    axes.set_yticks(range(1, len(panel.models) + 1))
    axes.set_ylim(len(panel.models) + 0.5, 0.5)
    axes.set_ylabel("rank")


def places(values: Sequence[Fraction | None]) -> list[int]:
    """Return the line of each value, 1 for the largest: equal ones follow each other, undefined ones come last."""
    found = ranks(values)
    order = sorted(range(len(values)), key=lambda index: (found[index] is None, found[index] or 0, index))
    return [order.index(index) + 1 for index in range(len(values))]


def _join_equals(axes: Axes, x: int, column: Sequence[tuple[Fraction | None, int]]) -> None:
    """Put a pale bar behind the marks of models with the same F1."""
    for value in {value for value, _ in column if value is not None}:
        alike = [place for other, place in column if other == value]
        if len(alike) > 1:
            axes.plot(
                [x, x],
                [min(alike), max(alike)],
                color=style.PALE,
                linewidth=9,
                solid_capstyle="round",
                zorder=0,
            )


def _draw_value(
    axes: Axes, at: tuple[float, float], f1: Fraction | None, look: style.Mark, small: bool
) -> None:
    """Draw one mark and the F1 under it."""
    filled = look.colour if f1 is not None else "white"
    axes.plot(*at, color=look.colour, markerfacecolor=filled, marker=look.marker, markersize=6, zorder=2)
    axes.annotate(
        printed(f1, 3),
        at,
        xytext=(0, -9),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=5 if small else 6.5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
        zorder=3,
    )


def _legend(figure: Figure, models: Sequence[str], setting: Setting) -> None:
    """Name the models, and say how they were asked and what beyond sampling means."""
    handles = [
        Line2D([], [], color=look.colour, linestyle=look.dash, marker=look.marker, label=model)
        for model, look in ((model, style.mark(index)) for index, model in enumerate(models))
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(models), 3), handlelength=3.5)
    dataset, precision, template, _ = setting
    parts = (
        f"Under each mark: F1. All models: {dataset}, {precision}, template {template}. Equal F1, on one pale bar, share "
        "a rank; hollow: F1 is undefined.",
        "Beyond sampling: the 95% interval of the paired difference (images resampled) puts one model ahead under one "
        "readout, and the other under another.",
    )
    text = "\n".join(textwrap.fill(part, CAPTION_WIDTH) for part in parts)
    figure.supxlabel(text, fontsize=7, color=style.GREY)
