"""Tables of transitions and of the gap between readouts."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from readout_audit import contracts
from readout_audit.errors import AuditError
from readout_audit.gap.algebra import (
    RATES,
    Ratio,
    agreement,
    base,
    decompose,
    extreme_pairings,
    flip_counts,
    flip_rates,
    joint_bounds,
    only,
    pooled_flip_rate,
    rebuilt_f1,
)
from readout_audit.gap.transitions import Paired, Unpaired, cells, pair
from readout_audit.scores.confusion import ABSENT, Confusion, count
from readout_audit.scores.decisions import Decisions
from readout_audit.scores.labels import LabelSet

INT64_MAX = 2**63 - 1

NOT_IDENTIFIABLE = "not identifiable: the source gives each readout's counts alone"


class Quantity(NamedTuple):
    """One row of a gap table, before it is keyed.

    `value` is exact, or a float where no exact ratio of counts is behind it (ends of intervals, p-values).
    """

    name: str
    value: Ratio | float | None
    note: str | None = None


class Step(NamedTuple):
    """Two readouts on one split under one label set; `rows` are the labelled rows."""

    labels: str
    split: str
    before: str
    after: str
    rows: npt.NDArray[np.int64]
    paired: Paired
    unpaired: Unpaired
    alone: tuple[Confusion, Confusion]


def steps(
    decisions: Decisions, label_sets: Sequence[LabelSet], pairs: Sequence[tuple[str, str]] | None
) -> list[Step]:
    """Count every pair of readouts on every split that has both.

    Args:
        decisions: the rows.
        label_sets: as `labels.label_sets` returns them.
        pairs: (from, to); None for all ordered pairs.

    Raises:
        AuditError: a pair names a readout that the decision file does not know.
    """
    for name in {name for names in pairs or () for name in names}:
        if name not in decisions.answers and name not in decisions.unavailable:
            known = ", ".join([*decisions.answers, *decisions.unavailable])
            raise AuditError(f"gap: readout {name!r} is not in the decision file, which has {known}.")
    wanted = list(permutations(decisions.answers, 2)) if pairs is None else list(pairs)
    return [
        _step(decisions, label_set, split, before, after)
        for label_set in label_sets
        for split in decisions.splits
        for before, after in wanted
        if all(name in decisions.answers and decisions.has(name, split) for name in (before, after))
    ]


def _step(decisions: Decisions, label_set: LabelSet, split: str, before: str, after: str) -> Step:
    """Count one pair of readouts on one split."""
    rows = np.flatnonzero(decisions.in_split(split) & (label_set.codes != ABSENT))
    labels = label_set.codes[rows]
    first, second = decisions.answers[before][rows], decisions.answers[after][rows]
    paired, unpaired = pair(labels, first, second)
    alone = count(labels, first), count(labels, second)
    return Step(label_set.name, split, before, after, rows, paired, unpaired, alone)


def quantities(step: Step, elsewhere: Mapping[str, Paired]) -> Iterator[Quantity]:
    """Yield what the algebra says about one step whose rows are paired.

    Args:
        step: the counted pair.
        elsewhere: other split -> its paired counts, whose rates are applied to this split.
    """
    paired, before, after = step.paired, step.paired.before, step.paired.after
    start, rates = base(before), flip_rates(paired)
    for name, ratio in flip_counts(paired).items():
        yield Quantity(name, ratio)
    yield from _f1s(before, after)
    yield Quantity("f1_to_rebuilt", rebuilt_f1(start, rates))
    yield Quantity("pooled_flip_rate", pooled_flip_rate(paired))
    yield Quantity("agreement", agreement(paired))
    unflipped = tuple(name for name in RATES if name != "phi")
    yield Quantity("f1_phi_zero", rebuilt_f1(start, only(rates, unflipped)))
    for name in RATES:
        yield Quantity(f"f1_only:{name}", rebuilt_f1(start, only(rates, (name,))))
    parts = decompose(start, rates)
    for name in RATES:
        part = _reduced(parts[name]) if parts is not None else None
        yield Quantity(f"delta_f1_part:{name}", part, None if parts else "F1 is undefined under some rates")
    for split, other in elsewhere.items():
        f1 = rebuilt_f1(start, flip_rates(other))
        yield Quantity(f"f1_transferred:{split}", f1, None if f1 else f"{split} has no such answers to flip")


def marginal_quantities(step: Step) -> Iterator[Quantity]:
    """Yield what two separate matrices say: F1 exactly, joint quantities by their Fréchet bounds."""
    before, after = step.alone
    yield from _f1s(before, after)
    if any(matrix.parsed != matrix.n for matrix in step.alone):
        for name in (*RATES, "pooled_flip_rate", "agreement"):
            yield Quantity(name, None, f"{NOT_IDENTIFIABLE}; not every row was answered yes or no")
        return
    for name, bounds in joint_bounds(before, after).items():
        known = bounds.low == bounds.high
        yield Quantity(name, bounds.low if known else None, None if known else NOT_IDENTIFIABLE)
        yield Quantity(f"{name}_bound_low", bounds.low, "smallest value the counts allow")
        yield Quantity(f"{name}_bound_high", bounds.high, "largest value the counts allow")


def _f1s(before: Confusion, after: Confusion) -> Iterator[Quantity]:
    """Yield F1 of both readouts as counted, and F1(from) - F1(to)."""
    for name, matrix in (("f1_from", before), ("f1_to", after)):
        yield Quantity(name, f1_ratio(matrix))
    delta = None if before.f1 is None or after.f1 is None else _reduced(before.f1 - after.f1)
    yield Quantity("delta_f1", delta)


def f1_ratio(confusion: Confusion) -> Ratio:
    """Return F1 as counted: 2TP of 2TP + FP + misses, 0/0 where it is undefined."""
    if confusion.f1 is None:
        return Ratio(0, 0)
    return Ratio(2 * confusion.tp, 2 * confusion.tp + confusion.fp + confusion.misses)


def _reduced(value: Fraction) -> Ratio:
    """Return an exact value in lowest terms."""
    return Ratio(value.numerator, value.denominator)


def measure(decisions: Decisions, counted: Sequence[Step]) -> list[tuple[Step, list[Quantity]]]:
    """Return each step with its exact quantities."""
    if not decisions.joint:
        return [(step, list(_apart(step))) for step in counted]
    by_pair: dict[tuple[str, str, str], dict[str, Paired]] = {}
    for step in counted:
        by_pair.setdefault((step.labels, step.before, step.after), {})[step.split] = step.paired
    measured = []
    for step in counted:
        splits = by_pair[step.labels, step.before, step.after]
        elsewhere = {split: paired for split, paired in splits.items() if split != step.split}
        measured.append((step, list(quantities(step, elsewhere))))
    return measured


def _apart(step: Step) -> Iterator[Quantity]:
    """Yield what two separate matrices say: everything where they allow one pairing, else bounds."""
    only_one = only_pairing(step)
    return marginal_quantities(step) if only_one is None else quantities(only_one, {})


def only_pairing(step: Step) -> Step | None:
    """Return a step of a source without pairs with the one pairing that its two matrices allow; None for several."""
    if any(matrix.parsed != matrix.n for matrix in step.alone):
        return None
    fewest, most = extreme_pairings(*step.alone)
    return step._replace(paired=fewest, unpaired=Unpaired(0, 0)) if fewest == most else None


def gap_table(cell: Mapping[str, str], measured: Sequence[tuple[Step, Sequence[Quantity]]]) -> pa.Table:
    """Return the quantities under `contracts.GAP`."""
    rows = [
        {
            **_key(cell, step),
            "quantity": quantity.name,
            **_columns(quantity.value),
            "note": _note(step, quantity),
        }
        for step, found in measured
        for quantity in found
    ]
    return pa.Table.from_pylist(rows, schema=contracts.GAP)


def transitions_table(cell: Mapping[str, str], counted: Sequence[Step]) -> pa.Table:
    """Return the paired counts under `contracts.TRANSITIONS`."""
    rows = [
        {**_key(cell, step), "label": label, "decision_from": before, "decision_to": after, "n": n}
        for step in counted
        for label, before, after, n in cells(step.paired)
    ]
    return pa.Table.from_pylist(rows, schema=contracts.TRANSITIONS)


def _key(cell: Mapping[str, str], step: Step) -> dict[str, str]:
    """Return the leading columns of a step's rows."""
    return {
        **cell,
        "labels": step.labels,
        "split": step.split,
        "readout_from": step.before,
        "readout_to": step.after,
    }


def _columns(value: Ratio | float | None) -> dict[str, Any]:
    """Return numerator, denominator and value; the first two are empty where they pass 64 bits."""
    if not isinstance(value, Ratio):
        return {"numerator": None, "denominator": None, "value": value}
    fits = max(abs(value.numerator), value.denominator) <= INT64_MAX
    return {
        "numerator": value.numerator if fits else None,
        "denominator": value.denominator if fits else None,
        "value": float(value.value) if value.value is not None else None,
    }


def _note(step: Step, quantity: Quantity) -> str | None:
    """Return what a reader of the row must know: its own note, undefined ratios, rows left out."""
    notes = [quantity.note] if quantity.note else []
    if isinstance(quantity.value, Ratio) and quantity.value.value is None:
        notes.append("undefined: 0/0")
    if step.unpaired.unparsed or step.unpaired.invalid:
        notes.append(f"left out: {step.unpaired.unparsed} unparsed and {step.unpaired.invalid} invalid rows")
    return "; ".join(notes) or None
