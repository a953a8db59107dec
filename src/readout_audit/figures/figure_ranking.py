"""Does the readout change which model scores higher? Ranks of the models under every readout.

A readout that looks for its ids in vain, because the model writes other tokens for yes and no, orders models by
nothing that they said. Its ranks are drawn, with open marks, and the changes of order that it makes are told apart.
"""

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

ABREAST = 0.1
"""Inches from one mark to the next of models with the same F1."""

AXIS = 6.1
"""Inches that all readouts have side by side."""

ALONE = "No two models of this run were asked in the same way: there is nothing to rank."


class Panel(NamedTuple):
    """The models of one setting on one split.

    Attributes:
        models: model -> readout -> its score.
        missing: (model, readout) where the readout does not look at every yes and no that the model writes.
    """

    setting: Setting
    split: str
    models: Mapping[str, Mapping[str, Scored]]
    missing: frozenset[tuple[str, str]] = frozenset()

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
    height = sum(0.6 + 0.36 * len(levels(panel)) for panel in panels)
    figure = style.new_figure(style.WIDTH, 2.1 + height)
    rows = figure.subplots(len(panels), 1, squeeze=False)
    for (axes,), panel in zip(rows, panels, strict=True):
        ends = intervals[panel.split]
        found, sound = orders(f1_of(panel), ends), orders(f1_of(panel, sound=True), ends)
        resampled = any(low is not None for low, _ in ends.values())
        draw_panel(axes, panel)
        sizes = {one.confusion.n for by_readout in panel.models.values() for one in by_readout.values()}
        n = " to ".join(style.thousands(size) for size in sorted({min(sizes), max(sizes)}))
        axes.set_title(f"{panel.split} (n = {n}): {verdict(found, sound, resampled)}", loc="left")
        if panel is not panels[-1] and panel.readouts == panels[-1].readouts:
            axes.tick_params(axis="x", labelbottom=False)
    _legend(figure, models, panels[0].setting, any(panel.missing for panel in panels))
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
            missing = _missing(inputs, setting)
            return [
                Panel(setting, split, splits[split], missing)
                for split in inputs.options.splits
                if len(splits.get(split, {})) > 1
            ]
    return []


def _setting(cell: CellKey) -> Setting:
    """Return what a cell shares with other models'."""
    return cell.dataset, cell.precision, cell.template, cell.source


def _missing(inputs: RunTables, setting: Setting) -> frozenset[tuple[str, str]]:
    """Return (model, readout) where the readout does not look at every yes and no that the model writes."""
    return frozenset(
        (cell.model, name)
        for cell, decisions in inputs.decisions.items()
        if _setting(cell) == setting
        for name, described in decisions.readouts.items()
        if (described.get("coverage") or {}).get("excluded")
    )


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


def f1_of(panel: Panel, *, sound: bool = False) -> dict[str, dict[str, Fraction | None]]:
    """Return model -> readout -> exact F1; `sound` leaves out readouts that miss what that model writes."""
    return {
        model: {
            name: one.confusion.f1
            for name, one in by_readout.items()
            if not (sound and (model, name) in panel.missing)
        }
        for model, by_readout in panel.models.items()
    }


def verdict(found: Sequence[Order], sound: Sequence[Order], resampled: bool) -> str:
    """Say whether the order of the models depends on the readout, and, with intervals, how surely.

    Args:
        found: the order of every pair under all readouts.
        sound: the same under those that look at every yes and no that both models write.
        resampled: whether there are intervals.
    """
    changing = [order for order in sound if order.changes]
    more = sum(order.changes for order in found) - len(changing)
    if not changing and not more:
        return "every readout puts the models in the same order"
    others = "readouts that miss what a model writes"
    if not changing:
        return f"the order changes in {_pairs(more, found)} of models,\nand only by {others} (open marks)"
    sure = f", {sum(order.changes_surely for order in changing)} beyond sampling" if resampled else ""
    apart = f";\n{more} more only by {others} (open marks)" if more else ""
    verb = "changes" if len(found) == 1 else "change"
    return f"{_pairs(len(changing), found)} of models {verb} order with the readout{sure}{apart}"


