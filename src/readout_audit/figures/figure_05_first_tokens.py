"""Figure 5: how often each yes and no form was the first token, by split (paper, Section 3)."""

import math
import textwrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from readout_audit.figures import style
from readout_audit.figures.common import cell_title
from readout_audit.tables.first_tokens import FirstTokens, first_tokens
from readout_audit.tables.inputs import RunTables

OTHERS = "any other token"
AXIS = "answers that begin with the token (log scale from 1; left of the dashes: none)"
MOST_OTHERS = 4
"""Emitted tokens outside both readouts that have bars of their own."""
_BAR = 0.8
"""Height of a form's bars together, of the 1 between two forms."""


def draw(inputs: RunTables) -> Figure:
    """Draw one panel per cell: a token is a group of bars, a split a bar; forms that began no answer are listed."""
    cells = [tokens for tokens in first_tokens(inputs) if tokens.counts]
    if not cells:
        figure = style.new_figure(style.WIDTH, 1.0)
        return style.say_nothing_to_show(
            figure, "The source of these answers does not know their first tokens."
        )
    splits = [split for split in inputs.options.splits if any(split in one.counts for one in cells)]
    heights = [len(written(one)) + 1 for one in cells]
    height = 1.0 + sum(max(0.3, 0.135 * len(splits)) * rows + 0.8 for rows in heights)
    figure = style.new_figure(style.WIDTH, height)
    panels = figure.subplots(len(cells), 1, squeeze=False, height_ratios=heights)
    for (axes,), tokens in zip(panels, cells, strict=True):
        _draw_panel(axes, tokens, splits)
        axes.set_title(cell_title(tokens.cell, [one.cell for one in cells]))
    _legend(figure, cells, splits)
    figure.supxlabel(style.PIECES, fontsize=7, color=style.GREY)
    return figure


def written(tokens: FirstTokens) -> list[int]:
    """Return the tokens that have bars: the forms that began an answer, then the most frequent others."""
    return [token for token in tokens.sides if tokens.total[token]] + tokens.others[:MOST_OTHERS]


def silent(tokens: FirstTokens) -> str:
    """Return the sentence that lists the forms that began no answer; empty where there is none."""
    names = [_name(tokens, token) for token in tokens.sides if not tokens.total[token]]
    return textwrap.fill(f"No answer began with {', '.join(names)}.", 110) if names else ""


def _name(tokens: FirstTokens, token: int) -> str:
    """Return a form by its piece and id."""
    return f"{tokens.pieces.get(token, 'not recorded')} ({token})"


def place(count: int) -> float:
    """Return where a count stands on the axis: 0 at 0, 1 at 1, 10 at 2, 100 at 3.

    A logarithm has no zero, so the axis has a step of its own from 0 to 1 and is logarithmic from there on.
    """
    return 1 + math.log10(count) if count else 0.0


def _draw_panel(axes: Axes, tokens: FirstTokens, splits: list[str]) -> None:
    """Draw the bars of one cell, each with its count."""
    forms = written(tokens)
    names = [_name(tokens, token) for token in forms] + [OTHERS]
    thick = _BAR / len(splits)
    largest = 1
    for index, split in enumerate(splits):
        if split not in tokens.counts:
            continue
        counter = tokens.counts[split]
        counts = [counter[token] for token in forms]
        counts.append(sum(counter[token] for token in tokens.others[MOST_OTHERS:]))
        largest = max(largest, *counts)
        look = style.mark(index)
        at = [row - _BAR / 2 + thick * (index + 0.5) for row in range(len(names))]
        axes.barh(
            at,
            [place(count) for count in counts],
            height=thick * 0.9,
            facecolor=look.colour,
            edgecolor="white" if look.hatch else look.colour,
            hatch=look.hatch,
            linewidth=0,
        )
        for y, count in zip(at, counts, strict=True):
            axes.text(place(count) + 0.04, y, style.thousands(count), va="center", fontsize=6.5)
    _draw_axes(axes, names, largest)
    axes.set_xlabel("\n".join(filter(None, (AXIS, silent(tokens)))), fontsize=7)


def _draw_axes(axes: Axes, names: list[str], largest: int) -> None:
    """Label forms and counts; the step from 0 to 1 is marked as a break."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    powers = range(math.ceil(math.log10(largest)) + 1)
    axes.set_xticks(
        [0, *(1 + power for power in powers)], ["0", *(style.thousands(10**power) for power in powers)]
    )
    axes.set_xlim(0, place(largest) + 0.5)
    axes.axvline(0.5, color=style.GREY, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
    style.grid(axes, "x")


def _legend(figure: Figure, cells: list[FirstTokens], splits: list[str]) -> None:
    """Explain the bars once, above the panels, with each split's n."""
    handles = []
    for index, split in enumerate(splits):
        sizes = sorted({one.n[split] for one in cells if split in one.n})
        n = " to ".join(style.thousands(size) for size in (sizes[0], sizes[-1])[: len(sizes)])
        look = style.mark(index)
        handles.append(
            Patch(
                facecolor=look.colour,
                edgecolor="white",
                hatch=look.hatch,
                label=f"{split} (n = {n})",
            )
        )
    figure.legend(handles=handles, loc="outside upper center", ncols=len(splits), handlelength=2.4)
