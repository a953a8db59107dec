"""Which readout of a cell can be relied on: one that reads every yes and no the model writes.

A readout whose ids lack what the decoder selected decides between tokens that were not chosen, and one whose ids
spell neither yes nor no in the model's vocabulary measures nothing. Both give scores that look like any other.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from readout_audit.contracts import NO, UNPARSED, YES
from readout_audit.exact import printed
from readout_audit.readouts.first_token import read_piece
from readout_audit.report.emitted import emitted_tokens, known_pieces
from readout_audit.report.inputs import CellKey, RunData
from readout_audit.report.text import of
from readout_audit.scores.decisions import Decisions

PREFERRED = ("dynamic_single", "in_context")
"""What to read instead of a readout that misses tokens, the first choices of `readout-audit diagnose`, too."""


MOST_UNREAD = Fraction(1, 10)
"""A readout is not trusted beyond this share of answers that begin with none of its tokens: it still calls each of
them a yes or a no, between tokens that the model did not choose."""


class Reading(NamedTuple):
    """What one readout of logits reads of the first tokens of a cell.

    Attributes:
        questions: answers that were looked at.
        unread: answers whose first token is not among its ids.
        missed: answers whose yes or no it does not read, or takes for the other.
        foreign: it reads no id whose piece says yes or no in this model's vocabulary.
        strange: it reads an id whose piece says neither.
        tuned: its rule was fitted to the labels.
    """

    readout: str
    questions: int
    unread: int
    missed: int
    foreign: bool
    strange: bool
    tuned: bool

    @property
    def complete(self) -> bool:
        """Every yes and no that the model writes is read, and there are some."""
        return not self.missed and not self.strange and self.unread < self.questions

    @property
    def blind(self) -> bool:
        """No answer's first token is read as what it says."""
        return self.questions in (self.unread, self.missed)

    @property
    def trusted(self) -> bool:
        """Its score is the score of what the model wrote."""
        return self.complete and not self.tuned and self.unread <= MOST_UNREAD * self.questions


class Advice(NamedTuple):
    """What to make of a pair's scores.

    Attributes:
        sentences: what the reader has to know.
        report: the readouts whose line to print beside a score.
        warns: the pair's scores cannot be relied on, which has to be said before them.
        void: they mean nothing at all, and are no result.
    """

    sentences: tuple[str, ...]
    report: tuple[str, ...]
    warns: bool
    void: bool = False


def advice(data: RunData, cell: CellKey) -> Advice:
    """Say which readout of a cell to trust, the pair's before any other."""
    known = readings(data.decisions.get(cell))
    pair = [known[name] for name in data.pair if name in known]
    trusted = [one for one in pair if one.trusted]
    if len(trusted) == 2:
        return Advice((BOTH,), data.pair, warns=False)
    if trusted:
        return Advice((_one(trusted[0], pair),), (trusted[0].readout,), warns=False)
    if not known:
        return Advice((UNKNOWN,), tuple(_available(data, cell)), warns=False)
    instead = _instead(data, cell, list(known.values()))
    said = [_neither(pair)] if pair else []
    if instead is None:
        return Advice((*said, NONE), (), bool(pair), _void(pair))
    f1 = _f1(data, cell, instead.readout)
    other = (
        f"Trust {instead.readout}{f' ({f1})' if f1 else ''}{' instead' if pair else ''}: {_reads(instead)}."
    )
    return Advice((*said, other), (instead.readout,), bool(pair), _void(pair))


BOTH = (
    "Both readouts read every yes and no that the model writes. They differ in the rule by which they decide, so print "
    "the rule with the score."
)
UNKNOWN = "With which tokens these answers begin is not known, so neither readout can be vouched for."
NONE = "No readout of logits in this run reads enough of what the model writes to be trusted."


def readings(decisions: Decisions | None) -> dict[str, Reading]:
    """Return what every readout of logits reads, where first tokens and pieces are known.

    What the decision stage recorded counts distinct questions; without it rows are counted here.
    """
    described: Mapping[str, Any] = decisions.metadata.get("readouts", {}) if decisions is not None else {}
    found = ((name, _reading(decisions, name, one)) for name, one in described.items())
    return {name: reading for name, reading in found if reading is not None}


