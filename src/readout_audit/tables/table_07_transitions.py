"""Table 7: what becomes of each decision when the readout changes (paper, Section 3.4)."""

from collections import Counter
from fractions import Fraction

from readout_audit import contracts
from readout_audit.gap.algebra import extreme_pairings
from readout_audit.gap.transitions import Paired
from readout_audit.gap.transitions import cells as pairing_cells
from readout_audit.scores.confusion import Confusion, ratio
from readout_audit.tables.base import (
    NOT_AVAILABLE,
    NOT_IDENTIFIABLE,
    Cell,
    Column,
    Range,
    Table,
    n_text,
    text_column,
)
from readout_audit.tables.common import IDENTITY, identity_cells
from readout_audit.tables.inputs import CellKey, RunTables, SplitKey

Pairs = Counter[tuple[str, str]]
"""Questions by (decision under `readout_from`, decision under `readout_to`)."""

ByLabel = dict[str, Pairs]
"""Label -> its paired decisions."""

BOTH = "both"
"""The row over label yes and label no together."""

_LABELS = (*contracts.LABELS, BOTH)
MOVES = tuple((before, after) for before in contracts.LABELS for after in contracts.LABELS)

_NO_TO_YES = {contracts.YES: "phi", contracts.NO: "rho_n", BOTH: "pooled_flip_rate"}
"""Label -> the gap quantity of its no→yes rate."""


_COLUMNS = (
    *IDENTITY,
    text_column("from", identity=True),
    text_column("to", identity=True),
    text_column("split"),
    text_column("label"),
    *(Column(f"{before}→{after}") for before, after in MOVES),
    Column("left out"),
    Column("n"),
    Column("no→yes rate", decimals=3),
    Column("yes→no rate", decimals=3),
    Column("agreement", decimals=3),
)
_RATE = len(MOVES) + 2
"""Place of the no→yes rate behind the identity: after the moves, what is left out, and n."""
_INTERVAL = Column("95% interval", decimals=3)


def build(inputs: RunTables) -> Table:
    """Return the paired decisions by label with the rates of the gap algebra.

    A source that gives each readout's counts alone has no pairs: there stand the smallest and the largest that
    the counts allow.
    """
    emitted, to = inputs.options.readout_from, inputs.options.readout_to
    paired = paired_decisions(inputs)
    rows: list[tuple[Cell, ...]] = []
    sizes: list[int] = []
    for key in inputs.in_order((*paired, *unpaired_splits(inputs))):
        cell, labels, split = key
        confusion = inputs.confusion(*key, emitted)
        if confusion is not None:
            sizes.append(confusion.n)
        for label in _LABELS:
            asked = _of_label(confusion, label)
            cells = _counted(paired[key], label, asked) if key in paired else _open(inputs, key, label, asked)
            interval = inputs.interval(*key, _NO_TO_YES[label])
            about = (*identity_cells(cell, labels), emitted, to, split, label)
            # A rate of zero to zero has no interval for the same reason that it has no value.
            rows.append((*about, *cells, None if cells[_RATE] is None else interval))
    resampled = any(row[-1] not in (None, NOT_AVAILABLE) for row in rows)
    return Table(
        number=7,
        name="table_07_transitions",
        title=f"Paired decisions by label: {emitted} → {to}",
        columns=(*_COLUMNS, _INTERVAL) if resampled else _COLUMNS,
        rows=tuple(rows) if resampled else tuple(row[:-1] for row in rows),
        n=n_text(sizes, "questions per split"),
        notes=(
            f"no→yes rate: of the questions that are no under {emitted}, the share that is yes under {to}; "
            "φ for label yes, ρ_N for label no, the pooled flip rate for both.",
            "left out: unparsed or invalid under at least one of the two. agreement: share of the others "
            "that both decide alike.",
            *(["95% interval: of the no→yes rate, images resampled."] if resampled else []),
        ),
    )


