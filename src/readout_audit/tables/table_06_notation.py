"""Table 6: the symbols of the gap algebra, and what they are here (paper, Appendix)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from readout_audit import contracts
from readout_audit.scores.confusion import ratio
from readout_audit.tables.base import NOT_IDENTIFIABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.common import IDENTITY, identity_cells
from readout_audit.tables.inputs import RunTables, SplitKey
from readout_audit.tables.table_07_transitions import (
    Pairs,
    extremes,
    paired_decisions,
    span,
    unpaired_splits,
)

YES, NO = contracts.LABELS


@dataclass(frozen=True)
class Symbol:
    """One symbol.

    Attributes:
        name: as the paper writes it.
        meaning: in words; `{a}` stands for the emitted-token readout and `{b}` for the other.
        count: its value, from the paired decisions of label yes and of label no.
    """

    name: str
    meaning: str
    count: Callable[[Pairs, Pairs], Cell]


SYMBOLS = (
    Symbol("P", "questions labelled yes", lambda yes, no: yes.total()),
    Symbol("N", "questions labelled no", lambda yes, no: no.total()),
    Symbol("T", "label yes and yes under {a} (TP₈)", lambda yes, no: _before(yes, YES)),
    Symbol("G", "label no and no under {a} (TN₈)", lambda yes, no: _before(no, NO)),
    Symbol("G_tot", "no under {a}, either label", lambda yes, no: _before(yes, NO) + _before(no, NO)),
    Symbol(
        "ρ_N", "share of the G that is yes under {b}", lambda yes, no: ratio(no[NO, YES], _before(no, NO))
    ),
    Symbol(
        "φ",
        "share of the label yes, no under {a}, that is yes under {b}",
        lambda yes, no: ratio(yes[NO, YES], _before(yes, NO)),
    ),
    Symbol("TP₂", "label yes and yes under {b}", lambda yes, no: _after(yes, YES)),
    Symbol("FP₂", "label no and yes under {b}", lambda yes, no: _after(no, YES)),
    Symbol("FN₂", "label yes and no under {b}", lambda yes, no: _after(yes, NO)),
    Symbol("TN₂", "label no and no under {b}", lambda yes, no: _after(no, NO)),
    Symbol("yes→no", "yes under {a} and no under {b}", lambda yes, no: yes[YES, NO] + no[YES, NO]),
)


def build(inputs: RunTables) -> Table:
    """Return every symbol with its meaning and its value on each split."""
    options = inputs.options
    paired = paired_decisions(inputs)
    keys = inputs.in_order((*paired, *unpaired_splits(inputs)))
    splits = [split for split in options.splits if any(key[2] == split for key in keys)]
    rows: list[tuple[Cell, ...]] = []
    for cell, labels in dict.fromkeys(key[:2] for key in keys):
        for symbol in SYMBOLS:
            meaning = symbol.meaning.format(a=options.readout_from, b=options.readout_to)
            values = [_value(inputs, symbol, paired, (cell, labels, split)) for split in splits]
            rows.append((*identity_cells(cell, labels), symbol.name, meaning, *values))
    return Table(
        number=6,
        name="table_06_notation",
        title="Notation, with the value of every symbol",
        columns=(
            *IDENTITY,
            text_column("symbol"),
            text_column("meaning"),
            *(Column(split, decimals=3) for split in splits),
        ),
        rows=tuple(rows),
        n=n_text(
            [sum(pairs.total() for pairs in found.values()) for found in paired.values()],
            "paired questions per split",
        ),
        notes=(
            "Where yes→no is zero, TP₂ = T + φ(P − T), FP₂ = (N − G) + ρ_N G, FN₂ = (1 − φ)(P − T) and "
            "TN₂ = (1 − ρ_N) G, exactly. ℓ_v is the first-position logit of id v, ŷ the decision.",
        ),
    )


def _value(
    inputs: RunTables, symbol: Symbol, paired: Mapping[SplitKey, Mapping[str, Pairs]], key: SplitKey
) -> Cell:
    """Return a symbol on one split; between its extremes where the readouts are not paired."""
    if key in paired:
        return symbol.count(paired[key][YES], paired[key][NO])
    if (ends := extremes(inputs, key)) is None:
        return NOT_IDENTIFIABLE
    return span(*(symbol.count(end[YES], end[NO]) for end in ends))


def _before(pairs: Pairs, decision: str) -> int:
    """Return how many questions have a decision under the emitted-token readout."""
    return sum(count for (before, _), count in pairs.items() if before == decision)


def _after(pairs: Pairs, decision: str) -> int:
    """Return how many questions have a decision under the other readout."""
    return sum(count for (_, after), count in pairs.items() if after == decision)