def _pairs(n: int, found: Sequence[Order]) -> str:
    """Return "2 of 3 pairs"."""
    return "the one pair" if len(found) == 1 else f"{n} of {len(found)} pairs"


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw the rank of every model under every readout, and each F1 once under the marks that have it."""
    readouts = panel.readouts
    small = len(readouts) > 9
    at = {model: places(panel, model) for model in panel.models}
    for index, (model, where) in enumerate(at.items()):
        look = style.mark(index)
        # Later models' lines are broken ones: over an earlier one at the same ranks both can be seen.
        axes.plot(*_line(panel, model, where), color=look.colour, linestyle=look.dash, zorder=1 + index / 10)
        for x, (name, place) in enumerate(zip(readouts, where, strict=True)):
            if place is not None:
                axes.plot(
                    x + place.offset,
                    float(place.level),
                    color=look.colour,
                    markerfacecolor="white" if (model, name) in panel.missing else look.colour,
                    marker=look.marker,
                    markersize=4.5 if small else 6,
                    zorder=3,
                )
    for x in range(len(readouts)):
        here = [place for where in at.values() if (place := where[x]) is not None]
        for level in dict.fromkeys(place.level for place in here):
            _say_value(axes, x, [place for place in here if place.level == level], small)
    axes.set_xticks(range(len(readouts)), readouts, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.6, len(readouts) - 0.4)
    shown = levels(panel)
    axes.set_yticks([float(level) for level in shown], [_level_name(level, panel) for level in shown])
    axes.set_ylim(float(shown[-1]) + 0.6, 0.5)
    axes.set_ylabel("rank")


class Place(NamedTuple):
    """Where a model stands under one readout.

    Attributes:
        level: its rank, the mean of the places of models with the same F1; undefined ones stand below the last.
        offset: how far right of the readout its mark is, so that equal models' marks stand side by side.
        f1: its F1.
    """

    level: Fraction
    offset: float
    f1: Fraction | None


def places(panel: Panel, model: str) -> list[Place | None]:
    """Return where a model stands under every readout; None where it lacks the readout."""
    f1s = f1_of(panel)
    # In readouts; so many models together must not reach the next readout's.
    step = min(ABREAST * len(panel.readouts) / AXIS, 0.8 / len(panel.models))
    found: list[Place | None] = []
    for name in panel.readouts:
        having = [one for one in f1s if name in f1s[one]]
        if model not in having:
            found.append(None)
            continue
        level_of = {
            one: Fraction(len(panel.models) + 1) if rank is None else Fraction(rank)
            for one, rank in zip(having, ranks([f1s[one][name] for one in having]), strict=True)
        }
        alike = [one for one in having if level_of[one] == level_of[model]]
        offset = step * (alike.index(model) - (len(alike) - 1) / 2)
        found.append(Place(level_of[model], offset, f1s[model][name]))
    return found


def levels(panel: Panel) -> list[Fraction]:
    """Return the places of the rank axis, best first: every whole rank and every other that a model has."""
    used = {place.level for model in panel.models for place in places(panel, model) if place is not None}
    return sorted({Fraction(rank) for rank in range(1, len(panel.models) + 1)} | used)


def _level_name(level: Fraction, panel: Panel) -> str:
    """Return what stands at a place of the rank axis."""
    return "none" if level > len(panel.models) else f"{float(level):g}"


def _line(panel: Panel, model: str, where: Sequence[Place | None]) -> tuple[list[float], list[float]]:
    """Return the line through a model's marks, broken where it has no rank."""
    xs = [x if place is None else x + place.offset for x, place in enumerate(where)]
    ys = [math.nan if place is None or place.f1 is None else float(place.level) for place in where]
    return xs, ys


def _say_value(axes: Axes, x: int, alike: Sequence[Place], small: bool) -> None:
    """Write an F1 under the marks of the models that have it, and put a pale bar behind several."""
    level, offsets = float(alike[0].level), [place.offset for place in alike]
    axes.annotate(
        printed(alike[0].f1, 3),
        (x, level),
        xytext=(0, -9),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=5 if small else 6.5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},
        zorder=2.5,
    )
    if len(alike) > 1:
        ends = [x + min(offsets), x + max(offsets)]
        axes.plot(
            ends,
            [level] * 2,
            color=style.PALE,
            alpha=0.6,
            linewidth=9,
            solid_capstyle="round",
            zorder=0,
        )


def _legend(figure: Figure, models: Sequence[str], setting: Setting, missing: bool) -> None:
    """Name the models, and say how they were asked and what beyond sampling means."""
    handles = [
        Line2D([], [], color=look.colour, linestyle=look.dash, marker=look.marker, label=model)
        for model, look in ((model, style.mark(index)) for index, model in enumerate(models))
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(models), 3), handlelength=3.5)
    dataset, precision, template, _ = setting
    parts = [
        f"Under the marks: F1. All models: {dataset}, {precision}, prompt '{template}'. Models with the same F1 share a "
        "rank, the mean of their places, and stand side by side; without an F1 there is no rank.",
        "Beyond sampling: the 95% interval of the paired difference (images resampled) puts one model ahead under one "
        "readout, and the other under another.",
    ]
    if missing:
        parts.append("Open mark: the readout does not look at every yes and no that this model writes.")
    text = "\n".join(textwrap.fill(part, CAPTION_WIDTH) for part in parts)
    figure.supxlabel(text, fontsize=7, color=style.GREY)
