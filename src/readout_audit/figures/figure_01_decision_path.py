"""Figure 1: what each readout looks at, at the answer position (paper, Section 1; here with counts)."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from readout_audit import contracts
from readout_audit.figures import style
from readout_audit.figures.common import cell_title
from readout_audit.tables.first_tokens import FirstTokens, first_tokens
from readout_audit.tables.inputs import Options, RunTables

CAPTION = f"Dark: some answer began with the id. Hatched: the ids that the narrower readout compares.\n{style.PIECES}"
_ROW = 0.15
"""Step from one candidate to the next, of the figure's 0 to 1."""
_COLUMN = {contracts.YES: 0.345, contracts.NO: 0.535}
_RIGHT = 0.70
"""Where the readouts' boxes begin."""
_MIDDLE = 0.45


def draw(inputs: RunTables) -> Figure:
    """Draw the path from the logits to the decision, one panel per cell whose first tokens are known."""
    found = [tokens for tokens in first_tokens(inputs) if tokens.counts and tokens.sides]
    if not found:
        figure = style.new_figure(style.WIDTH, 1.0)
        return style.say_nothing_to_show(figure, "No cell of this run knows both ids and first tokens.")
    figure = style.new_figure(style.WIDTH, 0.3 + 3.7 * len(found))
    figure.supxlabel(CAPTION, fontsize=7, color=style.GREY)
    panels = figure.subplots(len(found), 1, squeeze=False)
    for (axes,), tokens in zip(panels, found, strict=True):
        axes.set_axis_off()
        axes.set_xlim(-0.005, 1.005)
        axes.set_ylim(0, 1)
        axes.set_title(cell_title(tokens.cell, [one.cell for one in found]), loc="left", fontweight="bold")
        _draw_model(axes, tokens)
        _draw_candidates(axes, tokens)
        _draw_readouts(axes, tokens, inputs.options)
    return figure


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


def _draw_candidates(axes: Axes, tokens: FirstTokens) -> None:
    """Draw each id that is read, then all others together: emitted ones dark, the narrow readout's hatched."""
    total = tokens.total
    sides = {
        answer: [token for token, side in tokens.sides.items() if side == answer]
        for answer in contracts.LABELS
    }
    rows = max(len(ids) for ids in sides.values()) + 1
    step = min(_ROW, 0.8 / rows)
    top = _MIDDLE + (rows - 1) / 2 * step
    axes.text(0.44, top + 1.25 * step, "ids, and answers that began with them", ha="center", va="center")
    for answer, x in _COLUMN.items():
        axes.text(x, top + 0.75 * step, f"read as {answer}", ha="center", va="center", fontsize=7)
        for row, token in enumerate(sides[answer]):
            name = f"{tokens.pieces.get(token, 'not recorded')}  ({token})"
            hatch = "////" if token in tokens.narrow else None
            _candidate(axes, (x, top - row * step), (0.17, 0.8 * step), name, total[token], hatch)
    others = sum(total[token] for token in tokens.others)
    middle, width = sum(_COLUMN.values()) / 2, _COLUMN["no"] - _COLUMN["yes"] + 0.17
    _candidate(axes, (middle, top - (rows - 1) * step), (width, 0.8 * step), "every other id", others, None)


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
