"""The excluded logits, measured: what the ids that were read but never emitted held."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.measured import LEADING, blocks, ends, known, number
from readout_audit.tables.table_09_group_means import group_title


def build(inputs: RunTables) -> Table:
    """Return mean, rank and probability of the excluded pair, and what its sign predicts, by outcome."""
    rows: list[tuple[Cell, ...]] = []
    sizes: list[int] = []
    excluded: set[str] = set()
    for block in blocks(inputs, "probe_excluded"):
        found = {(row["outcome"], row["side"]): row for row in block.rows}
        excluded |= {str(row["excluded"]) for row in block.rows}
        sizes.append(int(found["all", "pair"]["n"]))
        for outcome in dict.fromkeys(row["outcome"] for row in block.rows):
            rows.append((*block.leading, *_row(outcome, found)))
    return Table(
        number=None,
        name="table_excluded_logits",
        title=f"The logits of the excluded pair ({', '.join(sorted(excluded)) or 'none'}) by outcome",
        columns=(
            *LEADING,
            text_column("outcome"),
            Column("n"),
            *_side("excluded yes"),
            *_side("excluded no"),
            Column("mean", decimals=3, group="yes − no"),
            Column("correlation with the gap", decimals=3, group="yes − no"),
            Column("95%", decimals=3, group="yes − no"),
            Column("sign is the label", decimals=3, group="yes − no"),
            Column("sign is the answer", decimals=3, group="yes − no"),
            Column("AUC for the label", decimals=3, group="yes − no"),
        ),
        rows=tuple(rows),
        n=n_text(sizes, "answers per split"),
        notes=(
            "Outcomes are those of the emitted-token readout in the main records. rank: 1 is the largest logit "
            "of the vocabulary. probability: share of the full softmax.",
            "sign: yes where the excluded yes logit is above the excluded no logit. Correlation: Pearson's, with "
            "the gap of the readout; interval over images. AUC: of all answers; one outcome has one label.",
        ),
    )


def _side(group: str) -> tuple[Column, ...]:
    """Return the columns of one side of the pair."""
    return (
        Column("mean", decimals=3, group=group),
        Column("SD", decimals=3, group=group),
        Column("median rank", decimals=1, group=group),
        Column("mean probability", group=group),
    )


def _row(outcome: str, found: Mapping[tuple[str, str], Mapping[Any, Any]]) -> tuple[Cell, ...]:
    """Return the cells of one outcome."""
    pair = found[outcome, "pair"]
    n = int(pair["n"])
    cells: list[Cell] = [group_title(outcome), n]
    for side in ("yes", "no"):
        row = found[outcome, side]
        cells += [known(row["mean"]), known(row["sd"]), known(row["rank_median"]), probability(row)]
    hits = [Fraction(int(pair[name]), n) if n else None for name in ("label_hits", "answer_hits")]
    cells += [
        known(pair["mean"]),
        known(pair["pearson"]),
        ends(pair, "pearson"),
        *hits,
        known(pair["label_auc"]) if outcome == "all" else number(pair["label_auc"]),
    ]
    return tuple(cells)


def probability(row: Mapping[Any, Any]) -> Cell:
    """Return a mean probability with three significant digits."""
    value = number(row["probability_mean"])
    return NOT_AVAILABLE if value is None else f"{float(value):#.3g}"
