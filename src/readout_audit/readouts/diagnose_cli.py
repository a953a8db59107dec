"""The command `readout-audit diagnose`."""

from pathlib import Path
from typing import Annotated

import typer

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata, write_json
from readout_audit.logs import logging_to
from readout_audit.readouts.diagnose import Diagnosis, as_json, as_lines
from readout_audit.readouts.diagnose import diagnose as diagnose_records
from readout_audit.readouts.registry import READOUTS, get

SAMPLE = 100
"""Questions that a pair without records is asked, as in the paper's Algorithm 1."""


def diagnose(
    records: Annotated[
        Path | None, typer.Argument(help="A record file of one model and template; or give --model.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Ask this model of config/models.yaml now.")
    ] = None,
    template: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its prompt, of config/templates.yaml.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Questions to draw from, of config/datasets.yaml.")
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="fp32, bf16, fp16, int8 or nf4. Default: the configuration's first."
        ),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Model whose ids the legacy readouts copy. Default: the configuration's, if it is here.",
        ),
    ] = None,
    config: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Run configuration, read over config/config.yaml; repeatable."),
    ] = None,
    root: Annotated[Path, typer.Option(help="Folder that holds config/, workflow/ and resources/.")] = Path(),
    readout: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Readout to look at; repeat for several. Default: every logit readout."
        ),
    ] = None,
    questions: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Draw N questions. Default: all of a record file, 100 of a model."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of that draw.")] = 42,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the result as JSON.")] = None,
) -> None:
    """Which first tokens does this model write, and does each readout read them?

    Of a record file, or of a model and prompt that are asked now:
    diagnose --model tiny-llava --template authors --dataset demo-pope

    Exit status: 0 every emitted yes and no is read, 1 a readout would read
    excluded candidates, 2 bad input.
    """
    asked = (model, template, dataset)
    try:
        chosen = [
            get(name) for name in dict.fromkeys(readout or READOUTS) if readout or get(name).kind == "logit"
        ]
        if records is None and None not in asked:
            how = (precision, device, reference)
            path = _ask((str(model), str(template), str(dataset)), how, config or [], root, questions, seed)
            table, drawn = read_table(path, RECORDS, "the record file"), None
        elif records is not None and asked == (None, None, None):
            table, drawn = read_table(records, RECORDS, "the record file"), questions
        else:
            raise AuditError(
                "give either a record file, or --model, --template and --dataset, which are asked then."
            )
        result = diagnose_records(table, table_metadata(table), chosen, drawn, seed)
        if output is not None:
            write_json(output, as_json(result))
    except AuditError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    _show(result)


def _ask(
    names: tuple[str, str, str],
    how: tuple[str | None, str, str | None],
    runs: list[Path],
    root: Path,
    questions: int | None,
    seed: int,
) -> Path:
    """Ask a sample of a model-template pair and return its record file."""
    from readout_audit.inference.pair import Pair, ask_sample, in_project

    files = [path.absolute() for path in runs]
    with in_project(root), logging_to(None):
        sampled = ask_sample(Pair(*names, *how), files, questions or SAMPLE, seed)
        path = sampled.records.absolute()
    typer.echo(f"records: {path}")
    if sampled.reference is not None:
        typer.echo(f"the legacy readouts copy the ids of {sampled.reference}")
    return path


def _show(result: Diagnosis) -> None:
    """Print a diagnosis and end with its exit status."""
    for line in as_lines(result):
        typer.echo(line)
    raise typer.Exit(1 if result.excluding else 0)
