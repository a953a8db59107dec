"""Score tables: counts and exact rates of every readout on every set of rows."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from readout_audit import contracts
from readout_audit.scores.blocks import (
    AGGREGATES,
    ALL,
    DISTINCT,
    MACRO,
    POOLED,
    Block,
    Repeats,
    find_repeats,
    split_blocks,
)
from readout_audit.scores.confusion import Confusion, count, count_ties, total
from readout_audit.scores.decisions import Decisions
from readout_audit.scores.labels import LabelSet

RATES = {  # column -> attribute of a matrix
    "f1": "f1",
    "precision_rate": "precision",
    "recall": "recall",
    "accuracy": "accuracy",
    "yes_rate": "yes_rate",
}
PARSED_ONLY = ("f1", "precision", "recall", "accuracy")
PARTLY = "not available from this source on these splits; aggregates over splits are left out"
TIE_POLICIES = ("yes", "no", "excluded")

Rates = dict[str, Fraction | None]


class Part(NamedTuple):
    """One readout counted on one set of rows.

    Attributes:
        labels: the label set.
        readout: the readout.
        rows: indices into the decision file.
        confusion: the counts, a tie read as the readout reads it.
        policies: tie policy -> counts under it; empty for a readout without logits.
        ties: tied rows; None for a readout without logits.
    """

    labels: str
    readout: str
    rows: npt.NDArray[np.int64]
    confusion: Confusion
    policies: dict[str, Confusion]
    ties: int | None


class Entry(NamedTuple):
    """One row of a score table: `parts` has one member for a split, one per split for macro and pooled.

    No part means that the aggregate is not defined here; its row is there and empty.
    """

    labels: str
    split: str
    readout: str
    subset: str
    parts: tuple[Part, ...]


class Scores(NamedTuple):
    """The rows of a score table and what its metadata says."""

    entries: list[Entry]
    notes: dict[str, Any]


def count_scores(decisions: Decisions, label_sets: Sequence[LabelSet], first: Sequence[int] = ()) -> Scores:
    """Count every readout on every split, subset and aggregate, under every label set.

    Args:
        decisions: the rows.
        label_sets: as `labels.label_sets` returns them.
        first: sizes N of the subsets `first_N`, by the release's order.
    """
    entries: list[Entry] = []
    unavailable: dict[str, Any] = {name: {"why": why} for name, why in decisions.unavailable.items()}
    contradicting: dict[str, dict[str, int]] = {}
    for label_set in label_sets:
        blocks = split_blocks(decisions, label_set, first)
        repeats = find_repeats(decisions, label_set)
        for readout in decisions.answers:
            found = _count_readout(decisions, label_set, blocks, repeats, readout)
            entries += found.entries
            if found.lacking:
                unavailable[readout] = {"why": PARTLY, "splits": found.lacking}
            if found.contradictions:
                contradicting.setdefault(label_set.name, {})[readout] = found.contradictions
    notes = {
        "schema": 1,
        "cell": decisions.cell,
        "labels": {label_set.name: label_set.describe() for label_set in label_sets},
        "aggregates": AGGREGATES,
        "not_available": unavailable,
        "rows_that_contradict_the_same_question": contradicting,
    }
    return Scores(entries, notes)


class _Counted(NamedTuple):
    """Entries of one readout, splits it lacks, and rows that contradict an earlier one on one question."""

    entries: list[Entry]
    lacking: list[str]
    contradictions: int


def _count_readout(
    decisions: Decisions,
    label_set: LabelSet,
    blocks: Sequence[Block],
    repeats: Repeats | None,
    readout: str,
) -> _Counted:
    """Count one readout on every block, and on the aggregates if it has all splits."""
    lacking = [split for split in decisions.splits if not decisions.has(readout, split)]
    entries = [
        Entry(
            label_set.name,
            block.split,
            readout,
            block.subset,
            (_part(decisions, label_set, readout, block.rows),),
        )
        for block in blocks
        if block.split not in lacking
    ]
    if lacking:
        return _Counted(entries, lacking, 0)
    whole = tuple(entry.parts[0] for entry in entries if entry.subset == ALL)
    once: tuple[Part, ...] = ()
    contradictions = 0
    if repeats is not None:
        contradictions = sum(map(repeats.contradictions, (label_set.codes, decisions.answers[readout])))
        if not contradictions:
            once = (_part(decisions, label_set, readout, repeats.distinct),)
    for split, parts in ((MACRO, whole), (POOLED, whole), (DISTINCT, once)):
        entries.append(Entry(label_set.name, split, readout, ALL, parts))
    return _Counted(entries, lacking, contradictions)


def _part(decisions: Decisions, label_set: LabelSet, readout: str, rows: npt.NDArray[np.int64]) -> Part:
    """Count one readout on the rows with the given indices."""
    labels, answers = label_set.codes[rows], decisions.answers[readout][rows]
    tie = decisions.ties[readout]
    confusion = count(labels, answers)
    if tie is None:
        return Part(label_set.name, readout, rows, confusion, {}, None)
    counted = count_ties(labels, answers, tie[rows])
    policies = {"yes": counted.to_yes, "no": counted.to_no, "excluded": counted.excluded}
    return Part(label_set.name, readout, rows, confusion, policies, counted.ties)


def counts_of(entry: Entry) -> dict[str, int | None]:
    """Return the counts of a score row: empty for macro and for an aggregate that is not defined."""
    if not entry.parts or entry.split == MACRO:
        return dict.fromkeys(["n", *Confusion._fields, "ties"])
    confusion = total(part.confusion for part in entry.parts)
    ties = [part.ties for part in entry.parts if part.ties is not None]
    return {
        "n": confusion.n,
        **confusion._asdict(),
        "ties": sum(ties) if len(ties) == len(entry.parts) else None,
    }


def rates_of(entry: Entry) -> Rates:
    """Return every exact rate of a score row."""
    if entry.split == MACRO and entry.parts:
        return _mean([_rates(part.confusion, part.policies) for part in entry.parts])
    confusion = total(part.confusion for part in entry.parts) if entry.parts else Confusion(0, 0, 0, 0)
    policies = {
        policy: total(part.policies[policy] for part in entry.parts)
        for policy in TIE_POLICIES
        if entry.parts and all(policy in part.policies for part in entry.parts)
    }
    return _rates(confusion, policies)


def _rates(confusion: Confusion, policies: Mapping[str, Confusion]) -> Rates:
    """Return every rate of one matrix, by column name."""
    rates: Rates = {column: getattr(confusion, name) for column, name in RATES.items()}
    for policy in TIE_POLICIES:
        rates[f"f1_ties_{policy}"] = policies[policy].f1 if policy in policies else None
    for name in PARSED_ONLY:
        rates[f"{name}_parsed_only"] = getattr(confusion.parsed_only, name)
    return rates


def _mean(rates: Sequence[Rates]) -> Rates:
    """Return the mean of each rate; None where one of them is undefined."""
    means: Rates = {}
    for name in rates[0]:
        values = [value for one in rates if (value := one[name]) is not None]
        means[name] = sum(values, Fraction(0)) / len(rates) if len(values) == len(rates) else None
    return means


def score_table(scores: Scores, intervals: Mapping[int, Mapping[str, float | None]]) -> pa.Table:
    """Return the rows under `contracts.SCORES`.

    Args:
        scores: the counted entries.
        intervals: index of an entry -> interval columns; a column that is missing is left empty.
    """
    cell = scores.notes["cell"]
    rows = [
        {
            **cell,
            "labels": entry.labels,
            "split": entry.split,
            "readout": entry.readout,
            "subset": entry.subset,
            **counts_of(entry),
            **{name: None if rate is None else float(rate) for name, rate in rates_of(entry).items()},
            **intervals.get(index, {}),
        }
        for index, entry in enumerate(scores.entries)
    ]
    return pa.Table.from_pylist(rows, schema=contracts.SCORES)
