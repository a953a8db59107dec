"""The command `readout-audit score`."""

from pathlib import Path
from typing import Annotated

import typer

from readout_audit.errors import AuditError
from readout_audit.score_file.dialects import read_answers
from readout_audit.score_file.pairing import pair
from readout_audit.score_file.questions import Asked, known_releases, read_asked
from readout_audit.score_file.report import write_outputs
from readout_audit.score_file.scoring import Audit, audit
from readout_audit.score_file.summary import as_lines


def score(
    files: Annotated[
        list[Path], typer.Argument(help="Answer files of one model; several for several splits.")
    ],
    questions: Annotated[
        list[Path],
        typer.Option(
            metavar="PATH",
            help="Question file with labels, or a folder of them; repeat for several. A file of questions without "
            "labels (LLaVA's llava_pope_test.jsonl) is used to find the image of each id.",
        ),
    ],
    repope: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="RePOPE's files, to score against its labels too.")
    ] = None,
    output: Annotated[Path, typer.Option(metavar="FOLDER", help="Where the outputs go.")] = Path(
        "readout-audit-score"
    ),
    split: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Use the question files of this split only; repeatable."),
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Allow answers to a part of a split.")] = False,
    ids_of: Annotated[
        str | None,
        typer.Option(
            metavar="RELEASE", help="For files with nothing but ids: the release the ids belong to."
        ),
    ] = None,
    known: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="List of known releases; default: config/datasets.yaml."),
    ] = None,
) -> None:
    """Score answers made elsewhere under every rule in use.

    Recognises the format of the answers and the release they answer, pairs them by image and question, and
    scores them under every string readout against the release's labels and RePOPE's. Writes scores.csv,
    scores.json and report.html. Refuses, in one sentence, what it would have to guess. No GPU, no torch.
    """
    try:
        result = _score(files, questions, repope, split or [], partial, ids_of, known)
        written = write_outputs(result, output)
    except AuditError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error
    for line in as_lines(result):
        typer.echo(line)
    typer.echo("")
    for what, path in written.items():
        typer.echo(f"{what}: {path}")


def _score(
    files: list[Path],
    questions: list[Path],
    repope: Path | None,
    splits: list[str],
    partial: bool,
    ids_of: str | None,
    known: Path | None,
) -> Audit:
    """Read, pair and score."""
    releases = known_releases(known)
    asked = _of_splits(read_asked(questions, releases), splits)
    relabelled = read_asked([repope], releases).files if repope is not None else []
    answers = [read_answers(file) for file in files]
    pairs = [(one, pair(one, asked, partial=partial, ids_of=ids_of)) for one in answers]
    return audit(pairs, relabelled)


def _of_splits(asked: Asked, splits: list[str]) -> Asked:
    """Return the question files of the named splits; all where none is named."""
    if not splits:
        return asked
    chosen = [file for file in asked.files if file.split in splits]
    missing = sorted(set(splits) - {file.split for file in chosen})
    if missing:
        there = ", ".join(sorted({file.split for file in asked.files}))
        raise AuditError(f"--split {missing[0]}: the question files are of {there}.")
    return asked._replace(files=chosen)