def paired_decisions(inputs: RunTables) -> dict[SplitKey, ByLabel]:
    """Return the counted pairs by (cell, labels, split), then label, in the order of the options."""
    options, frame = inputs.options, inputs.transitions
    chosen = frame[
        (frame["readout_from"] == options.readout_from) & (frame["readout_to"] == options.readout_to)
    ]
    found: dict[SplitKey, ByLabel] = {}
    for row in chosen.to_dict("records"):
        cell = CellKey(*(row[name] for name in CellKey._fields))
        by_label = found.setdefault((cell, row["labels"], row["split"]), {"yes": Counter(), "no": Counter()})
        by_label[row["label"]][row["decision_from"], row["decision_to"]] += int(row["n"])
    return {key: found[key] for key in inputs.in_order(found)}


def _counted(by_label: ByLabel, label: str, asked: int | None) -> tuple[Cell, ...]:
    """Return the counts and rates of one label, or of both; `asked` is how many questions carry it."""
    pairs = by_label["yes"] + by_label["no"] if label == BOTH else by_label[label]
    yes_yes, yes_no, no_yes, no_no = moves = [pairs[move] for move in MOVES]
    n = sum(moves)
    return (
        *moves,
        NOT_AVAILABLE if asked is None else asked - n,
        NOT_AVAILABLE if asked is None else asked,
        ratio(no_yes, no_yes + no_no),
        ratio(yes_no, yes_yes + yes_no),
        ratio(yes_yes + no_no, n),
    )


def _open(inputs: RunTables, key: SplitKey, label: str, asked: int | None) -> tuple[Cell, ...]:
    """Return the cells of one label between those of the extreme pairings that two separate matrices allow."""
    ends = extremes(inputs, key)
    if ends is None:
        n = NOT_AVAILABLE if asked is None else asked
        return (*(NOT_IDENTIFIABLE,) * 5, n, *(NOT_IDENTIFIABLE,) * 3)
    fewest, most = (_counted(end, label, asked) for end in ends)
    return tuple(span(*cells) for cells in zip(fewest, most, strict=True))


def span(one: Cell, other: Cell) -> Cell:
    """Return what lies between two cells: the value itself where both are the same."""
    if one == other:
        return one
    low, high = sorted(value for value in (one, other) if isinstance(value, int | Fraction))
    return Range(low, high, NOT_IDENTIFIABLE)


def unpaired_splits(inputs: RunTables) -> list[SplitKey]:
    """Return each (cell, labels, split) that has scores of both readouts of the pair."""
    pair = (inputs.options.readout_from, inputs.options.readout_to)
    return [
        key
        for key in inputs.scored_splits()
        if all(inputs.confusion(*key, readout) is not None for readout in pair)
    ]


def extremes(inputs: RunTables, key: SplitKey) -> tuple[ByLabel, ByLabel] | None:
    """Return the pairings with the fewest and the most flips that both readouts' matrices allow.

    None where some answer was neither yes nor no: then the matrices do not bound the pairs.
    """
    pair = (inputs.options.readout_from, inputs.options.readout_to)
    before, after = (inputs.confusion(*key, readout) for readout in pair)
    if before is None or after is None or before.parsed != before.n or after.parsed != after.n:
        return None
    fewest, most = (_by_label(paired) for paired in extreme_pairings(before, after))
    return fewest, most


def _by_label(paired: Paired) -> ByLabel:
    """Return paired counts as `paired_decisions` has them."""
    found: ByLabel = {label: Counter() for label in contracts.LABELS}
    for label, before, after, n in pairing_cells(paired):
        found[label][before, after] = n
    return found


def _of_label(confusion: Confusion | None, label: str) -> int | None:
    """Return how many questions carry a label, None without scores."""
    if confusion is None:
        return None
    positives = confusion.tp + confusion.fn + confusion.unparsed_pos + confusion.invalid_pos
    return {contracts.YES: positives, contracts.NO: confusion.n - positives, BOTH: confusion.n}[label]
