"""Figure 2: confusion matrices of the two readouts side by side, on the hardest split (paper, Section 3)."""

import math
from fractions import Fraction

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from readout_audit.exact import printed
from readout_audit.figures import style
from readout_audit.figures.common import cell_title
from readout_audit.scores.confusion import Confusion
from readout_audit.tables.common import hardest_split
from readout_audit.tables.inputs import RunTables

CAPTION = "Shares are of the questions with that label; darker is larger. Heavy frame: right answers."
NEITHER = " Neither: unparsed or invalid."


PER_ROW = 2
"""Models beside each other where there are many."""

ONE_BY_ONE = 4
"""As many models stand one below the other."""


def draw(inputs: RunTables) -> Figure:
    """Draw one pair of matrices per cell: `readout_to` on the left, `readout_from` on the right."""
    options = inputs.options
    split = hardest_split(options)
    readouts = (options.readout_to, options.readout_from)
    blocks = [
        (cell, labels)
        for cell, labels, one in inputs.scored_splits()
        if one == split and labels == options.labels[0]
    ]
    several = PER_ROW if len(blocks) > ONE_BY_ONE else 1
    rows = math.ceil(len(blocks) / several)
    figure = style.new_figure(style.WIDTH, max(1.0, 0.3 + (3.0 if several == 1 else 2.05) * rows))
    if not blocks:
        return style.say_nothing_to_show(figure, f"No scores on split {split} in this run.")
    cells = [cell for cell, _ in blocks]
    # One grid for all rows, so that the matrices of every model stand in line and have one size.
    panels = figure.subplots(rows, 2 * several, squeeze=False).ravel()
    found = [(block, readout) for block in blocks for readout in readouts]
    matrices = [inputs.confusion(*block, split, readout) for block, readout in found]
    for axes, ((cell, _), readout), matrix in zip(panels, found, matrices, strict=False):
        _draw_matrix(axes, matrix, small=several > 1)
        if several > 1 and readout == readouts[1]:
            # The rows are those of the matrix beside it.
            axes.set_yticks([])
            axes.set_ylabel("")
        parts = [cell_title(cell, cells, 40 // several), split]
        axes.set_title(
            f"{style.describe(parts, 40 // several)}\n{_titled(readout, matrix, several > 1)}",
            fontsize=7 if several > 1 else None,
        )
    for axes in panels[len(found) :]:
        axes.set_axis_off()
    neither = any(one.n > one.parsed for one in matrices if one is not None)
    figure.supxlabel(CAPTION + (NEITHER if neither else ""), fontsize=7, color=style.GREY)
    return figure


def _titled(readout: str, matrix: Confusion | None, on_two_lines: bool) -> str:
    """Return a readout with the F1 that its matrix gives."""
    between = "\n" if on_two_lines else ", "
    return readout if matrix is None else f"{readout}{between}F1 {printed(matrix.f1, 4)}"


def _draw_matrix(axes: Axes, confusion: Confusion | None, *, small: bool) -> None:
    """Draw label (rows) against decision (columns): counts, and shares of the label's questions."""
    size = 6.5 if small else 8.5
    axes.set_axis_off()
    if confusion is None:
        axes.text(0.5, 0.5, "not available from this source", ha="center", va="center")
        return
    columns = ["yes", "no", *(["neither"] if confusion.n > confusion.parsed else [])]
    rows = (
        ("yes", (confusion.tp, confusion.fn, confusion.unparsed_pos + confusion.invalid_pos), ("TP", "FN")),
        ("no", (confusion.fp, confusion.tn, confusion.unparsed_neg + confusion.invalid_neg), ("FP", "TN")),
    )
    axes.set_axis_on()
    for y, (_, counts, names) in enumerate(rows):
        total = sum(counts)
        for x, count in enumerate(counts[: len(columns)]):
            name = names[x] if x < len(names) else "neither"
            _draw_box(axes, (x, y), count, total, name, size)
    axes.set_xlim(0, len(columns))
    axes.set_ylim(2, 0)
    axes.set_aspect("equal" if len(columns) == 2 else "auto")
    axes.set_xticks([x + 0.5 for x in range(len(columns))], columns)
    axes.set_yticks(
        [0.5, 1.5], [f"{label}\n(n = {style.thousands(sum(counts))})" for label, counts, _ in rows]
    )
    axes.set_xlabel("read as", fontsize=size)
    axes.set_ylabel("label", fontsize=size)
    axes.tick_params(length=0, labelsize=size)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _draw_box(
    axes: Axes, corner: tuple[int, int], count: int, total: int, name: str, fontsize: float
) -> None:
    """Draw one cell of a matrix: darker for a larger share, a heavy frame where the answer is right."""
    share = count / total if total else 0.0
    right = name in ("TP", "TN")
    axes.add_patch(
        Rectangle(
            (corner[0] + 0.03, corner[1] + 0.03),
            0.94,
            0.94,
            facecolor=style.tint(share),
            edgecolor=style.INK if right else style.GREY,
            linewidth=2.0 if right else 0.8,
        )
    )
    percent = f"{printed(100 * Fraction(count, total), 1)}%" if total else "no questions"
    axes.text(
        corner[0] + 0.5,
        corner[1] + 0.5,
        f"{name}\n{style.thousands(count)}\n{percent}",
        ha="center",
        va="center",
        linespacing=1.4,
        fontsize=fontsize,
        color=style.INK,
    )
