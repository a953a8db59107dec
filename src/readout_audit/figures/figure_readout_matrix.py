"""How far the readout alone moves each model, and which readouts disagree with which."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from readout_audit.exact import printed
from readout_audit.figures import style
from readout_audit.figures.common import cell_title
from readout_audit.tables.common import hardest_split
from readout_audit.tables.inputs import CellKey, RunTables
from readout_audit.tables.readout_scores import Scored, first_cells, scored
from readout_audit.tables.table_readout_matrix import Differing, Disagreements, disagreements

FEW = 8
"""With more readouts the shares are printed smaller, in whole percent."""

DARKEST = Fraction(1, 2)
"""Share of disagreement from which on a pair is drawn darkest."""

CAPTION_HEIGHT = 0.35
"""Inches that the caption takes from the last row."""

Splits = Mapping[str, Mapping[str, Scored]]


def draw(inputs: RunTables) -> Figure:
    """Draw one row per model, in its first setting: F1 of each readout, and the matrix of disagreements."""
    labels, found = inputs.options.labels[0], scored(inputs)
    cells = first_cells(key[0] for key in found if key[1] == labels)
    if not cells:
        return style.say_nothing_to_show(style.new_figure(style.WIDTH, 1.0), "No scores in this run.")
    blocks = {
        cell: {key[2]: by_readout for key, by_readout in found.items() if key[:2] == (cell, labels)}
        for cell in cells
    }
    differ = disagreements(inputs)
    heights = [1.3 + 0.21 * len(_readouts(block)) for block in blocks.values()]
    heights[-1] += CAPTION_HEIGHT
    figure = style.new_figure(style.WIDTH, 0.3 + sum(heights))
    rows = figure.subfigures(len(blocks), 1, squeeze=False, height_ratios=heights)
    for (row,), (cell, block) in zip(rows, blocks.items(), strict=True):
        left, right = row.subplots(1, 2, width_ratios=(1.2, 1), sharey=True)
        split, readouts = _shown_split(inputs, block), _readouts(block)
        row.suptitle(f"{cell_title(cell, cells)}: {_range_text(block[split], split)}")
        _draw_scores(left, block, split)
        _draw_matrix(right, differ, (cell, labels, split), readouts)
        left.set_yticks(range(len(readouts)), [f"{name}  {k}" for k, name in enumerate(readouts, start=1)])
        left.set_ylim(len(readouts) - 0.4, -0.6)
    _share_scale([row.axes[0] for (row,) in rows])
    _legend(figure, blocks)
    caption = (
        "Whiskers: 95%, images resampled. Band: from the lowest to the highest F1 on the split named above.\n"
        "Right: share of questions, in percent; darker is larger, darkest from half of them on."
    )
    rows[-1][0].supxlabel(caption, fontsize=7, color=style.GREY)
    return figure


def _readouts(block: Splits) -> list[str]:
    """Return the readouts of a cell, in the file's order."""
    return list(dict.fromkeys(name for by_readout in block.values() for name in by_readout))


def _shown_split(inputs: RunTables, block: Splits) -> str:
    """Return the hardest split, or the last that the cell has."""
    hardest = hardest_split(inputs.options)
    return hardest if hardest in block else list(block)[-1]


def _range_text(by_readout: Mapping[str, Scored], split: str) -> str:
    """Say between which readouts F1 moves how far."""
    f1s = {name: f1 for name, one in by_readout.items() if (f1 := one.confusion.f1) is not None}
    if len(f1s) < 2:
        return f"one readout on {split}"
    low, high = min(f1s, key=lambda name: f1s[name]), max(f1s, key=lambda name: f1s[name])
    points = printed(100 * (f1s[high] - f1s[low]), 1)
    return f"from the lowest to the highest of {len(f1s)} readouts F1 moves {points} points on {split}\n({low} to {high})"


