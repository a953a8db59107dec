"""The command `readout-audit export`."""

from pathlib import Path
from typing import Annotated

import typer

from readout_audit.export.bundle import write_bundle
from readout_audit.report.run_folder import find_run


def export(
    run: Annotated[str, typer.Argument(help="A run's name, such as demo, or its results folder.")],
    output: Annotated[
        Path, typer.Option(metavar="FILE", help="A .zip file, or a folder that is not there yet.")
    ],
    root: Annotated[Path, typer.Option(help="Folder that holds results/.")] = Path(),
) -> None:
    """Bundle a run's answers, question by question, to be published beside its scores.

    Decisions as CSV and Parquet, records, token maps, settings, the readout statement, and checksums. The same
    run gives the same bytes.
    """
    replaced = output.is_file()
    count = write_bundle(find_run(run, root), output)
    typer.echo(f"{output}: {count} files{'; replaced what was there' if replaced else ''}")
