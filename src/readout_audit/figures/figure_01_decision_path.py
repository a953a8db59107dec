"""Figure 1: what each readout looks at, at the answer position (paper, Section 1; here with counts)."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.patches import FancyBboxPatch

from readout_audit import contracts
from readout_audit.figures import style
from readout_audit.figures.common import cell_title
from readout_audit.tables.first_tokens import FirstTokens, first_tokens
from readout_audit.tables.inputs import Options, RunTables

CAPTION = f"Dark: some answer began with the id. Hatched: the ids that the narrower readout compares.\n{style.PIECES}"
MOST_OTHERS = 2
"""Emitted ids outside both readouts that are named."""

MOST_CELLS = 13
"""One cell in full and six rows of two others: more would no longer fit a page."""


class Frame(NamedTuple):
    """Where the candidates stand in their axes, which run from 0 to 1.

    Attributes:
        columns: answer -> middle of its column.
        width: of a candidate's box.
        middle: height of the middle of all rows.
        step: from one row to the next, at most.
        span: height of all rows, at most.
    """

    columns: Mapping[str, float]
    width: float
    middle: float
    step: float
    span: float


_FULL = Frame({contracts.YES: 0.345, contracts.NO: 0.535}, 0.17, 0.45, 0.15, 0.8)
_ALONE = Frame({contracts.YES: 0.255, contracts.NO: 0.745}, 0.46, 0.49, 0.16, 0.82)
"""Beside the whole path, and where a cell shows its candidates alone."""

_RIGHT = 0.70
"""Where the readouts' boxes begin."""
_MIDDLE = _FULL.middle