def _draw_scores(axes: Axes, block: Splits, split: str) -> None:
    """Draw F1 with its interval: a line of dots per readout, a mark per split."""
    readouts = _readouts(block)
    f1s = [float(f1) for one in block[split].values() if (f1 := one.confusion.f1) is not None]
    if f1s:
        axes.axvspan(min(f1s), max(f1s), color=style.PALE, alpha=0.45, linewidth=0, zorder=0)
    undefined: dict[str, list[str]] = {}
    for index, name in enumerate(block):
        look, shift = style.mark(index), (index - (len(block) - 1) / 2) * 0.22
        for place, readout in enumerate(readouts):
            one = block[name].get(readout)
            if one is None or one.confusion.f1 is None:
                undefined.setdefault(readout, []).append(name)
                continue
            if one.low is not None and one.high is not None:
                axes.plot([one.low, one.high], [place + shift] * 2, color=look.colour, linewidth=1)
            axes.plot(
                float(one.confusion.f1), place + shift, color=look.colour, marker=look.marker, markersize=4.5
            )
    for readout, where in undefined.items():
        # A row without a mark would look forgotten.
        said = "undefined" if len(where) == len(block) else f"undefined on {', '.join(where)}"
        axes.text(
            *(0.02, readouts.index(readout), said),
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=6.5,
            color=style.GREY,
        )
    axes.set_xlabel("F1")
    style.grid(axes, "both")


def _share_scale(panels: Sequence[Axes]) -> None:
    """Give every model the same F1 axis, so that they can be compared by eye."""
    ends = [axes.get_xlim() for axes in panels]
    for axes in panels:
        axes.set_xlim(min(low for low, _ in ends), max(high for _, high in ends))


def _draw_matrix(
    axes: Axes, differ: Disagreements, key: tuple[CellKey, str, str], readouts: Sequence[str]
) -> None:
    """Draw the share of questions that each two readouts decide differently, each pair once."""
    pairs = [(x, y) for y in range(len(readouts)) for x in range(y)]
    found = [differ.get((key, readouts[y], readouts[x])) for x, y in pairs]
    if not any(found):
        axes.set_axis_off()
        why = (
            "one readout" if len(readouts) < 2 else "this source does not say\nwhich answers belong together"
        )
        axes.text(0.5, 0.5, why, ha="center", va="center", transform=axes.transAxes)
        return
    for place, one in zip(pairs, found, strict=True):
        _draw_share(axes, place, one, len(readouts))
    axes.set_xlim(-0.5, len(readouts) - 1.5)
    # The last readout stands in no column: each pair is drawn once, in the later one's row.
    numbers = [str(k) for k in range(1, len(readouts))]
    axes.set_xticks(range(len(numbers)), numbers, fontsize=8.5 if len(readouts) <= FEW else 6)
    axes.tick_params(length=0, labelleft=False)
    axes.set_xlabel("readout (numbers as at the left)")
    axes.set_title(f"read differently, {key[2]} (n = {_sizes(found)})")
    for spine in axes.spines.values():
        spine.set_visible(False)


def _sizes(found: Iterable[Differing | None]) -> str:
    """Return the number of questions that pairs were counted on."""
    sizes = sorted({one.of for one in found if one is not None})
    return " to ".join(style.thousands(size) for size in (sizes[0], sizes[-1])[: len(sizes)])


def _draw_share(axes: Axes, place: tuple[int, int], differing: Differing | None, readouts: int) -> None:
    """Draw one pair: darker for a larger share of questions; a cross where it is not known."""
    share = None if differing is None or not differing.of else Fraction(differing.questions, differing.of)
    ground = 0.0 if share is None else min(1.0, float(share / DARKEST))
    axes.add_patch(
        Rectangle((place[0] - 0.47, place[1] - 0.47), 0.94, 0.94, facecolor=style.tint(ground), linewidth=0)
    )
    few = readouts <= FEW
    text = "×" if share is None else f"{printed(100 * share, 1 if few else 0)}" + ("%" if few else "")
    axes.text(
        *place,
        text,
        ha="center",
        va="center",
        fontsize=7 if few else 4.5,
        color=style.INK,
    )


def _legend(figure: Figure, blocks: Mapping[CellKey, Splits]) -> None:
    """Explain the marks of the splits once, with their n."""
    splits = list(dict.fromkeys(name for block in blocks.values() for name in block))
    handles = []
    for index, split in enumerate(splits):
        sizes = {one.confusion.n for block in blocks.values() for one in block.get(split, {}).values()}
        ends = sorted({min(sizes), max(sizes)})
        look = style.mark(index)
        handles.append(
            Line2D(
                [],
                [],
                color=look.colour,
                marker=look.marker,
                markersize=4.5,
                linewidth=1,
                label=f"{split} (n = {' to '.join(map(style.thousands, ends))})",
            )
        )
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
