"""Table 8 as published: which matrices its rows allow, and what this run's corrections make of each."""

from collections.abc import Sequence

from readout_audit import fileio
from readout_audit.claims.evidence import RELEASE, TEMPLATE
from readout_audit.claims.finding import agrees
from readout_audit.claims.groups import fitting, grouped
from readout_audit.claims.numbers import Number, read_numbers, select
from readout_audit.consistency.search import Consistency
from readout_audit.corrections.published import (
    DIFFERS,
    FORMS,
    METRICS,
    REPRODUCED,
    judge,
    metric,
    row_name,
)
from readout_audit.corrections.schema import CORRECTIONS, FIXED, OK
from readout_audit.exact import printed
from readout_audit.scores.confusion import Confusion
from readout_audit.tables.base import NOT_RUN, Cell, Column, Table, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.measured import blocks
from readout_audit.tables.table_08_corrections import matrix_of

INCONSISTENT = "inconsistent_in_paper"
BASELINE, NO_CORRECTION = "t8.baseline", "baseline"
"""The group of the published row without a correction, and its name."""


def build(inputs: RunTables) -> Table:
    """Return every published row with the matrices that print as it, this run's scores and a verdict."""
    numbers = _published(inputs)
    measured = _measured(inputs)
    rows: list[tuple[Cell, ...]] = [_baseline(inputs)]
    blame: list[str] = []
    for members in grouped(select(numbers, kind="correction")).values():
        name = row_name(members[0])
        verdict = fitting(members)
        if verdict is None:
            continue
        blame += [f"{name}: {verdict.blame}."] if not verdict.fits else []
        for method, strength in FORMS[name]:
            found = measured.get((members[0].model, members[0].split, members[0].readout, method, strength))
            rows.append(
                (
                    name,
                    *_printed(members),
                    matrices(verdict),
                    method,
                    *_ours(found, members, verdict.fits, method),
                )
            )
    return Table(
        number=8,
        name="table_08_published",
        title="The published rows against integer matrices and against this run",
        columns=(
            text_column("row"),
            *(Column(name, group="published") for name in ("F1", "P", "R")),
            text_column("matrices (TP, FP)"),
            text_column("run as"),
            *(Column(name, decimals=4, group="this run") for name in ("F1", "P", "R")),
            text_column("verdict"),
        ),
        rows=tuple(rows),
        n="1,500 questions of each label, adversarial",
        notes=(
            "matrices: integer matrices of 1,500 positives and 1,500 negatives that print as the row; where "
            "there is none, the row cannot come from one run of these questions.",
            *blame,
            *_further_files(inputs),
            "verdict: reproduced where this run prints the same, differs where the source leaves nothing open, "
            "not_identifiable where it does (Appendix F.1 gives no map to [0, 1] and no β for several).",
        ),
    )


def _published(inputs: RunTables) -> list[Number]:
    """Return the published numbers of Table 8."""
    if inputs.sources.claims is None:
        raise ValueError("this table needs the published numbers, and none were given")
    return select(read_numbers(inputs.sources.claims), section="Table 8")


def _baseline(inputs: RunTables) -> tuple[Cell, ...]:
    """Return the row without a correction: it needs the readout's own scores alone."""
    members = grouped(_published(inputs))[BASELINE]
    verdict = fitting(members)
    assert verdict is not None
    first = members[0]
    cells = (
        cell
        for cell, labels, split in (inputs.scored_splits() if inputs.sources.scores else ())
        if (cell.dataset, cell.model, cell.template) == (RELEASE, first.model, TEMPLATE)
        and (labels, split) == (inputs.options.labels[0], first.split)
    )
    cell = next(cells, None)
    found = (
        None if cell is None else inputs.confusion(cell, inputs.options.labels[0], first.split, first.readout)
    )
    leading = (NO_CORRECTION, *_printed(members), matrices(verdict), first.readout)
    if found is None:
        return (*leading, *(NOT_RUN,) * 4)
    same = all(agrees(metric(found, number.quantity), number) for number in members)
    return (*leading, *(metric(found, name) for name in METRICS), REPRODUCED if same else DIFFERS)


def _further_files(inputs: RunTables) -> list[str]:
    """Say what the authors' files hold that are no run of a row: a part of the questions, or no correction."""
    said = []
    for path in inputs.sources.corrections:
        described = fileio.table_metadata(fileio.read_table(path, CORRECTIONS, "the corrections file"))
        for name, about in described.get("published", {}).items():
            matrix = Confusion(*(about[cell] for cell in ("tp", "fp", "tn", "fn")))
            found = f"TP {matrix.tp:,}, FP {matrix.fp:,}, F1 {printed(matrix.f1, 4)}"
            if about["correction"] is None:
                said.append(
                    f"{name}: the uncorrected run once more, {found}; it answers "
                    f"{about['otherwise_than_main_run']:,} of {about['questions']:,} questions otherwise than the main run."
                )
            elif about["answered"] < about["questions"]:
                said.append(
                    f"{name}: published for {about['answered']:,} of {about['questions']:,} questions, {found}; too few "
                    "for its row."
                )
    return said


_Key = tuple[str, str, str, str, float]


def _measured(inputs: RunTables) -> dict[_Key, Confusion]:
    """Return this run's matrices by (model, split, readout, method, strength), the first cell of a model each."""
    found: dict[_Key, Confusion] = {}
    for block in blocks(inputs, "corrections"):
        if block.labels != inputs.options.labels[0]:
            continue
        for row in block.rows:
            if row["choice"] != FIXED or row["status"] != OK:
                continue
            about = (block.cell.model, block.split, block.readout)
            found.setdefault((*about, row["method"], float(row["strength"])), matrix_of(row))
    return found


def _printed(members: Sequence[Number]) -> tuple[str, ...]:
    """Return F1, precision and recall as printed."""
    texts = {number.quantity.rpartition(":")[2]: number.printed for number in members}
    return tuple(texts[name] for name in METRICS)


def matrices(verdict: Consistency) -> str:
    """Say which matrices print as a row: the only one, how many, or that there is none."""
    if not verdict.fits:
        return "none"
    only = verdict.matrices[0]
    return f"({only.tp}, {only.fp})" if verdict.count == 1 else f"{verdict.count}"


def _ours(found: Confusion | None, members: Sequence[Number], fits: bool, method: str) -> tuple[Cell, ...]:
    """Return this run's metrics and the verdict on one form of a row."""
    if found is None:
        return (*(NOT_RUN,) * 3, NOT_RUN if fits else INCONSISTENT)
    word = judge(method, found, members).word if fits else INCONSISTENT
    return (*(metric(found, name) for name in METRICS), word)
