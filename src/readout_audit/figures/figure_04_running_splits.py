"""Figure 4: the running yes-rate of both readouts on every split (paper, Section 3)."""

from matplotlib.figure import Figure

from readout_audit.figures import running, style
from readout_audit.figures.common import cell_title
from readout_audit.tables.inputs import RunTables


def draw(inputs: RunTables) -> Figure:
    """Draw one row of panels per cell, one panel per split, on one scale."""
    splits = inputs.options.splits
    cells = running.ordered_cells(inputs)
    figure = style.new_figure(style.WIDTH, 0.5 + 2.5 * max(1, len(cells)))
    if not cells:
        return style.say_nothing_to_show(figure, running.NO_ORDER)
    rows = figure.subfigures(len(cells), 1, squeeze=False)
    for (row,), cell in zip(rows, cells, strict=True):
        row.suptitle(cell_title(cell, cells))
        panels = row.subplots(1, len(splits), squeeze=False, sharey=True)[0]
        for axes, split in zip(panels, splits, strict=True):
            running.draw_panel(axes, inputs, cell, split)
        panels[0].set_ylabel("running yes-rate\n(share of answers)")
    running.legend(figure, inputs)
    return figure
