"""A comparison as text for the terminal, as CSV and as JSON."""

import csv
import io
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from readout_audit.compare.answers import ABSENT
from readout_audit.compare.comparison import CellComparison, Comparison, SplitRows
from readout_audit.compare.flips import Flip, Flips, Sides, changed
from readout_audit.compare.pairing import GROUPS, SAME
from readout_audit.exact import printed
from readout_audit.fileio import write_json, write_text
from readout_audit.report.text import listed, of, plural, points, visible
from readout_audit.scores.confusion import Confusion

RATES = ("f1", "precision", "recall", "yes_rate")
DECIMALS = 4
MOST_DIFFERENCES = 20
MOST_NAMES = 3
LONGEST = 60


def write_outputs(comparison: Comparison, folder: Path) -> dict[str, Path]:
    """Write flips.csv, scores.csv and compare.json; return their paths by what they hold."""
    paths = {"flips": folder / "flips.csv", "scores": folder / "scores.csv", "JSON": folder / "compare.json"}
    write_text(paths["flips"], flips_csv(comparison))
    write_text(paths["scores"], scores_csv(comparison))
    write_json(paths["JSON"], as_json(comparison))
    return paths


# Text


def as_lines(comparison: Comparison) -> list[str]:
    """Return the comparison in a few lines per cell."""
    lines = [f"A = {visible(comparison.run_a)}, B = {visible(comparison.run_b)}"]
    for cell in comparison.cells:
        lines += ["", *_cell_lines(cell)]
    for name, cells in (("A", comparison.only_a), ("B", comparison.only_b)):
        if cells:
            lines += ["", f"Only {name} has {visible(', '.join(cells))}."]
    return lines


def _cell_lines(cell: CellComparison) -> list[str]:
    """Return the lines of one pair of cells."""
    title = cell.cell_a if cell.cell_a == cell.cell_b else f"{cell.cell_a} (A), {cell.cell_b} (B)"
    return [
        visible(title),
        *(f"  {line}" for line in _difference_lines(cell)),
        *(f"  {_row_line(rows)}" for rows in cell.rows),
        *(
            [f"  compared only where both have them; one run alone has {visible(names)}"]
            if (names := _alone(cell))
            else []
        ),
        *(f"  {line}" for line in _flip_lines(cell)),
    ]


def _alone(cell: CellComparison) -> str:
    """Return the splits and readouts of one run alone."""
    return listed(
        [*(f"split {name}" for name in cell.only_splits), *(f"readout {name}" for name in cell.only_readouts)]
    )


def _difference_lines(cell: CellComparison) -> list[str]:
    """Say what was set or recorded differently."""
    if not cell.differs:
        return ["nothing that is recorded differs"]
    both = [(name, a, b) for name, a, b in cell.differs if ABSENT not in (a, b)]
    lines = [f"{visible(name)}: {_short(a)} | {_short(b)}" for name, a, b in both[:MOST_DIFFERENCES]]
    more = len(both) - len(lines)
    lines += [f"and {plural(more, 'more difference')} (all in compare.json)"] if more > 0 else []
    for run, place in (("A", 2), ("B", 1)):
        alone = [item[0] for item in cell.differs if item[place] == ABSENT]
        names = ", ".join(alone[:MOST_NAMES]) + (", …" if len(alone) > MOST_NAMES else "")
        lines += [f"recorded in {run} alone: {len(alone):,} ({visible(names)})"] if alone else []
    return ["differs (A | B):", *(f"  {line}" for line in lines)]


def _short(text: str) -> str:
    """Return a value on one line, cut where it is long."""
    shown = visible(text)
    return shown if len(shown) <= LONGEST else f"{shown[:LONGEST]}…"


def _row_line(rows: SplitRows) -> str:
    """Say how the rows of a split found each other."""
    parts = [f"{plural(rows.same, 'question')} asked alike"]
    parts += [f"{rows.other_prompt:,} with another prompt"] if rows.other_prompt else []
    parts += [f"{rows.reworded:,} in other words"] if rows.reworded else []
    parts += [f"{rows.only_a:,} only in A"] if rows.only_a else []
    parts += [f"{rows.only_b:,} only in B"] if rows.only_b else []
    parts += [f"{rows.labels_differ:,} labelled differently"] if rows.labels_differ else []
    return f"{visible(rows.split)}: {', '.join(parts)}"


def _flip_lines(cell: CellComparison) -> Iterable[str]:
    """Yield one line per readout, split and group: flips, near-ties, and F1 in both."""
    sides = {(one.split, one.readout): one for one in cell.sides}
    for flips in cell.flips:
        where = f"{visible(flips.split)}, {visible(flips.readout)}"
        group = "" if flips.group == SAME else f" ({GROUPS[flips.group]})"
        ways = f"yes→no {flips.yes_to_no:,}, no→yes {flips.no_to_yes:,}"
        yield f"{where}{group}: {of(flips.differing, flips.shared)} answered differently; {ways}{_near_words(flips)}"
        if flips.group == SAME:
            yield f"  {_score_words(sides[flips.split, flips.readout])}"


