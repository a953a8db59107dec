"""Every row of scores that the paper prints: how many confusion matrices give it, and which."""

from collections.abc import Sequence

from readout_audit.claims.groups import PER_LABEL, fitting, grouped, subset_of
from readout_audit.claims.numbers import Number, read_numbers
from readout_audit.consistency.search import Consistency
from readout_audit.tables.base import Cell, Column, Table, text_column
from readout_audit.tables.inputs import RunTables

METRICS = ("f1", "precision", "recall", "yes_rate")
HEADINGS = ("F1", "P", "R", "yes-rate")
CELLS = ("tp", "fp", "tn", "fn")
NOT_PRINTED = "–"
NONE = "none"


def build(inputs: RunTables) -> Table:
    """Return one row per printed row of scores or of cells, in the order of the paper's tables."""
    if inputs.sources.claims is None:
        raise ValueError("this table needs the published numbers, and none were given")
    groups = grouped(read_numbers(inputs.sources.claims)).values()
    printed = sorted(
        (members for members in groups if members[0].kind in ("score", "correction")),
        key=lambda members: _place(members[0]),
    )
    rows = tuple(_row(members) for members in printed)
    fixed = sum(row[-3] == 1 for row in rows)
    return Table(
        number=None,
        name="table_printed_matrices",
        title="Every printed row of scores, and the confusion matrices that give it",
        columns=(
            text_column("printed in"),
            text_column("row"),
            Column("questions of each label"),
            *(Column(name, group="printed") for name in HEADINGS),
            Column("F1 alone", group="matrices that give"),
            Column("all of it", group="matrices that give"),
            text_column("(TP, FP)"),
            text_column("what cannot hold together"),
        ),
        rows=rows,
        n=f"{len(rows)} rows, {fixed} of which fix one matrix",
        notes=(
            "Integer matrices of the label counts named, each of which prints as every number of the row, whichever way "
            "halves were rounded. Nothing was run for this: it is arithmetic on printed numbers, of the paper and of its "
            "authors' results file.",
            "A row that prints its cells has one matrix if they add up to the questions of each label.",
        ),
    )


def _place(number: Number) -> tuple[bool, int]:
    """Return where a row is printed: tables by number, then figures."""
    kind, _, place = number.section.partition(" ")
    return kind != "Table", int(place)


def _row(members: Sequence[Number]) -> tuple[Cell, ...]:
    """Return one printed row with what fits it."""
    texts = {member.quantity.rpartition(":")[2]: member for member in members}
    shown = tuple(texts[name].printed if name in texts else NOT_PRINTED for name in METRICS)
    per_label = PER_LABEL[subset_of(members)]
    leading: tuple[Cell, ...] = (members[0].section, _name(members[0]), per_label, *shown)
    if all(name in texts for name in CELLS):
        tp, fp, tn, fn = (texts[name].as_count for name in CELLS)
        whole = tp + fn == per_label == fp + tn
        why = "–" if whole else "the cells do not add up to the questions of each label"
        return (*leading, NOT_PRINTED, int(whole), f"({tp}, {fp})", why)
    every = fitting(members)
    assert every is not None
    alone = fitting([texts["f1"]]) if "f1" in texts else None
    count: Cell = NOT_PRINTED if alone is None else alone.count
    return (*leading, count, every.count, _matrix(every), every.blame or "–")


def _matrix(found: Consistency) -> str:
    """Return the only matrix, or that there is none or are several."""
    if found.count == 1:
        return f"({found.matrices[0].tp}, {found.matrices[0].fp})"
    return "several" if found.fits else NONE


def _name(number: Number) -> str:
    """Return what a row is about: its claim without the metric, which stands first."""
    return number.claim.partition(", ")[2]
