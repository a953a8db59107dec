"""Did the fast engine change an answer? What a sample, asked again one by one, says on the page."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from readout_audit.errors import AuditError
from readout_audit.fileio import read_json
from readout_audit.report.grid import Cell, Column, Grid, Mark, grid, numbers, texts
from readout_audit.report.inputs import CellKey, RunData, short_names
from readout_audit.report.text import listed, of, plural

PASSED, FAILED = Mark("agrees", "✓", "good"), Mark("differs", "✗", "bad")
REPORTED = Mark("reported", "≈", "near")
"""int8 depends on what else is in the batch: its differences are told and fail nothing."""

ENGINES = {
    "shared_prefix": "the engine that shares a picture's prefix between its questions",
    "sequential": "the sequential engine itself",
}


class Verified(NamedTuple):
    """What was asked again.

    Attributes:
        sentences: what was done and how it went.
        table: one row per cell.
        flips: every first token and decision that differs; None where there is none.
        unanswered: questions without a second answer; None where there is none.
    """

    sentences: tuple[str, ...]
    table: Grid
    flips: Grid | None
    unanswered: Grid | None


def verified(data: RunData) -> Verified | None:
    """Return what the checks of the run's engine found; None where the run made none.

    Raises:
        AuditError: a report cannot be read or is not of verify_engine.
    """
    reports = [_read(path) for path in data.files.verified]
    if not reports:
        return None
    names = short_names(data.cells)
    named = [(names.get(_cell(one)) or ", ".join(_cell(one)[:4]), one) for one in reports]
    flips = [row for name, one in named for row in _flip_rows(name, one)]
    broken = [[name, item["uid"], str(item["reason"])] for name, one in named for item in one["unanswered"]]
    return Verified(
        tuple(_sentences(reports)),
        _table(named),
        grid(_FLIP_COLUMNS, flips, "Every difference", (_MARGIN,)) if flips else None,
        grid((*texts("cell", "question"), Column("why there is no second answer", "long")), broken)
        if broken
        else None,
    )


def _read(path: Path) -> Mapping[str, Any]:
    """Return one report of verify_engine."""
    report: Mapping[str, Any] = read_json(path, "the report of verify_engine")
    missing = sorted(_KEYS - report.keys())
    if missing:
        raise AuditError(f"{path}: the report of verify_engine lacks {', '.join(missing)}; make it again.")
    return report


_KEYS = {
    *("dataset", "model", "precision", "template", "engine", "dtype", "compared", "same_first_token"),
    *("same_continuation", "largest_difference", "flips", "decision_flips", "unanswered", "passed"),
}


def _cell(report: Mapping[str, Any]) -> CellKey:
    """Return the cell that a report is about."""
    dataset, model, precision, template = (
        str(report[name]) for name in ("dataset", "model", "precision", "template")
    )
    return CellKey(dataset, model, precision, template, "inference")


def _sentences(reports: list[Mapping[str, Any]]) -> Iterable[str]:
    """Yield what was done, and the sum of what was found."""
    engines = listed([ENGINES.get(name, name) for name in dict.fromkeys(one["engine"] for one in reports)])
    asked = sum(one["compared"] for one in reports)
    yield (
        f"The answers of this run come from {engines}. A seeded sample of them, {plural(asked, 'question')} in all, "
        f"was asked again one question at a time, each by a plain forward pass over its whole prompt."
    )
    same = sum(one["same_first_token"] for one in reports)
    decisions = sum(len(one["decision_flips"]) for one in reports)
    failed = sum(not one["passed"] for one in reports)
    within = "Every difference is within what rounding explains."
    if any(one["precision"] == "int8" for one in reports):
        within = (
            "Differences under int8, whose answers depend on what stands beside a question in a batch, are reported "
            "and fail nothing; every other is within what rounding explains."
        )
    yield (
        f"{of(same, asked)} first tokens are the same, and {decisions or 'no'} "
        f"{'decision differs' if decisions == 1 else 'decisions differ'} under any readout compared. "
        + (
            f"{plural(failed, 'cell')} did not pass: do not rely on its answers; ask them with engine: sequential."
            if failed
            else within
        )
    )


def _table(named: list[tuple[str, Mapping[str, Any]]]) -> Grid:
    """Return one row per cell."""
    columns = (
        *texts("cell", "computed in"),
        *numbers("asked again", "same first token", "same continuation", "decisions that differ"),
        *numbers("largest difference of a logit"),
        *texts("verdict"),
    )
    rows: list[list[Cell]] = [
        [
            name,
            str(one["dtype"]),
            *(f"{one[key]:,}" for key in ("compared", "same_first_token", "same_continuation")),
            f"{len(one['decision_flips']):,}",
            f"{one['largest_difference']:.2g}",
            REPORTED if one["passed"] and one["precision"] == "int8" else PASSED if one["passed"] else FAILED,
        ]
        for name, one in named
    ]
    return grid(columns, rows)


_FLIP_COLUMNS = (
    *texts("cell", "picture"),
    Column("question", "long"),
    *texts("read by", "recorded", "one by one"),
    *numbers("margin", "in steps"),
)
_MARGIN = (
    "Margin: by how much the second asking prefers its own answer. A step is the distance between neighbouring "
    "numbers of the computing type at the size of the largest logit; up to 2 are rounding."
)


def _flip_rows(name: str, report: Mapping[str, Any]) -> list[list[str]]:
    """Return one row per first token, then per decision, that differs."""
    rows = []
    for entry in [*report["flips"], *report["decision_flips"]]:
        answers = (str(entry.get(f"{kind}_piece", entry[kind])) for kind in ("recorded", "sequential"))
        rows.append(
            [
                name,
                entry["image"],
                entry["question"],
                entry.get("readout", "first token"),
                *answers,
                f"{entry['margin']:.3g}",
                f"{entry['steps']:.1f}",
            ]
        )
    return rows
