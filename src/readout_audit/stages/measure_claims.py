"""Stage: the published numbers of Table 8 and of the probe, as this run's corrections and probe give them.

Written in the form that `build_claims` takes as `measured`.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from readout_audit.claims.evidence import LABELS, PRECISION, RELEASE, TEMPLATE
from readout_audit.claims.groups import grouped
from readout_audit.claims.numbers import Number, read_numbers, select
from readout_audit.contracts import CELL
from readout_audit.corrections.published import (
    FORMS,
    NOT_IDENTIFIABLE,
    best_verdict,
    judge,
    metric,
    metric_name,
    row_name,
)
from readout_audit.corrections.schema import CORRECTIONS, FIXED, OK
from readout_audit.fileio import read_table, table_metadata, write_json
from readout_audit.probe.claimed import claimed
from readout_audit.probe.schema import COMPARISONS, GROUPS, PROBE
from readout_audit.scores.confusion import Confusion
from readout_audit.sources.predictions import read_dryrun

LOGGER = logging.getLogger(__name__)

READOUT = "legacy_8tok"
"""What the paper corrects and probes."""

Row = dict[str, Any]
Entry = dict[str, str | None]


def run(
    numbers: Path,
    output: Path,
    corrections: Sequence[Path] = (),
    probe: Sequence[Path] = (),
    groups: Sequence[Path] = (),
    comparisons: Sequence[Path] = (),
    dryruns: Mapping[str, Path] | None = None,
) -> None:
    """Write id of a published number -> value, source, note and, where the source leaves it open, status.

    A number that no file of the run is about has no entry.

    Args:
        numbers: the published numbers.
        output: JSON file.
        corrections: files of the run in the form of `corrections.schema.CORRECTIONS`.
        probe: in the form of `probe.schema.PROBE`.
        groups: in the form of `probe.schema.GROUPS`.
        comparisons: in the form of `probe.schema.COMPARISONS`.
        dryruns: model -> what its tokenizer makes of the forms of yes and no, as the authors published it.

    Raises:
        AuditError: a file cannot be read.
    """
    known = read_numbers(numbers)
    found = _corrections(select(known, kind="correction"), _best_cell(_tables(corrections, CORRECTIONS)))
    found |= _probe(select(known, kind="probe"), probe, groups, comparisons)
    for model, path in (dryruns or {}).items():
        found |= _encodings(known, model, path)
    write_json(output, found)
    LOGGER.info("%d published numbers of corrections and probe measured", len(found))


def _encodings(numbers: Sequence[Number], model: str, path: Path) -> dict[str, Entry]:
    """Return entries of the ids that a published tokenizer dry run gives (Table 10, Listing 1)."""
    ids = read_dryrun(path)
    found: dict[str, Entry] = {}
    for number in select(numbers, model=model):
        key = {
            "encode": number.quantity.partition(":")[2],
            "single_ids": f"single:{number.quantity}",
        }.get(number.kind)
        if key in ids:
            value = ", ".join(map(str, ids[key]))
            found[number.id] = {"value": value, "source": f"published: {path.name}", "note": ""}
    return found


def _tables(paths: Iterable[Path], schema: Any) -> list[list[Row]]:
    """Return the rows of each file; where rows have no cell of their own, that of the file's metadata."""
    found = []
    for path in paths:
        table = read_table(path, schema, "the file")
        cell = table_metadata(table).get("cell", {})
        found.append([cell | row for row in table.to_pylist()])
    return found


def _best_cell(tables: Sequence[list[Row]]) -> list[Row]:
    """Return the rows about the paper's release, template, labels and readout; at its precision if that is there."""
    fitting = [
        row
        for rows in tables
        for row in rows
        if (row["dataset"], row["template"], row["labels"], row["readout"])
        == (RELEASE, TEMPLATE, LABELS, READOUT)
    ]
    cells = sorted(
        {tuple(row[name] for name in CELL.names) for row in fitting},
        key=lambda cell: (cell[CELL.names.index("precision")] != PRECISION, cell),
    )
    # The first cell of each model.
    chosen = {cell[CELL.names.index("model")]: cell for cell in reversed(cells)}
    return [row for row in fitting if tuple(row[name] for name in CELL.names) == chosen[row["model"]]]


def _source(row: Mapping[str, Any]) -> str:
    """Name the cell a value is from."""
    return f"{row['source']}: {row['dataset']}/{row['model']}/{row['precision']}/{row['template']}"


def _corrections(numbers: Sequence[Number], rows: Sequence[Row]) -> dict[str, Entry]:
    """Return entries of the published rows of Table 8 that some form was run of."""
    run_of = {
        (row["model"], row["split"], row["method"], row["strength"]): row
        for row in rows
        if row["choice"] == FIXED and row["status"] == OK
    }
    found: dict[str, Entry] = {}
    for members in grouped(numbers).values():
        first = members[0]
        made = {
            method: run_of[first.model, first.split, method, strength]
            for method, strength in FORMS.get(row_name(first), ())
            if (first.model, first.split, method, strength) in run_of
        }
        if not made:
            continue
        best = best_verdict([judge(method, _matrix(row), members) for method, row in made.items()])
        for number in members:
            value = metric(best.matrix, metric_name(number))
            entry: Entry = {
                "value": None if value is None else str(value),
                "source": _source(made[best.method]),
                "note": f"{best.method}.",
            }
            if best.word == NOT_IDENTIFIABLE:
                entry["status"] = NOT_IDENTIFIABLE
                entry["note"] = (
                    f"the paper leaves the map or β open; {best.method} here gives {_rounded(value)}."
                )
            found[number.id] = entry
    return found


def _rounded(value: Any) -> str:
    """Return a metric with four decimals, or that it is undefined."""
    return "0/0" if value is None else f"{float(value):.4f}"


def _matrix(row: Mapping[str, Any]) -> Confusion:
    """Return the matrix of a row."""
    return Confusion(row["tp"], row["fp"], row["tn"], row["fn"])


def _probe(
    numbers: Sequence[Number],
    probe: Sequence[Path],
    groups: Sequence[Path],
    comparisons: Sequence[Path],
) -> dict[str, Entry]:
    """Return entries of the published numbers of the probe."""
    tables = [
        _best_cell(_tables(paths, schema))
        for paths, schema in ((probe, PROBE), (groups, GROUPS), (comparisons, COMPARISONS))
    ]
    found: dict[str, Entry] = {}
    for model, split in dict.fromkeys((number.model, number.split) for number in numbers):
        answers, means, tests = (
            [row for row in rows if (row["model"], row["split"]) == (model, split)] for rows in tables
        )
        if not answers:
            continue
        values = claimed(answers, means, tests)
        for number in numbers:
            if (number.model, number.split) == (model, split) and number.quantity in values:
                value = values[number.quantity]
                found[number.id] = {"value": value, "source": _source(answers[0]), "note": ""}
    return found
