"""Numbers that a run's own counts give: scores, transitions, the gap, first tokens, single decisions."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from readout_audit.claims.evidence import ALL, PAIR, CellKey, Evidence, GapValue
from readout_audit.claims.finding import Finding, Missing, NearTies, as_printed
from readout_audit.claims.noise import metric_range, near_rows, near_ties
from readout_audit.claims.numbers import Number
from readout_audit.contracts import NO, YES
from readout_audit.exact import printed
from readout_audit.fileio import table_metadata
from readout_audit.scores.confusion import Confusion

NOT_RUN = "not_run"
MISSPELT = "imange"

LATER = 1000
"""Questions after which a running rate is told once more, to see whether it had settled."""


def _metric(name: str) -> Callable[[Confusion], Fraction | None]:
    """Return a rate or a cell of a matrix as an exact number."""

    def value(matrix: Confusion) -> Fraction | None:
        found = getattr(matrix, name)
        return None if found is None else Fraction(found)

    return value


_DERIVED_FROM = "legacy_8tok"
_INPUT = {"counts": "the run starts from these printed integers"}


def cell_of(number: Number, evidence: Evidence) -> CellKey | Missing:
    """Return the cell of a claim, or that the run has none."""
    cell = evidence.cell(number)
    if cell is not None:
        return cell
    asked = f"{number.model} under template {number.template}" if number.template else number.model
    return Missing(NOT_RUN, f"this run has no decisions of {asked} on the paper's release.")


def score(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return one metric of one readout on one split."""
    cell = cell_of(number, evidence)
    if isinstance(cell, Missing):
        return cell
    subset, _, metric = number.quantity.rpartition(":")
    key = (cell, number.split, subset or ALL, number.readout)
    if key in evidence.scores:
        matrix = evidence.scores[key]
        return Finding(
            _metric(metric)(matrix), cell.text, near_ties=_score_noise(number, evidence, cell, matrix)
        )
    return _by_theorem(number, evidence, cell, metric)


def _score_noise(number: Number, evidence: Evidence, cell: CellKey, matrix: Confusion) -> NearTies | None:
    """Return what near-ties allow the metric to be, where the source has margins and the claim a whole split."""
    table = evidence.decisions(cell)
    if table is None or ":" in number.quantity:
        return None
    near = near_ties(table, number.split, number.readout)
    return metric_range(matrix, near, _metric(number.quantity)) if near is not None else None


def _by_theorem(number: Number, evidence: Evidence, cell: CellKey, metric: str) -> Finding | Missing:
    """Derive a readout that was not applied from the eight-token one, where Theorem 1 says they are equal.

    It does where every first token is one that the eight-token rule reads.
    """
    key = (cell, number.split, ALL, _DERIVED_FROM)
    tokens = evidence.first_tokens(cell, number.split)
    applies = number.readout in ("dynamic_single", "string_parse") and ":" not in number.quantity
    if applies and key in evidence.scores and tokens is not None and set(tokens) <= _EIGHT:
        note = "Theorem 1: every first token is read by the eight-token rule, so this readout decides alike."
        return Finding(_metric(metric)(evidence.scores[key]), cell.text, note, derived=True)
    return _without(number.readout, evidence, cell)


def _without(readout: str, evidence: Evidence, cell: CellKey) -> Missing:
    """Say why a cell has no decisions of a readout: its source cannot tell, or it was not applied."""
    table = evidence.decisions(cell)
    described = table_metadata(table).get("readouts", {}).get(readout, {}) if table is not None else {}
    if described.get("available") is False:
        return Missing("not_identifiable", f"{described.get('why_not') or 'the source cannot tell'}.")
    return Missing(NOT_RUN, f"the {cell.source} source has no {readout} decisions here.")


_EIGHT = frozenset({3582, 8241, 4874, 3869, 1217, 3782, 694, 1939})


