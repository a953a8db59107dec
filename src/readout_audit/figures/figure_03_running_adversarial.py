"""Figure 3: the running yes-rate of both readouts over the adversarial stream (paper, Section 3)."""

from matplotlib.figure import Figure

from readout_audit.figures import running, style
from readout_audit.figures.common import cell_title
from readout_audit.tables.common import hardest_split
from readout_audit.tables.inputs import RunTables


def draw(inputs: RunTables) -> Figure:
    """Draw one panel per cell whose questions are in the order they were asked."""
    split = hardest_split(inputs.options)
    cells = running.ordered_cells(inputs)
    figure = style.new_figure(style.WIDTH, 0.5 + 2.7 * max(1, len(cells)))
    if not cells:
        return style.say_nothing_to_show(figure, running.NO_ORDER)
    panels = figure.subplots(len(cells), 1, squeeze=False)
    for (axes,), cell in zip(panels, cells, strict=True):
        running.draw_panel(axes, inputs, cell, split)
        axes.set_title(f"{cell_title(cell, cells)}, {axes.get_title()}")
        axes.set_ylabel("running yes-rate\n(share of answers)")
    running.legend(figure, inputs)
    return figure