def _near_words(flips: Flips) -> str:
    """Say how many flips are near-ties and how far margins moved; nothing without margins."""
    if flips.largest_shift is None:
        return "; no margins to compare"
    near = (
        ""
        if flips.near is None
        else f"; {flips.near:,} of them near-ties (both margins within {flips.limit:g})"
    )
    return (
        f"{near}; margins moved by {flips.median_shift:.4g} (median) to {flips.largest_shift:.4g} (largest)"
    )


def _score_words(sides: Sides) -> str:
    """Give F1 in both runs, on all rows and, where those are others, on the shared ones."""
    words = f"F1 {_change(sides.all_a, sides.all_b)}"
    if (sides.all_a.n, sides.all_b.n) != (sides.shared_a.n, sides.shared_b.n):
        words += f"; on the questions asked alike {_change(sides.shared_a, sides.shared_b)}"
    return words


def _change(before: Confusion, after: Confusion) -> str:
    """Return "0.8221 | 0.8219 (-0.02 points)"."""
    gap = changed(before.f1, after.f1)
    return f"{printed(before.f1, DECIMALS)} | {printed(after.f1, DECIMALS)} ({points(gap)} points)"


# CSV


def flips_csv(comparison: Comparison) -> str:
    """Return one line per question that is answered differently."""
    rows = (
        [cell.cell_a, cell.cell_b, *map(_csv_value, flip)]
        for cell in comparison.cells
        for flip in cell.listed
    )
    return _csv(["cell_a", "cell_b", *Flip._fields], rows)


def _csv_value(value: object) -> object:
    """Return a value as CSV has it: nothing is empty, a truth value is a word."""
    if value is None:
        return ""
    return ("no", "yes")[value] if isinstance(value, bool) else value


def scores_csv(comparison: Comparison) -> str:
    """Return the scores of both runs: one line per cell, split, readout and set of rows."""
    heading = ["cell_a", "cell_b", "split", "readout", "rows"]
    heading += [f"{name}_{run}" for name in (*Confusion._fields, *RATES) for run in "ab"]
    rows = (
        [cell.cell_a, cell.cell_b, sides.split, sides.readout, which, *_side_values(*matrices)]
        for cell in comparison.cells
        for sides in cell.sides
        for which, matrices in (("all", sides[2:4]), ("asked_alike", sides[4:6]))
    )
    return _csv(heading, rows)


def _side_values(before: Confusion, after: Confusion) -> list[str]:
    """Return counts and rates of both matrices, side by side; undefined is empty."""
    values = [str(count) for pair in zip(before, after, strict=True) for count in pair]
    for name in RATES:
        for matrix in (before, after):
            rate: Fraction | None = getattr(matrix, name)
            values.append("" if rate is None else printed(rate, 6))
    return values


def _csv(heading: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return CSV with LF line ends."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(heading)
    writer.writerows(rows)
    return stream.getvalue()


# JSON


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Return everything but the list of flips, which is the CSV's."""
    return {
        "schema": 1,
        "run_a": visible(comparison.run_a),
        "run_b": visible(comparison.run_b),
        "only_a": list(comparison.only_a),
        "only_b": list(comparison.only_b),
        "groups": GROUPS,
        "cells": [_cell_json(cell) for cell in comparison.cells],
    }


def _cell_json(cell: CellComparison) -> dict[str, Any]:
    """Return one pair of cells."""
    return {
        "cell_a": cell.cell_a,
        "cell_b": cell.cell_b,
        "differs": [{"name": name, "a": a, "b": b} for name, a, b in cell.differs],
        "questions": [rows._asdict() for rows in cell.rows],
        "flips": [flips._asdict() for flips in cell.flips],
        "scores": [
            {
                "split": sides.split,
                "readout": sides.readout,
                "all": {"a": _matrix_json(sides.all_a), "b": _matrix_json(sides.all_b)},
                "asked_alike": {"a": _matrix_json(sides.shared_a), "b": _matrix_json(sides.shared_b)},
            }
            for sides in cell.sides
        ],
        "splits_of_one_run": list(cell.only_splits),
        "readouts_of_one_run": list(cell.only_readouts),
    }


def _matrix_json(matrix: Confusion) -> dict[str, Any]:
    """Return counts and rates; undefined is null."""
    rates: dict[str, Fraction | None] = {name: getattr(matrix, name) for name in RATES}
    return matrix._asdict() | {name: None if rate is None else float(rate) for name, rate in rates.items()}
