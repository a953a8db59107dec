"""Table 8: each correction against the readout it corrects (paper, Section 5 and Appendix F.1)."""

from collections.abc import Mapping
from typing import Any

from readout_audit.corrections.registry import correction
from readout_audit.corrections.schema import FIXED, OK
from readout_audit.scores.confusion import Confusion
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.measured import LEADING, Block, blocks, count, ends, number

BASELINE = "no correction"
NO_STRENGTH = "none"
REFERENCE = "reference"


def build(inputs: RunTables) -> Table:
    """Return the score of every correction at its given strengths, on every split."""
    rows: list[tuple[Cell, ...]] = []
    reasons: dict[str, str] = {}
    sizes: list[int] = []
    left_out = 0
    for block in blocks(inputs, "corrections"):
        fixed = [row for row in block.rows if row["choice"] == FIXED]
        rows += [(*block.leading, *_baseline(block))]
        for row in fixed:
            rows.append((*block.leading, *_row(row)))
            if row["status"] != OK:
                reasons.setdefault(correction(row["method"]).title, str(row["reason"]))
            else:
                sizes.append(int(row["n"]))
                left_out = max(left_out, int(row["n_without_signal"]))
    return Table(
        number=8,
        name="table_08_corrections",
        title="Corrections of the answer-position logits against the readout they correct",
        columns=(
            *LEADING,
            text_column("correction"),
            text_column("as in"),
            text_column("β"),
            Column("n"),
            Column("TP"),
            Column("FP"),
            Column("F1", decimals=4),
            Column("P", decimals=4),
            Column("R", decimals=4),
            Column("ΔF1", decimals=4),
            Column("95%", decimals=4, group="interval of ΔF1"),
            Column("all corrections together", decimals=4, group="interval of ΔF1"),
        ),
        rows=tuple(rows),
        n=n_text(sizes, "questions per split"),
        notes=_notes(reasons, left_out),
    )


def _notes(reasons: Mapping[str, str], left_out: int) -> tuple[str, ...]:
    """Say what the columns mean, and which corrections could not be applied."""
    notes = [
        "ΔF1: corrected minus uncorrected, on the same questions; images resampled. The second interval is at "
        "1 − 0.05 / the number of corrections (Bonferroni).",
        "F.1: the paper's Appendix F.1, which leaves maps and most β open; code: what the authors' code does "
        "instead. β of a contrast is its α. The manual of corrections has formula and source of each.",
    ]
    if left_out:
        notes.append(f"Up to {left_out:,} questions of a row lack the signal and are left out on both sides.")
    return (*notes, *(f"{title}: not available, {why}." for title, why in reasons.items()))


def _baseline(block: Block) -> tuple[Cell, ...]:
    """Return the row of the readout itself, on the most questions that a correction was applied to."""
    there = [row for row in block.rows if row["status"] == OK]
    if not there:
        return (BASELINE, NO_STRENGTH, NO_STRENGTH, *(NOT_AVAILABLE,) * 9)
    row = max(there, key=lambda one: int(one["n"]))
    matrix = baseline_matrix(row)
    rates = (matrix.f1, matrix.precision, matrix.recall)
    return (BASELINE, NO_STRENGTH, NO_STRENGTH, matrix.n, matrix.tp, matrix.fp, *rates, *(REFERENCE,) * 3)


def matrix_of(row: Mapping[Any, Any]) -> Confusion:
    """Return the matrix of a row of `corrections.schema.CORRECTIONS` or `SWEEPS`."""
    return Confusion(*(int(row[name]) for name in ("tp", "fp", "tn", "fn")))


def baseline_matrix(row: Mapping[Any, Any]) -> Confusion:
    """Return the matrix without correction, on the questions of the row."""
    corrected = matrix_of(row)
    tp, fp = int(row["baseline_tp"]), int(row["baseline_fp"])
    positives, negatives = corrected.tp + corrected.fn, corrected.fp + corrected.tn
    return Confusion(tp, fp, negatives - fp, positives - tp)


def delta_f1(row: Mapping[Any, Any]) -> Cell:
    """Return F1 after correction minus F1 without, exactly; None where one of them is 0/0."""
    after, before = matrix_of(row).f1, baseline_matrix(row).f1
    return None if after is None or before is None else after - before


def strength_text(value: Any) -> str:
    """Return a strength as it is written: "1.0", or that there is none to set."""
    exact = number(value)
    return NO_STRENGTH if exact is None else f"{float(exact):.2f}".removesuffix("0")


def _row(row: Mapping[Any, Any]) -> tuple[Cell, ...]:
    """Return the cells of one correction."""
    about = correction(row["method"])
    strength = strength_text(row["strength"])
    if row["status"] != OK:
        return (about.title, about.family, strength, *(NOT_AVAILABLE,) * 9)
    matrix = matrix_of(row)
    return (
        about.title,
        about.family,
        strength,
        count(row["n"]),
        matrix.tp,
        matrix.fp,
        matrix.f1,
        matrix.precision,
        matrix.recall,
        delta_f1(row),
        ends(row, "delta_f1"),
        ends(row, "delta_f1", "low_corrected", "high_corrected"),
    )
