"""The excluded logits: what the pair that was read but never emitted held, and what its difference follows."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from scipy.stats import pearsonr

from readout_audit.figures import style
from readout_audit.figures.measured import answer_panels, caption, column
from readout_audit.tables.common import hardest_split
from readout_audit.tables.inputs import RunTables

OUTCOMES = ("tp", "fn", "fp", "tn")
_FEW_RANKS = 9
NOTHING = "This run has no records of the excluded ids, so there is nothing to show here."
CAPTION = (
    "Excluded: the yes and the no id that the second readout of the pair compares although answers begin with other "
    "ids. Left: their logits by outcome (box: quartiles, whiskers: 5th and 95th percentile). Middle: their rank in the "
    "vocabulary, 1 for the largest logit. Right: yes minus no, of the excluded ids and of the ids that answers begin "
    "with; r is Pearson's."
)


def draw(inputs: RunTables) -> Figure:
    """Draw three panels per cell, of the hardest split: logits, ranks, and the two gaps against each other."""
    split = hardest_split(inputs.options)
    found = [(one, known(one.by_split.get(split, []))) for one in answer_panels(inputs)]
    shown = [(one, rows) for one, rows in found if rows]
    figure = style.new_figure(style.WIDTH + 0.6, 0.8 + 2.8 * max(1, len(shown)) if shown else 1.0)
    if not shown:
        return style.say_nothing_to_show(figure, NOTHING)
    lines = figure.subfigures(len(shown), 1, squeeze=False)
    for (line,), (one, rows) in zip(lines, shown, strict=True):
        title = one.title([other for other, _ in shown])
        line.suptitle(f"{title}, {split} (n = {style.thousands(len(rows))})")
        logits, ranks, gaps = line.subplots(1, 3, width_ratios=(1.1, 1.1, 1.3))
        _draw_boxes(logits, rows, ("excluded_yes", "excluded_no"), "logit")
        _draw_boxes(ranks, rows, ("excluded_yes_rank", "excluded_no_rank"), "rank in the vocabulary")
        _scale_ranks(ranks)
        _draw_gaps(gaps, rows)
    caption(lines[-1][0], CAPTION)
    _legend(figure)
    return figure


def known(rows: Sequence[Mapping[Any, Any]]) -> list[Mapping[Any, Any]]:
    """Return the answers whose main record has the excluded logits."""
    return [
        row
        for row in rows
        if row["excluded_yes"] == row["excluded_yes"] and row["main_gap"] == row["main_gap"]
    ]


def outcome(row: Mapping[Any, Any]) -> str:
    """Return the outcome in the main records, which the excluded logits belong to."""
    right = row["main_answer"] == row["label"]
    return ("tp" if right else "fp") if row["main_answer"] == "yes" else ("tn" if right else "fn")


def _draw_boxes(axes: Axes, rows: Sequence[Mapping[Any, Any]], names: Sequence[str], label: str) -> None:
    """Draw yes and no side by side for each outcome."""
    for side, name in enumerate(names):
        look = style.mark(side)
        for place, group in enumerate(OUTCOMES):
            values = column([row for row in rows if outcome(row) == group], name)
            if not values.size:
                continue
            axes.boxplot(
                [values],
                positions=[place + (side - 0.5) * 0.36],
                widths=0.3,
                whis=(5, 95),
                showfliers=False,
                patch_artist=True,
                boxprops={"facecolor": "white", "edgecolor": look.colour, "hatch": look.hatch},
                medianprops={"color": style.INK},
                whiskerprops={"color": look.colour},
                capprops={"color": look.colour},
                manage_ticks=False,
            )
    counts = [sum(outcome(row) == group for row in rows) for group in OUTCOMES]
    axes.set_xticks(
        range(len(OUTCOMES)),
        [
            f"{group.upper()}\nn = {style.thousands(count)}"
            for group, count in zip(OUTCOMES, counts, strict=True)
        ],
        fontsize=6,
    )
    axes.set_xlim(-0.6, len(OUTCOMES) - 0.4)  # also where an outcome at an end has no answer
    axes.set_ylabel(label)
    axes.tick_params(axis="x", length=0)
    style.grid(axes)


def _scale_ranks(axes: Axes) -> None:
    """Give ranks a logarithmic axis from 1; where they are few, every one of them a tick."""
    axes.set_yscale("log")
    top = axes.get_ylim()[1]
    few = FixedLocator(range(1, _FEW_RANKS + 1))
    axes.yaxis.set_major_locator(few if top <= _FEW_RANKS else LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.thousands(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(0.9, top * 1.1)


def _draw_gaps(axes: Axes, rows: Sequence[Mapping[Any, Any]]) -> None:
    """Draw the excluded difference against the emitted gap, by label."""
    gap = column(list(rows), "main_gap")
    excluded = column(list(rows), "excluded_yes") - column(list(rows), "excluded_no")
    positive = np.array([row["label"] == "yes" for row in rows], dtype=bool)
    for index, group in enumerate((positive, ~positive)):
        look = style.mark(index + 2)
        axes.plot(
            gap[group],
            excluded[group],
            marker=look.marker,
            color=look.colour,
            markersize=2.5,
            alpha=0.6,
            linestyle="none",
            markeredgewidth=0,
            rasterized=True,
        )
    axes.axhline(0, color=style.GREY, linewidth=0.7)
    axes.axvline(0, color=style.GREY, linewidth=0.7)
    if len(gap) > 2 and np.ptp(gap) and np.ptp(excluded):
        r = pearsonr(gap, excluded).statistic
        axes.set_title(f"r = {r:.3f}".replace("-", "−"), fontsize=7.5)
    axes.set_xlabel("emitted yes − emitted no")
    axes.set_ylabel("excluded yes − excluded no")
    style.grid(axes, "both")


def _legend(figure: Figure) -> None:
    """Explain boxes and points once."""
    handles: list[Artist] = [
        Patch(
            facecolor="white",
            edgecolor=style.mark(side).colour,
            hatch=style.mark(side).hatch,
            label=f"excluded {name}",
        )
        for side, name in enumerate(("yes", "no"))
    ]
    handles += [
        Line2D(
            [],
            [],
            marker=style.mark(i + 2).marker,
            color=style.mark(i + 2).colour,
            linestyle="none",
            label=f"label {name}",
        )
        for i, name in enumerate(("yes", "no"))
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
