"""What a correction could gain: its best strength in hindsight, and one chosen on other images."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from readout_audit.corrections.registry import correction
from readout_audit.corrections.schema import CROSS_FITTED, FIXED, HINDSIGHT, OK
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.measured import LEADING, blocks, ends
from readout_audit.tables.table_08_corrections import delta_f1, matrix_of, strength_text


def build(inputs: RunTables) -> Table:
    """Return both choices of every correction whose strength can be chosen, on every split."""
    rows: list[tuple[Cell, ...]] = []
    sizes: list[int] = []
    one_strength: dict[str, None] = {}
    for block in blocks(inputs, "corrections"):
        chosen = {(row["method"], row["choice"]): row for row in block.rows}
        for method in dict.fromkeys(row["method"] for row in block.rows):
            about = correction(method)
            if not about.swept:
                continue
            hindsight, fitted = (chosen.get((method, choice)) for choice in (HINDSIGHT, CROSS_FITTED))
            sizes += [int(hindsight["n"])] if hindsight is not None else []
            if hindsight is None and (method, FIXED) in chosen and chosen[method, FIXED]["status"] == OK:
                one_strength[about.title] = None
            cells = (*_hindsight(hindsight), *_fitted(fitted))
            rows.append((*block.leading, about.title, about.family, *cells))
    return Table(
        number=None,
        name="table_best_beta",
        title="The best strength of each correction, in hindsight and by cross-fitting over images",
        columns=(
            *LEADING,
            text_column("correction"),
            text_column("as in"),
            Column("β", group="best in hindsight"),
            *_columns("best in hindsight"),
            Column("β by fold", group="cross-fitted"),
            *_columns("cross-fitted"),
        ),
        rows=tuple(rows),
        n=n_text(sizes, "questions per split"),
        notes=(
            "Best in hindsight: of the 61 strengths from 0 to 3, the one with the largest F1 on these very "
            "questions, chosen again in every resample. Strength 0 is among them, so the gain is never negative, "
            "and its interval does not show that a correction helps.",
            "Cross-fitted: each fold of images gets the strength that is best on the other folds.",
            "Intervals: of ΔF1, images resampled, at 95% and at 1 − 0.05 / the number of corrections.",
            *_without_choice(rows, list(one_strength)),
        ),
    )


def _without_choice(rows: Sequence[tuple[Cell, ...]], one_strength: Sequence[str]) -> Iterator[str]:
    """Say where there was nothing to choose from."""
    if not rows:
        yield "No row: no correction whose strength can be chosen was applied in this run."
    if one_strength:
        yield (
            f"{'; '.join(one_strength)}: the source holds answers at given strengths and no logits to apply others to, so "
            "no strength could be chosen."
        )


def _columns(group: str) -> tuple[Column, ...]:
    """Return the columns of one choice."""
    return (
        Column("F1", decimals=4, group=group),
        Column("ΔF1", decimals=4, group=group),
        Column("95%", decimals=4, group=group),
        Column("all together", decimals=4, group=group),
    )


def _scores(row: Mapping[Any, Any]) -> tuple[Cell, ...]:
    """Return F1, gain and both intervals."""
    corrected = ends(row, "delta_f1", "low_corrected", "high_corrected")
    return (matrix_of(row).f1, delta_f1(row), ends(row, "delta_f1"), corrected)


def _hindsight(row: Mapping[Any, Any] | None) -> tuple[Cell, ...]:
    """Return the cells of the best strength."""
    if row is None or row["status"] != OK:
        return (NOT_AVAILABLE,) * 5
    return (strength_text(row["strength"]), *_scores(row))


def _fitted(row: Mapping[Any, Any] | None) -> tuple[Cell, ...]:
    """Return the cells of the cross-fitted strengths: the smallest and the largest of the folds."""
    if row is None or row["status"] != OK:
        return (NOT_AVAILABLE,) * 5
    low, high = min(row["fold_strengths"]), max(row["fold_strengths"])
    span = strength_text(low) if low == high else f"{strength_text(low)} to {strength_text(high)}"
    return (span, *_scores(row))
