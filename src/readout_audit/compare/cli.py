"""The command `readout-audit compare`."""

from pathlib import Path
from typing import Annotated

import typer

from readout_audit.compare.comparison import compare_runs
from readout_audit.compare.output import as_lines, write_outputs
from readout_audit.report.run_folder import find_run


def compare(
    run_a: Annotated[str, typer.Argument(help="A run's name, such as demo, or its results folder.")],
    run_b: Annotated[str, typer.Argument(help="The run to hold against it.")],
    root: Annotated[Path, typer.Option(help="Folder that holds results/.")] = Path(),
    cells: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="CELL_A CELL_B",
            help="The two cells to compare, dataset/model/precision/template; default: all that match.",
        ),
    ] = None,
    other_prompts: Annotated[
        bool,
        typer.Option("--other-prompts", help="Go on where no prompt is the same; flips are listed as such."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write flips.csv, scores.csv and compare.json there."),
    ] = None,
) -> None:
    """Compare two runs question by question: flips with margins, near-ties, scores, and what was set differently.

    For two versions, machines, precisions, engines or releases. Only questions asked in the same words count as
    the same; what was asked in other words or with another prompt is reported apart, never pooled.
    """
    comparison = compare_runs(
        find_run(run_a, root), find_run(run_b, root), cells, other_prompts=other_prompts
    )
    for line in as_lines(comparison):
        typer.echo(line)
    if output is not None:
        for what, path in write_outputs(comparison, output).items():
            typer.echo(f"{what}: {path}")
