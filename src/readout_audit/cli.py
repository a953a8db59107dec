"""The command `readout-audit`. Each subcommand imports what it needs when it is called."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from readout_audit import __version__
from readout_audit.errors import AuditError

app = typer.Typer(
    name="readout-audit",
    help="How much of a yes/no hallucination score is the model, and how much is the way the answer was read?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def show_version(
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """How much of a yes/no hallucination score is the model, and how much is the way the answer was read?"""
    if version:
        typer.echo(f"readout-audit {__version__}")
        raise typer.Exit


@app.command()
def headline(
    runs: Annotated[list[str], typer.Argument(help="Names of runs, such as demo.")],
    root: Annotated[Path, typer.Option(help="Folder that holds results/, figures/, paper_tables/.")] = Path(),
) -> None:
    """Print in a few lines what runs found and where their tables and figures are."""
    from readout_audit.headline import headline_lines

    for line in headline_lines(runs, root):
        typer.echo(line)


COMMANDS = {
    "check-numbers": "readout_audit.consistency.cli:check_numbers",
    "compare": "readout_audit.compare.cli:compare",
    "diagnose": "readout_audit.readouts.diagnose_cli:diagnose",
    "export": "readout_audit.export.cli:export",
    "preflight": "readout_audit.inference.cli:preflight",
    "score": "readout_audit.score_file.cli:score",
    "statement": "readout_audit.report.statement_cli:statement",
    "verify-engine": "readout_audit.inference.cli:verify_engine",
}
"""Subcommands whose functions lie with their subject."""


def _add(name: str, target: str) -> None:
    """Register a subcommand by its "module:function"."""
    module, _, attribute = target.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    app.command(name)(function)


def main() -> None:
    """Run the command; an `AuditError` becomes its sentence and status 1."""
    for name, target in COMMANDS.items():
        _add(name, target)
    try:
        app()
    except AuditError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
