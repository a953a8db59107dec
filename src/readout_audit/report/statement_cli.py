"""The command `readout-audit statement`."""

from pathlib import Path
from typing import Annotated

import typer

from readout_audit.report.run_folder import find_run
from readout_audit.report.statement import run_statements


def statement(
    run: Annotated[str, typer.Argument(help="A run's name, such as demo, or its results folder.")],
    root: Annotated[Path, typer.Option(help="Folder that holds results/.")] = Path(),
    readout: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this readout; repeat for several.")
    ] = None,
) -> None:
    """Print the line that a paper should print about each score: readout, ids, prompt, precision, release, n."""
    for cell, lines in run_statements(find_run(run, root)).items():
        chosen = [line for line in lines if not readout or _names(line, readout)]
        if chosen:
            typer.echo(cell)
            for line in chosen:
                typer.echo(f"  {line}")


def _names(line: str, readouts: list[str]) -> bool:
    """Tell whether a statement is about one of the readouts."""
    return line.removeprefix("Readout ").partition(":")[0] in readouts