def draw(inputs: RunTables) -> Figure:
    """Draw the path from the logits to the decision for the first cell, and the candidates of every other one."""
    found = [tokens for tokens in first_tokens(inputs) if tokens.counts and tokens.sides]
    if not found:
        figure = style.new_figure(style.WIDTH, 1.0)
        return style.say_nothing_to_show(figure, "No cell of this run knows both ids and first tokens.")
    first, *others = found[:MOST_CELLS]
    rows = math.ceil(len(others) / 2)
    figure = style.new_figure(style.WIDTH, 4.0 + 2.4 * rows)
    spec = figure.add_gridspec(1 + rows, 2, height_ratios=[3.7, *[2.4] * rows])
    titles = {one.cell: cell_title(one.cell, [one.cell for one in found], 44) for one in found}
    axes = _panel(figure, spec[0, :], titles[first.cell])
    _draw_model(axes, first)
    _draw_candidates(axes, first, _FULL)
    _draw_readouts(axes, first, inputs.options)
    for place, tokens in enumerate(others):
        axes = _panel(figure, spec[1 + place // 2, place % 2], titles[tokens.cell])
        _draw_candidates(axes, tokens, _ALONE)
        axes.text(0.5, -0.02, _read_of(tokens, inputs.options), ha="center", va="bottom", fontsize=7)
    left_out = (
        f"\n{len(found) - MOST_CELLS} more are left out here; Table 1 has them all."
        if len(found) > MOST_CELLS
        else ""
    )
    figure.supxlabel(CAPTION + left_out, fontsize=7, color=style.GREY)
    return figure


def _panel(figure: Figure, place: SubplotSpec, title: str) -> Axes:
    """Return empty axes from 0 to 1 with a title."""
    axes = figure.add_subplot(place)
    axes.set_axis_off()
    axes.set_xlim(-0.005, 1.005)
    axes.set_ylim(0, 1)
    axes.set_title(title, loc="left", fontweight="bold")
    return axes


def _read_of(tokens: FirstTokens, options: Options) -> str:
    """Say how many of the emitted tokens each readout of the pair reads."""
    total = tokens.total
    every = style.thousands(total.total())
    counts = (sum(total[token] for token in ids) for ids in (tokens.sides, tokens.narrow))
    names = (options.readout_from, options.readout_to)
    return "; ".join(
        f"{name} reads {style.thousands(count)} of {every}" for name, count in zip(names, counts, strict=True)
    )


def _draw_model(axes: Axes, tokens: FirstTokens) -> None:
    """Draw what comes before the answer position."""
    n = sum(tokens.n[split] for split in tokens.counts)
    _box(axes, (0.0, _MIDDLE + 0.07), (0.19, 0.26), f"image and question\nn = {style.thousands(n)}")
    _box(
        axes,
        (0.0, _MIDDLE - 0.33),
        (0.19, 0.26),
        "first answer position:\none logit for every\nid of the vocabulary",
    )
    _arrow(axes, (0.095, _MIDDLE + 0.07), (0.095, _MIDDLE - 0.07))
    _arrow(axes, (0.19, _MIDDLE - 0.2), (0.255, _MIDDLE))


def _draw_candidates(axes: Axes, tokens: FirstTokens, frame: Frame) -> None:
    """Draw each id that is read, then all others together: emitted ones dark, the narrow readout's hatched."""
    total = tokens.total
    sides = {
        answer: [token for token, side in tokens.sides.items() if side == answer]
        for answer in contracts.LABELS
    }
    rows = max(len(ids) for ids in sides.values()) + 1
    step = min(frame.step, frame.span / rows)
    top = frame.middle + (rows - 1) / 2 * step
    middle = sum(frame.columns.values()) / 2
    if frame is _FULL:
        axes.text(
            middle, top + 1.25 * step, "ids, and answers that began with them", ha="center", va="center"
        )
    for answer, x in frame.columns.items():
        axes.text(x, top + 0.75 * step, f"read as {answer}", ha="center", va="center", fontsize=7)
        for row, token in enumerate(sides[answer]):
            name = f"{tokens.pieces.get(token, 'not recorded')}  ({token})"
            hatch = "////" if token in tokens.narrow else None
            size = (frame.width, 0.8 * step)
            _candidate(axes, (x, top - row * step), size, name, total[token], hatch)
    others = sum(total[token] for token in tokens.others)
    width = frame.columns[contracts.NO] - frame.columns[contracts.YES] + frame.width
    _candidate(axes, (middle, top - (rows - 1) * step), (width, 0.8 * step), _others(tokens), others, None)


def _others(tokens: FirstTokens) -> str:
    """Name the ids that neither readout reads: the most frequent of those that began an answer, where there are any."""
    named = [f"{tokens.pieces.get(token, 'not recorded')} ({token})" for token in tokens.others[:MOST_OTHERS]]
    more = len(tokens.others) - len(named)
    rest = f" and {more:,} more" if more else ""
    return f"every other id: {', '.join(named)}{rest}" if named else "every other id"


def _candidate(
    axes: Axes,
    middle: tuple[float, float],
    size: tuple[float, float],
    name: str,
    count: int,
    hatch: str | None,
) -> None:
    """Draw one id, or several together, with the number of answers that began with it."""
    share = 0.9 if count else 0.0
    axes.add_patch(
        FancyBboxPatch(
            (middle[0] - size[0] / 2, middle[1] - size[1] / 2),
            *size,
            boxstyle="round,pad=0,rounding_size=0.02",
            facecolor=style.tint(share),
            edgecolor=style.INK if count else style.GREY,
            hatch=hatch,
            linewidth=1.6 if count else 0.7,
        )
    )
    axes.text(
        *middle,
        f"{name}\n{style.thousands(count)}",
        ha="center",
        va="center",
        fontsize=7,
        color=style.INK,
        bbox={"facecolor": style.tint(share), "edgecolor": "none", "pad": 0.6} if hatch else None,
    )


def _draw_readouts(axes: Axes, tokens: FirstTokens, options: Options) -> None:
    """Draw what each readout makes of the logits, and how many of the emitted tokens it reads."""
    total = tokens.total
    every = style.thousands(total.total())
    wide = style.thousands(sum(total[token] for token in tokens.sides))
    narrow = style.thousands(sum(total[token] for token in tokens.narrow))
    texts = (
        ("greedy decoding", "emits the largest of all ids:\nthe answer people see"),
        (options.readout_from, f"largest yes against largest no;\nreads {wide} of {every} emitted tokens"),
        (options.readout_to, f"the hatched ids alone;\nreads {narrow} of {every} emitted tokens"),
    )
    for row, (name, text) in enumerate(texts):
        middle = _MIDDLE + (1 - row) * 0.29
        _box(
            axes, (_RIGHT, middle - 0.11), (0.3, 0.22), f"{name}\n{text}", hatch="////" if row == 2 else None
        )
        _arrow(axes, (0.63, _MIDDLE + (1 - row) * 0.03), (_RIGHT, middle))


def _box(
    axes: Axes, corner: tuple[float, float], size: tuple[float, float], text: str, hatch: str | None = None
) -> None:
    """Draw a box with text in its middle."""
    axes.add_patch(
        FancyBboxPatch(
            corner,
            *size,
            boxstyle="round,pad=0,rounding_size=0.02",
            facecolor="white",
            edgecolor=style.INK,
            hatch=hatch,
            linewidth=0.9,
        )
    )
    axes.text(
        corner[0] + size[0] / 2,
        corner[1] + size[1] / 2,
        text,
        ha="center",
        va="center",
        fontsize=7,
        linespacing=1.35,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
    )


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow."""
    axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": style.INK, "linewidth": 0.9})
