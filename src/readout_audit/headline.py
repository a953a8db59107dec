"""The few lines that a run ends with: where its results are, what its page says first, and where the page is."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from readout_audit.errors import AuditError

WIDTH = 110
"""Columns of a line."""


def headline_lines(runs: Sequence[str], root: Path) -> list[str]:
    """Return the lines of finished runs.

    What was found is read from the text that the page's own stage wrote (`report.summary.headline_lines`), so that
    terminal and page cannot differ.

    Args:
        runs: names of finished runs.
        root: folder that holds results/, figures/ and paper_tables/.

    Raises:
        AuditError: a run has no such text.
    """
    return [line for run in runs for line in _run_lines(run, root)]


def _run_lines(run: str, root: Path) -> list[str]:
    """Return the lines of one run."""
    folder = root / "results" / run
    try:
        said = (folder / "headline.txt").read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise AuditError(
            f"{folder / 'headline.txt'}: run {run!r} has no headline yet; make it, and the page with it, with "
            "snakemake page and the run's --configfile."
        ) from error
    where = f"{run}: tables in {root / 'paper_tables' / run}/, figures in {root / 'figures' / run}/"
    lines = [part for line in said for part in _wrapped(line)]
    return [where, *lines, f"  the page about it: {folder / 'report.html'}"]


def _wrapped(line: str) -> list[str]:
    """Return a line in pieces of `WIDTH` columns at most; words and names stay whole."""
    return textwrap.wrap(
        line,
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
