"""Table 7: what becomes of each decision when the readout changes (paper, Section 3.4)."""

from collections import Counter
from fractions import Fraction

from readout_audit import contracts
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

BOTH = "both"
"""The row over label yes and label no together."""

_LABELS = (*contracts.LABELS, BOTH)
MOVES = tuple((before, after) for before in contracts.LABELS for after in contracts.LABELS)

_NO_TO_YES = {contracts.YES: "phi", contracts.NO: "rho_n", BOTH: "pooled_flip_rate"}
_YES_TO_NO = {contracts.YES: "yes_to_no_pos", contracts.NO: "yes_to_no_neg"}
_AGREEMENT = {BOTH: "agreement"}
"""Label -> the gap quantity of that name; a label that is not there has none."""


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

    A source that gives each readout's counts alone has no pairs: its counts are not identifiable, its rates
    are the smallest and largest that the counts allow.
    """
    emitted, to = inputs.options.readout_from, inputs.options.readout_to
    paired = paired_decisions(inputs)
    rows: list[tuple[Cell, ...]] = []
    sizes: list[int] = []
    for key in inputs.in_order((*paired, *inputs.unpaired_splits())):
        cell, labels, split = key
        confusion = inputs.confusion(*key, emitted)
        if confusion is not None:
            sizes.append(confusion.n)
        for label in _LABELS:
            asked = _of_label(confusion, label)
            cells = (
                _counted(paired[key], label, asked) if key in paired else _bounded(inputs, key, label, asked)
            )
            interval = inputs.interval(*key, _NO_TO_YES[label])
            about = (*identity_cells(cell, labels), emitted, to, split, label)
            # A rate of zero to zero has no interval for the same reason that it has no value.
            undefined = cells[_RATE] is None
            without = None if undefined else NOT_AVAILABLE
            rows.append((*about, *cells, without if interval is None else Range(*interval)))
    resampled = any(isinstance(row[-1], Range) for row in rows)
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


def paired_decisions(inputs: RunTables) -> dict[SplitKey, dict[str, Pairs]]:
    """Return the counted pairs by (cell, labels, split), then label, in the order of the options."""
    options, frame = inputs.options, inputs.transitions
    chosen = frame[
        (frame["readout_from"] == options.readout_from) & (frame["readout_to"] == options.readout_to)
    ]
    found: dict[SplitKey, dict[str, Pairs]] = {}
    for row in chosen.to_dict("records"):
        cell = CellKey(*(row[name] for name in CellKey._fields))
        by_label = found.setdefault((cell, row["labels"], row["split"]), {"yes": Counter(), "no": Counter()})
        by_label[row["label"]][row["decision_from"], row["decision_to"]] += int(row["n"])
    return {key: found[key] for key in inputs.in_order(found)}


def _counted(by_label: dict[str, Pairs], label: str, asked: int | None) -> tuple[Cell, ...]:
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


def _bounded(inputs: RunTables, key: SplitKey, label: str, asked: int | None) -> tuple[Cell, ...]:
    """Return what two separate matrices say of one label: its n, and the Fréchet bounds of its rates."""
    names = (_NO_TO_YES.get(label), _YES_TO_NO.get(label), _AGREEMENT.get(label))
    n = NOT_AVAILABLE if asked is None else asked
    return (*(NOT_IDENTIFIABLE,) * 5, n, *(_bounds(inputs, key, name) for name in names))


def _bounds(inputs: RunTables, key: SplitKey, name: str | None) -> Cell:
    """Return the smallest and largest value of a gap quantity that the counts allow."""
    if name is None:
        return NOT_IDENTIFIABLE
    low: Fraction | None = inputs.quantity(*key, f"{name}_bound_low")
    high = inputs.quantity(*key, f"{name}_bound_high")
    return Range(low, high, NOT_IDENTIFIABLE)


def _of_label(confusion: Confusion | None, label: str) -> int | None:
    """Return how many questions carry a label, None without scores."""
    if confusion is None:
        return None
    positives = confusion.tp + confusion.fn + confusion.unparsed_pos + confusion.invalid_pos
    return {contracts.YES: positives, contracts.NO: confusion.n - positives, BOTH: confusion.n}[label]
