"""The few lines that a run ends with: what was measured, on how many questions, and what the gap is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from readout_audit.contracts import CELL, SCORES
from readout_audit.errors import AuditError
from readout_audit.exact import printed
from readout_audit.fileio import read_table
from readout_audit.scores.blocks import AGGREGATES
from readout_audit.scores.confusion import Confusion

PAIR = ("legacy_8tok", "legacy_2tok")
SPLITS = ("random", "popular", "adversarial")
"""The splits that come first, in this order; any other follows as the scores have it."""


def headline_lines(runs: Sequence[str], root: Path) -> list[str]:
    """Return a run's lines: where its results are, its first model under both readouts, and its page if it is made.

    Args:
        runs: names of finished runs.
        root: folder that holds results/, figures/ and paper_tables/.

    Raises:
        AuditError: a run has no scores.
    """
    return [line for run in runs for line in _run_lines(run, root)]


def _run_lines(run: str, root: Path) -> list[str]:
    """Return the headline of one run."""
    path = root / "results" / run / "scores.parquet"
    if not path.is_file():
        raise AuditError(f"{path}: run {run!r} has no scores yet; make them with snakemake all.")
    rows = read_table(path, SCORES, "the score table").to_pylist()
    first = [row for row in rows if all(row[name] == rows[0][name] for name in CELL.names)]
    where = f"{run}: tables in {root / 'paper_tables' / run}/, figures in {root / 'figures' / run}/"
    page = root / "results" / run / "report.html"
    shown = [f"  the page about it: {page}"] if page.is_file() else []
    return [where, f"  {_sentence(rows[0]['model'], first)}", *shown]


def _sentence(model: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what one model scores under both readouts, split by split."""
    counts = {
        (row["split"], row["readout"]): Confusion(*(row[name] for name in Confusion._fields))
        for row in rows
        if row["labels"] == "pope" and row["subset"] == "all" and row["n"] is not None
    }
    named = dict.fromkeys([*SPLITS, *(split for split, _ in counts if split not in AGGREGATES)])
    splits = [split for split in named if all((split, readout) in counts for readout in PAIR)]
    if not splits:
        return f"{model}: {' and '.join(PAIR)} were not both read; see the tables."
    pairs = [(counts[split, PAIR[0]], counts[split, PAIR[1]]) for split in splits]
    eight, two = ([pair[side] for pair in pairs] for side in (0, 1))
    return (
        f"{model} on {', '.join(splits)} ({', '.join(str(each.n) for each in eight)} questions): "
        f"F1 {_listed(eight)} read over all eight yes and no tokens, {_listed(two)} over the two bare ones; "
        f"the readout alone moves F1 by {', '.join(_points(*pair) for pair in pairs)} points."
    )


def _listed(confusions: Sequence[Confusion]) -> str:
    """Return F1s as text."""
    return ", ".join(printed(each.f1, 4) for each in confusions)


def _points(eight: Confusion, two: Confusion) -> str:
    """Return the gap in F1 points."""
    return printed(None if eight.f1 is None or two.f1 is None else 100 * (eight.f1 - two.f1), 2)
