"""The command `readout-audit diagnose`."""

from pathlib import Path
from typing import Annotated

import typer

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata, write_json
from readout_audit.readouts.diagnose import Diagnosis, as_json, as_lines
from readout_audit.readouts.diagnose import diagnose as diagnose_records
from readout_audit.readouts.registry import READOUTS, get


def diagnose(
    records: Annotated[Path, typer.Argument(help="A record file of one model and template.")],
    readout: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Readout to look at; repeat for several. Default: every logit readout."
        ),
    ] = None,
    questions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Draw N questions instead of taking all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of that draw.")] = 42,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result as JSON.")] = None,
) -> None:
    """Which first tokens does this model write, and does each readout read them?

    Exit status: 0 every emitted yes and no is read, 1 a readout would read
    excluded candidates, 2 bad input.
    """
    try:
        result = _diagnose(records, readout, questions, seed)
        if output is not None:
            write_json(output, as_json(result))
    except AuditError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    for line in as_lines(result):
        typer.echo(line)
    raise typer.Exit(1 if result.excluding else 0)


def _diagnose(records: Path, readout: list[str] | None, questions: int | None, seed: int) -> Diagnosis:
    """Read the record file and diagnose the readouts asked for."""
    names = readout or [name for name in READOUTS if get(name).kind == "logit"]
    chosen = [get(name) for name in dict.fromkeys(names)]
    table = read_table(records, RECORDS, "the record file")
    return diagnose_records(table, table_metadata(table), chosen, questions, seed)
