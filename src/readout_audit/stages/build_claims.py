"""Stage: every published number beside what this run found, with a verdict each."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from readout_audit.claims.evidence import Evidence, Files
from readout_audit.claims.numbers import read_numbers
from readout_audit.claims.table import as_csv, build_claims, count_statuses
from readout_audit.fileio import write_text
from readout_audit.logs import stage_main

LOGGER = logging.getLogger(__name__)


def run(
    numbers: Path,
    output: Path,
    *,
    scores: Path | None = None,
    transitions: Sequence[Path] = (),
    gap: Sequence[Path] = (),
    decisions: Sequence[Path] = (),
    tokens: Sequence[Path] = (),
    measured: Sequence[Path] = (),
) -> None:
    """Write the claims table of one run.

    Args:
        numbers: the published numbers (resources/paper/numbers.csv).
        output: claims.csv, one row per published number.
        scores: scores of all cells.
        transitions: transitions, one file per cell.
        gap: gap quantities, one file per cell.
        decisions: decisions, one file per cell.
        tokens: token maps, one file per model.
        measured: JSON files of other stages: id of a published number -> {"value", "source", "note"}; a value
            is a number as text, a fraction "a/b", a text, or null where it is undefined; an entry with a
            "status" (`not_identifiable`) gets that verdict, whatever its value.

    Raises:
        AuditError: a file cannot be read, or names an unknown number.
    """
    files = Files(scores, tuple(transitions), tuple(gap), tuple(decisions), tuple(tokens), tuple(measured))
    claims = build_claims(Evidence(files, read_numbers(numbers)))
    write_text(output, as_csv(claims))
    counts = ", ".join(f"{count} {status}" for status, count in count_statuses(claims).items() if count)
    LOGGER.info("%d published numbers: %s", len(claims), counts)


def main(argv: Sequence[str] | None = None) -> int:
    """Build the claims table from the command line."""
    parser = argparse.ArgumentParser(prog="build_claims", description=__doc__)
    parser.add_argument("--numbers", type=Path, required=True, help="the published numbers (CSV)")
    parser.add_argument("--scores", type=Path, help="scores of all cells")
    for name in ("transitions", "gap", "decisions", "tokens", "measured"):
        parser.add_argument(f"--{name}", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--output", type=Path, required=True, help="the claims table (CSV)")
    arguments = vars(parser.parse_args(argv))
    run(arguments.pop("numbers"), arguments.pop("output"), **arguments)
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
