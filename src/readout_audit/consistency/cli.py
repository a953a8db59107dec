"""The command `readout-audit check-numbers`."""

from pathlib import Path
from typing import Annotated

import typer

from readout_audit.consistency.metrics import METRICS
from readout_audit.consistency.search import Consistency, fitting_matrices
from readout_audit.consistency.table import (
    Reading,
    Row,
    Rows,
    describe,
    make_row,
    read_rows,
    write_results,
)
from readout_audit.errors import AuditError
from readout_audit.exact import ROUNDINGS, Rounding

# Numbers arrive as text: decimals are part of what is printed, and a bad one is answered in one sentence.
Score = Annotated[str | None, typer.Option(metavar="X", help="As printed, trailing zeros included.")]
MOST_DECIMALS = 15


def check_numbers(
    positives: Annotated[str | None, typer.Option(metavar="N", help="Questions with label yes.")] = None,
    negatives: Annotated[str | None, typer.Option(metavar="N", help="Questions with label no.")] = None,
    precision: Score = None,
    recall: Score = None,
    f1: Score = None,
    accuracy: Score = None,
    yes_rate: Score = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help=f"Rows: name columns, positives, negatives, {', '.join(METRICS)}."),
    ] = None,
    percent: Annotated[bool, typer.Option("--percent", help="Scores are in percent.")] = False,
    decimals: Annotated[
        str | None,
        typer.Option(metavar="D", help="Decimals as printed, where the file dropped trailing zeros."),
    ] = None,
    rounding: Annotated[str, typer.Option(help="Halves: either, half-up or half-even.")] = "either",
    limit: Annotated[str, typer.Option(metavar="N", help="Matrices to list for a row.")] = "10",
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the result as .csv or .json.")
    ] = None,
) -> None:
    """Can these printed scores come from one confusion matrix?

    Finds every integer confusion matrix that prints as given, or proves that
    there is none and says which values cannot hold together. Exit status: 0 all
    rows have a matrix, 1 some row has none, 2 bad usage.
    """
    scores = dict(zip(METRICS, (precision, recall, f1, accuracy, yes_rate), strict=True))
    given = {name: text for name, text in scores.items() if text is not None}
    try:
        reading = Reading(percent, _decimals(decimals), positives, negatives)
        rows = _rows(csv, given, reading)
        results = _check_rows(rows, _rounding(rounding), _limit(limit))
        if output is not None:
            write_results(output, rows, results)
    except AuditError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    for line in describe(rows, results):
        typer.echo(line)
    raise typer.Exit(0 if all(result.fits for result in results) else 1)


def _rows(path: Path | None, given: dict[str, str], reading: Reading) -> Rows:
    """Return the rows of the file, or the one row of the options."""
    if path is None:
        return Rows((), (make_row((), given, "", reading),))
    if given:
        raise AuditError(
            f"--csv and --{next(iter(given)).replace('_', '-')} were both given; give one or the other."
        )
    return read_rows(path, reading)


def _check_rows(rows: Rows, rounding: Rounding, limit: int) -> list[Consistency]:
    """Check each row; an error names the row."""

    def check(number: int, row: Row) -> Consistency:
        try:
            return fitting_matrices(row.positives, row.negatives, row.printed, rounding=rounding, limit=limit)
        except AuditError as error:
            raise AuditError(f"row {number}: {error}") from error

    return [check(number, row) for number, row in enumerate(rows.rows, start=1)]


def _rounding(text: str) -> Rounding:
    """Read the name of a rounding."""
    for rounding in ROUNDINGS:
        if rounding == text.replace("-", "_"):
            return rounding
    known = ", ".join(ROUNDINGS).replace("_", "-")
    raise AuditError(f"--rounding: {text!r} is not known; use one of {known}.")


def _limit(text: str) -> int:
    """Read how many matrices are listed."""
    if not text.isascii() or not text.isdigit():
        raise AuditError(f"--limit: {text!r} is not a whole number from 0 on.")
    return int(text)


def _decimals(text: str | None) -> int | None:
    """Read a number of decimals."""
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) > MOST_DECIMALS:
        raise AuditError(f"--decimals: {text!r} is not a number from 0 to {MOST_DECIMALS}.")
    return int(text)
