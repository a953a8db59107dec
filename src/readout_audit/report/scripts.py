"""What the scoring scripts in use would print of the run's answers, beside the F1 that their rule has here."""

from readout_audit.exact import printed
from readout_audit.readouts.harness.base import FIGURES, Figures, HarnessReadout
from readout_audit.readouts.registry import READOUTS, get
from readout_audit.report.grid import Grid, grid, numbers, texts
from readout_audit.report.inputs import CellKey, RunData, ScoreRow

DECIMALS = 4
NOTES = (
    "Each script's figures as it computes them; undefined where it ends in a division by zero. Here an answer that a rule "
    "cannot parse counts as wrong; lmms-eval and RePOPE leave it out of recall, VLMEvalKit counts it as a no.",
)


def scripts_table(data: RunData, cell: CellKey) -> Grid | None:
    """Return the figures of every script whose rule the run applied to a cell; None where there is none."""
    rows = [
        cells
        for split in data.splits
        for (where, labels, of_split, _), row in data.score_index.items()
        if (where, labels, of_split) == (cell, data.labels[0], split) and (cells := _cells(row))
    ]
    if not rows:
        return None
    columns = (
        *texts("split", "script"),
        *numbers("F1 here"),
        *numbers(*(figure.replace("_", "-") for figure in FIGURES), group="the script itself"),
        *numbers("unparsed"),
    )
    return grid(columns, rows, "What the scoring scripts would print", NOTES)


def _cells(row: ScoreRow) -> list[str]:
    """Return one line of the table; nothing for a rule that is no script's, or a row without a matrix."""
    if row.readout not in READOUTS or row.confusion is None:
        return []
    script = get(row.readout)
    if not isinstance(script, HarnessReadout):
        return []
    own = script.figures(row.confusion)
    figures = [_figure(own, name) for name in FIGURES]
    unparsed = row.confusion.unparsed_pos + row.confusion.unparsed_neg
    return [row.split, row.readout, printed(row.confusion.f1, DECIMALS), *figures, f"{unparsed:,}"]


def _figure(own: Figures, name: str) -> str:
    """Return one figure; a script that prints others but not this one does not report it."""
    if own[name] is None and own["accuracy"] is not None:
        return "not reported"
    return printed(own[name], DECIMALS)
