"""Table 7: what becomes of each decision when the readout changes (paper, Section 3.4)."""

from collections import Counter

from readout_audit import contracts
from readout_audit.scores.confusion import ratio
from readout_audit.tables.base import Cell, Column, Table, n_text, text_column
from readout_audit.tables.common import IDENTITY, identity_cells
from readout_audit.tables.inputs import CellKey, RunTables

Pairs = Counter[tuple[str, str]]
"""Questions by (decision under `readout_from`, decision under `readout_to`)."""

BOTH = "both"
"""The row over label yes and label no together."""

_MOVES = tuple((before, after) for before in contracts.LABELS for after in contracts.LABELS)


def build(inputs: RunTables) -> Table:
    """Return the paired decisions by label with the rates of the gap algebra."""
    emitted, to = inputs.options.readout_from, inputs.options.readout_to
    rows: list[tuple[Cell, ...]] = []
    sizes: list[int] = []
    for (cell, labels, split), by_label in _pairs(inputs).items():
        both: Pairs = by_label["yes"] + by_label["no"]
        sizes.append(both.total())
        for label, pairs in (*by_label.items(), (BOTH, both)):
            rows.append((*identity_cells(cell, labels), emitted, to, split, label, *_cells(pairs)))
    return Table(
        number=7,
        name="table_07_transitions",
        title=f"Paired decisions by label: {emitted} → {to}",
        columns=(
            *IDENTITY,
            text_column("from", identity=True),
            text_column("to", identity=True),
            text_column("split"),
            text_column("label"),
            *(Column(f"{before}→{after}") for before, after in _MOVES),
            Column("other"),
            Column("n"),
            Column("no→yes rate", decimals=3),
            Column("yes→no rate", decimals=3),
            Column("agreement", decimals=3),
        ),
        rows=tuple(rows),
        n=n_text(sizes, "questions per split"),
        notes=(
            f"no→yes rate: of the questions that are no under {emitted}, the share that is yes under {to}; "
            "φ for label yes, ρ_N for label no, the pooled flip rate for both.",
            "agreement: share of the n questions that the two readouts decide alike. other: unparsed or "
            "invalid under at least one of them.",
        ),
    )


def _pairs(inputs: RunTables) -> dict[tuple[CellKey, str, str], dict[str, Pairs]]:
    """Return the counted pairs by (cell, labels, split), then label, in the order of the options."""
    options, frame = inputs.options, inputs.transitions
    chosen = frame[
        (frame["readout_from"] == options.readout_from) & (frame["readout_to"] == options.readout_to)
    ]
    found: dict[tuple[CellKey, str, str], dict[str, Pairs]] = {}
    for row in chosen.to_dict("records"):
        cell = CellKey(*(row[name] for name in CellKey._fields))
        by_label = found.setdefault((cell, row["labels"], row["split"]), {"yes": Counter(), "no": Counter()})
        by_label[row["label"]][row["decision_from"], row["decision_to"]] += int(row["n"])
    return {
        (cell, labels, split): found[cell, labels, split]
        for cell in dict.fromkeys(key[0] for key in found)
        for labels in options.labels
        for split in options.splits
        if (cell, labels, split) in found
    }


def _cells(pairs: Pairs) -> tuple[Cell, ...]:
    """Return the counts and rates of one label."""
    total = pairs.total()
    moves = [pairs[move] for move in _MOVES]
    alike = sum(count for (before, after), count in pairs.items() if before == after)
    yes_yes, yes_no, no_yes, no_no = moves
    return (
        *moves,
        total - sum(moves),
        total,
        ratio(no_yes, no_yes + no_no),
        ratio(yes_no, yes_yes + yes_no),
        ratio(alike, total),
    )