def _reading(decisions: Decisions | None, name: str, described: Mapping[str, Any]) -> Reading | None:
    """Return what one readout reads; None where it reads no ids or nothing is known of the first tokens."""
    ids = described.get("ids") or {}
    side = {int(token): answer for answer in (YES, NO) for token in ids.get(answer) or []}
    if decisions is None or not side or not described.get("available", True):
        return None
    tuned = bool(described.get("needs_labels"))
    coverage = described.get("coverage")
    if coverage:
        foreign = {int(token) for token in coverage["foreign"]}
        missed = sum(int(token["count"]) for token in coverage["excluded"])
        counts = (int(coverage["questions"]), int(coverage["outside"]), missed)
        return Reading(name, *counts, foreign == set(side), bool(foreign), tuned)
    emitted = emitted_tokens(decisions)
    pieces = known_pieces(decisions)
    if emitted is None or any(str(token) not in pieces for token in [*side, *emitted[0].tolist()]):
        return None
    tokens, counted = emitted
    says = [read_piece(pieces[str(token)]) for token in tokens]
    wrong = [said != UNPARSED and side.get(int(t)) != said for t, said in zip(tokens, says, strict=True)]
    strange = {token for token in side if read_piece(pieces[str(token)]) == UNPARSED}
    unread = int(counted[~np.isin(tokens, list(side))].sum())
    missed = int(counted[np.array(wrong, bool)].sum())
    return Reading(name, int(counted.sum()), unread, missed, strange == set(side), bool(strange), tuned)


def _reads(one: Reading) -> str:
    """Say what a complete readout reads, and how many answers begin otherwise."""
    rest = f" ({of(one.unread, one.questions)} answers begin with neither)" if one.unread else ""
    return f"it reads every yes and no that the model writes{rest}"


def _one(trusted: Reading, pair: Sequence[Reading]) -> str:
    """Say which of the two to trust, and what is the matter with the other."""
    others = "".join(f"; {one.readout} {_fault(one)}" for one in pair if one is not trusted)
    return f"Trust {trusted.readout}: {_reads(trusted)}{others}."


def _fault(one: Reading) -> str:
    """Say why a readout cannot be trusted."""
    if one.foreign:
        return "compares tokens that are neither yes nor no in this model's vocabulary, so its score means nothing"
    if one.blind:
        return "reads none of what the model writes"
    if one.missed:
        return f"misses the yes or no of {of(one.missed, one.questions)} answers"
    if one.unread > MOST_UNREAD * one.questions:
        return f"decides {of(one.unread, one.questions)} answers between tokens that the model did not choose"
    if one.strange:
        return "also compares tokens that are neither yes nor no in this model's vocabulary"
    return "decides by a rule that was fitted to the labels"


def _void(pair: Sequence[Reading]) -> bool:
    """Tell whether both readouts of the pair compare nothing but tokens that say neither yes nor no."""
    return len(pair) == 2 and all(one.foreign for one in pair)


def _neither(pair: Sequence[Reading]) -> str:
    """Say why neither readout of the pair can be trusted."""
    names = " and ".join(one.readout for one in pair)
    if _void(pair):
        return (
            f"Neither readout reads this model's yes or no: {names} compare tokens that say neither in its vocabulary, "
            "so both their scores mean nothing."
        )
    if len(pair) == 2 and all(one.blind for one in pair):
        return f"Neither readout reads what the model writes: {names} compare tokens that it did not choose."
    faults = "; ".join(f"{one.readout} {_fault(one)}" for one in pair)
    return f"{'Trust neither readout' if len(pair) == 2 else 'Not to be trusted'}: {faults}."


def _instead(data: RunData, cell: CellKey, known: Sequence[Reading]) -> Reading | None:
    """Return the readout to report where none of the pair can be."""
    trusted = {one.readout: one for one in known if one.trusted}
    order = [*PREFERRED, *dict.fromkeys(row.readout for row in data.scores if row.cell == cell)]
    return next((trusted[name] for name in order if name in trusted), None)


def _f1(data: RunData, cell: CellKey, readout: str) -> str:
    """Return a readout's F1 on the hardest split; empty where it is not known."""
    row = data.score_index.get((cell, data.labels[0], data.splits[-1], readout)) if data.splits else None
    return f"F1 {printed(row.confusion.f1, 4)} on {row.split}" if row and row.confusion else ""


def _available(data: RunData, cell: CellKey) -> list[str]:
    """Return those of the pair that were read."""
    decisions = data.decisions.get(cell)
    return [name for name in data.pair if decisions is not None and name in decisions.answers]