def transition(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return how many questions of a label went from one decision to another."""
    cell = cell_of(number, evidence)
    if isinstance(cell, Missing):
        return cell
    n = evidence.transitions.get((cell, number.split, number.quantity))
    if n is None:
        return Missing("not_identifiable", "the source does not pair the two readouts question by question.")
    return Finding(
        Fraction(n), cell.text, _INPUT.get(cell.source, ""), near_ties=_pair_noise(number, evidence, cell, n)
    )


def _pair_noise(number: Number, evidence: Evidence, cell: CellKey, n: int) -> NearTies | None:
    """Return what near-ties under either readout allow a paired count to be."""
    table = evidence.decisions(cell)
    label = number.quantity.partition(":")[0]
    moved = near_rows(table, number.split, PAIR, label) if table is not None else None
    return NearTies(Fraction(max(0, n - moved)), Fraction(n + moved), moved) if moved is not None else None


_FLIPS = {"rho_n": NO, "phi": YES, "pooled_flip_rate": None, "agreement": None}
"""Shares of questions that flip or agree -> the label they are about, None for both."""


def gap_range(number: Number, found: GapValue, evidence: Evidence, cell: CellKey) -> NearTies | None:
    """Return what near-ties allow a share of flips, or the difference of two F1s, to be.

    Each near-tied row moves the numerator and the denominator of a share by at most one.
    """
    table = evidence.decisions(cell)
    if table is None or found.numerator is None or found.denominator is None:
        return None
    if number.quantity == "delta_f1":
        return _delta_range(number, evidence, cell)
    if number.quantity not in _FLIPS:
        return None
    moved = near_rows(table, number.split, PAIR, _FLIPS[number.quantity])
    if moved is None:
        return None
    above = [Fraction(max(0, found.numerator - moved)), Fraction(found.numerator + moved)]
    below = [Fraction(max(1, found.denominator - moved)), Fraction(found.denominator + moved)]
    if number.kind != "gap":
        ends = above if number.kind == "gap_numerator" else below
        return NearTies(ends[0], ends[1], moved)
    return NearTies(above[0] / below[1], min(Fraction(1), above[1] / below[0]), moved)


def _delta_range(number: Number, evidence: Evidence, cell: CellKey) -> NearTies | None:
    """Return what near-ties of both readouts allow their difference of F1 to be."""
    ranges = []
    for readout in PAIR:
        alone = replace(number, readout=readout, quantity="f1")
        matrix = evidence.scores.get((cell, number.split, ALL, readout))
        found = _score_noise(alone, evidence, cell, matrix) if matrix is not None else None
        if found is None:
            return None
        ranges.append(found)
    first, second = ranges
    return NearTies(first.low - second.high, first.high - second.low, first.count + second.count)


def gap(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return one quantity of the gap algebra; as numerator or denominator where the claim is one of them."""
    cell = cell_of(number, evidence)
    if isinstance(cell, Missing):
        return cell
    found = evidence.gap.get((cell, number.split, number.quantity))
    if found is None:
        return Missing(NOT_RUN, f"this run did not measure {number.quantity} here.")
    if found.numerator is None:
        return Missing("not_identifiable", f"{found.note or 'not known from this source'}.")
    ties = gap_range(number, found, evidence, cell)
    if number.kind == "gap":
        return Finding(found.value, cell.text, near_ties=ties)
    part = found.numerator if number.kind == "gap_numerator" else found.denominator
    return Finding(Fraction(part or 0), cell.text, near_ties=ties)


def first_token(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return how many answers began with one token id."""
    cell = cell_of(number, evidence)
    if isinstance(cell, Missing):
        return cell
    tokens = evidence.first_tokens(cell, number.split)
    if tokens is None:
        return Missing(NOT_RUN, "the source does not know every first token.")
    note = "only its consistency with Table 7 is claimed" if cell.source == "counts" else ""
    return Finding(Fraction(tokens[int(number.quantity)]), cell.text, note)


def emitted_ids(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return the set of ids that answers began with."""
    cell = cell_of(number, evidence)
    if isinstance(cell, Missing):
        return cell
    first = int(number.quantity.removeprefix("first_")) if number.quantity else None
    tokens = evidence.first_tokens(cell, number.split, first)
    if tokens is None:
        return Missing(NOT_RUN, "the source does not know every first token.")
    return Finding(", ".join(map(str, sorted(tokens))), cell.text)


def questions(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return how many questions, positives or images there are."""
    cell = cell_of(number, evidence)
    if isinstance(cell, Missing):
        return cell
    table = evidence.decisions(cell)
    if table is None:
        return Missing(NOT_RUN, "this run has no decision file of the paper's release.")
    if number.quantity == "images":
        images = set(table["image"].to_pylist())
        if None in images:
            return Missing("not_identifiable", "printed counts do not say which images were asked about.")
        return Finding(Fraction(len(images)), cell.text, _per_image(table))
    rows = pc.equal(table["split"], number.split)
    if number.quantity == "positives":
        rows = pc.and_(rows, pc.equal(table["label"], YES))
    return Finding(Fraction(pc.sum(rows).as_py() or 0), cell.text, _misspelt(table.filter(rows)))


def _per_image(table: pa.Table) -> str:
    """Say how many different questions there are about how many pictures; nothing where they are not known."""
    if table["uid"].null_count:
        return ""
    images = dict(zip(table["uid"].to_pylist(), table["image"].to_pylist(), strict=True))
    counts = Counter(images.values()).values()
    return (
        f"{table.num_rows:,} rows are {len(images):,} distinct (picture, question) pairs, {min(counts)} to "
        f"{max(counts)} per picture, {printed(Fraction(len(images), len(counts)), 1)} on average."
    )


def _misspelt(rows: pa.Table) -> str:
    """Say how many questions are misspelt; nothing where none is, or they are not known."""
    if rows["question"].null_count:
        return ""
    count = pc.sum(pc.match_substring(rows["question"], MISSPELT)).as_py() or 0
    return f"{count:,} of them say {MISSPELT}, the spelling of one release." if count else ""


def running_rate(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return the yes-rate over the first questions of a split, in the order in which they were asked."""
    rows = _ordered(number, evidence)
    if isinstance(rows, Missing):
        return rows
    cell, decisions = rows
    answers = list(decisions.values())
    first, later = (answers[:n] for n in (int(number.quantity), LATER))
    note = f"over the first {len(first)} questions in the source's order"
    if len(later) == LATER:
        note += f"; {as_printed(Fraction(later.count(YES), LATER), number)} over the first {LATER:,}"
    return Finding(Fraction(first.count(YES), len(first)), cell.text, f"{note}.")


def running_f1(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return F1 over the first n questions of a split in order, or its smallest or largest value from there on.

    The quantity is "at:n", "low:n" or "high:n".
    """
    rows = _ordered(number, evidence)
    if isinstance(rows, Missing):
        return rows
    cell, decisions = rows
    labels = _labels(number, evidence, cell)
    which, _, first = number.quantity.partition(":")
    counted: list[tuple[int, Fraction]] = []
    hits = called = positives = 0
    for n, (identity, decision) in enumerate(decisions.items(), start=1):
        positive = labels[identity] == YES
        called += decision == YES
        positives += positive
        hits += positive and decision == YES
        if n >= int(first) and called + positives:
            counted.append((n, Fraction(2 * hits, called + positives)))
    if not counted:
        return Missing(NOT_RUN, f"the split has fewer than {int(first):,} questions here.")
    if which == "at":
        return Finding(
            counted[0][1], cell.text, f"over the first {counted[0][0]:,} questions in the source's order."
        )
    n, value = (min if which == "low" else max)(counted, key=lambda one: one[1])
    return Finding(value, cell.text, f"over the first {n:,} questions in the source's order.")


def shared_questions(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return how many questions (picture and exact text) two splits ask alike and answer differently."""
    cell = cell_of(number, evidence)
    if isinstance(cell, Missing):
        return cell
    table = evidence.decisions(cell)
    if table is None or number.readout not in table.column_names:
        return _without(number.readout, evidence, cell)
    if table["uid"].null_count:
        return Missing("not_identifiable", "printed counts have no single questions.")
    answers: dict[str, dict[str, str]] = {}
    columns = (table[name].to_pylist() for name in ("uid", "split", number.readout))
    for uid, split, decision in zip(*columns, strict=True):
        answers.setdefault(uid, {})[split] = decision
    shared = [by_split for by_split in answers.values() if len(by_split) > 1]
    differing = [by_split for by_split in shared if len(set(by_split.values())) > 1]
    note = f"of {len(shared):,} questions that stand in two or more splits."
    if differing:
        pairs = Counter(
            f"{first} and {second}"
            for by_split in differing
            for first, second in combinations(sorted(by_split), 2)
            if by_split[first] != by_split[second]
        )
        told = "; ".join(f"{pair}: {count:,}" for pair, count in sorted(pairs.items()))
        note += f" {told}. One deterministic setup cannot have given both answers."
    return Finding(Fraction(len(differing)), cell.text, note)


def outcome(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return the confusion-matrix cell of one question."""
    rows = _ordered(number, evidence)
    if isinstance(rows, Missing):
        return rows
    cell, decisions = rows
    labels = _labels(number, evidence, cell)
    names = {(YES, YES): "tp", (NO, YES): "fp", (NO, NO): "tn", (YES, NO): "fn"}
    found = names.get((labels.get(number.quantity, ""), decisions.get(number.quantity, "")), "not answered")
    return Finding(found, cell.text)


def _labels(number: Number, evidence: Evidence, cell: CellKey) -> dict[str, str]:
    """Return question id -> label of a split."""
    table = evidence.decisions(cell)
    assert table is not None
    columns = (table[name].to_pylist() for name in ("question_id", "label", "split"))
    return {identity: label for identity, label, split in zip(*columns, strict=True) if split == number.split}


def _ordered(number: Number, evidence: Evidence) -> tuple[CellKey, dict[str, str]] | Missing:
    """Return question id -> decision of a split in order, where the source knows the order."""
    cell = cell_of(number, evidence)
    if isinstance(cell, Missing):
        return cell
    table = evidence.decisions(cell)
    if table is None or not all(table["order_known"].to_pylist()):
        return Missing("not_identifiable", "printed counts have no single questions and no order.")
    if number.readout not in table.column_names:
        return _without(number.readout, evidence, cell)
    columns = (table[name].to_pylist() for name in ("split", "question_id", number.readout))
    return cell, {
        identity: decision
        for split, identity, decision in zip(*columns, strict=True)
        if split == number.split
    }
