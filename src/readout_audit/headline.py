"""The few lines that a run ends with: what was measured, on how many questions, and what the gap is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from readout_audit.contracts import CELL, SCORES
from readout_audit.errors import AuditError
from readout_audit.exact import printed
from readout_audit.fileio import read_table
from readout_audit.scores.confusion import Confusion

PAIR = ("legacy_8tok", "legacy_2tok")
WORDS = {"legacy_8tok": "eight-token", "legacy_2tok": "two-token"}
SPLITS = ("random", "popular", "adversarial")


def headline_lines(runs: Sequence[str], root: Path) -> list[str]:
    """Return the headline of each run and where its results are.

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
    lines = [f"{run}: tables in {root / 'paper_tables' / run}/, figures in {root / 'figures' / run}/"]
    cells = dict.fromkeys(tuple(row[name] for name in CELL.names) for row in rows)
    for cell in cells:
        chosen = [row for row in rows if tuple(row[name] for name in CELL.names) == cell]
        lines += _cell_lines(cell, chosen)
    return lines


def _cell_lines(cell: tuple[Any, ...], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line per split: F1 and yes-rate under both readouts, and the gap between them."""
    counts = {
        (row["split"], row["readout"]): Confusion(*(row[name] for name in Confusion._fields))
        for row in rows
        if row["labels"] == "pope" and row["subset"] == "all" and row["n"] is not None
    }
    lines = []
    for split in SPLITS:
        pair = [counts.get((split, readout)) for readout in PAIR]
        if None in pair:
            continue
        eight, two = (confusion for confusion in pair if confusion is not None)
        gap = None if eight.f1 is None or two.f1 is None else eight.f1 - two.f1
        lines.append(
            f"  {cell[1]}, {split}, {eight.n} questions: F1 {printed(eight.f1, 4)} {WORDS[PAIR[0]]}, "
            f"{printed(two.f1, 4)} {WORDS[PAIR[1]]} (yes-rate {printed(eight.yes_rate, 3)} and "
            f"{printed(two.yes_rate, 3)}): the readout alone moves F1 by {printed(gap, 4)}"
        )
    return lines
