"""The command `readout-audit statement`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from readout_audit.config.schema import closest
from readout_audit.errors import AuditError
from readout_audit.report.run_folder import find_run
from readout_audit.report.statement import run_statements
from readout_audit.report.text import visible


def statement(
    run: Annotated[str, typer.Argument(help="A run's name, such as demo, or its results folder.")],
    root: Annotated[Path, typer.Option(help="Folder that holds results/.")] = Path(),
    readout: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Only this readout; repeat for several.")
    ] = None,
) -> None:
    """Print the line that a paper should print about each score: readout, ids, prompt, precision, release, n."""
    found = run_statements(find_run(run, root))
    wanted = readout or []
    refuse_unknown(run, wanted, list(dict.fromkeys(name for lines in found.values() for name in lines)))
    for cell, lines in found.items():
        chosen = [line for name, line in lines.items() if not wanted or name in wanted]
        if chosen:
            typer.echo(cell)
            for line in chosen:
                typer.echo(f"  {line}")


def refuse_unknown(run: str, wanted: Sequence[str], known: Sequence[str]) -> None:
    """Stop at a readout that no cell of the run has.

    Raises:
        AuditError: there is one.
    """
    for name in wanted:
        if name not in known:
            raise AuditError(
                f"{run}: no readout {visible(name)!r}{closest(name, known)}; "
                f"the readouts there are {', '.join(map(visible, known)) or 'none'}."
            )
