"""The comparisons of Appendix F.3: tests, effect sizes, intervals over images, effects at equal logit gap."""

from collections.abc import Mapping
from typing import Any

from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.measured import LEADING, blocks, count, ends, known, p_value
from readout_audit.tables.table_09_group_means import group_title, signal_title


def build(inputs: RunTables) -> Table:
    """Return every comparison on every split."""
    rows: list[tuple[Cell, ...]] = []
    sizes: list[int] = []
    for block in blocks(inputs, "probe_comparisons"):
        for row in block.rows:
            pair = f"{group_title(row['group_a'])}, {group_title(row['group_b'])}"
            title = signal_title(row["signal"], inputs.window(block.cell))
            rows.append((*block.leading, title, pair, *_cells(row)))
            if row["group_a"] == "correct" and row["status"] == "ok":
                sizes.append(int(row["n_a"] + row["n_b"]))
    return Table(
        number=None,
        name="table_probe_comparisons",
        title="Comparisons between groups of answers (Appendix F.3)",
        columns=(
            *LEADING,
            text_column("signal"),
            text_column("groups"),
            Column("n", group="first"),
            Column("mean", decimals=4, group="first"),
            Column("n", group="second"),
            Column("mean", decimals=4, group="second"),
            Column("difference", decimals=4),
            Column("questions", decimals=4, group="95% of the difference"),
            Column("images", decimals=4, group="95% of the difference"),
            Column("U"),
            Column("p"),
            Column("p corrected"),
            Column("d", decimals=2),
            Column("95% of d", decimals=2),
            Column("difference", decimals=4, group="at equal |gap|"),
            Column("95%", decimals=4, group="at equal |gap|"),
            Column("d", decimals=2, group="at equal |gap|"),
        ),
        rows=tuple(rows),
        n=n_text(sizes, "answers per split"),
        notes=(
            "U, p: two-sided Mann-Whitney. p corrected: Bonferroni over the family, the seven tests the paper "
            "prints (it corrects for six) and, apart, those over the image's own positions. Both take questions "
            "for independent, as the paper does.",
            "d: Cohen's, pooled SD, its interval over images. questions: the authors' bootstrap of questions.",
            "at equal |gap|: within strata of the logit gap, weighted by the smaller group; d by the same SD.",
        ),
    )


def _cells(row: Mapping[Any, Any]) -> tuple[Cell, ...]:
    """Return the cells of one comparison."""
    sizes = (count(row["n_a"]), count(row["n_b"]))
    if row["status"] != "ok":
        return (sizes[0], NOT_AVAILABLE, sizes[1], *(NOT_AVAILABLE,) * 12)
    u = float(row["u"])
    matched: tuple[Cell, ...] = ("the gap itself",) * 3
    if row["signal"] != "gap":
        matched = (known(row["matched_difference"]), ends(row, "matched"), known(row["matched_d"]))
    return (
        sizes[0],
        known(row["mean_a"]),
        sizes[1],
        known(row["mean_b"]),
        known(row["difference"]),
        ends(row, "difference"),
        ends(row, "difference_image"),
        f"{u:.0f}" if u.is_integer() else f"{u:.1f}",
        p_value(row["p"]),
        p_value(row["p_corrected"]),
        known(row["d"]),
        ends(row, "d"),
        *matched,
    )
