"""Answers with what was measured while they were given: what every statistic of the probe is about."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from readout_audit.corrections.evidence import Evidence
from readout_audit.corrections.rows import Block
from readout_audit.readouts.base import NotAvailableError
from readout_audit.scores.bootstrap import Images

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

GAP, ATTENTION_WINDOW, ATTENTION_IMAGE, CLIP_L = "gap", "attention_window", "attention_image", "clip_l"
YES_LOGIT, NO_LOGIT = "yes_logit", "no_logit"

OUTCOMES = ("tp", "tn", "fp", "fn")
GROUPS = ("all", "correct", "wrong", *OUTCOMES)

INSTRUMENTED, MAIN = "instrumented", "main"
"""Which pass the gap is of: the one that measured the signals, or the one that gave the records."""


@dataclass(frozen=True)
class Answers:
    """m answers of one split under one label set.

    Attributes:
        labels, split: which.
        positive: shape (m,), whether the label is yes.
        yes_logit: shape (m,), largest yes logit.
        no_logit: shape (m,), largest no logit.
        signals: name -> shape (m,), NaN where null.
        images: the images of the rows, None where they are not known.
    """

    labels: str
    split: str
    positive: Bools
    yes_logit: Floats
    no_logit: Floats
    signals: Mapping[str, Floats]
    images: Images | None

    @cached_property
    def gap(self) -> Floats:
        """Largest yes logit minus largest no logit."""
        return self.yes_logit - self.no_logit

    @property
    def yes(self) -> Bools:
        """Whether the answer is yes: strictly larger."""
        return np.asarray(self.gap > 0)

    @property
    def tie(self) -> Bools:
        """Whether the two set maxima are equal, which is read as no."""
        return np.asarray(self.gap == 0)

    def value(self, signal: str) -> Floats:
        """Return |gap|, a set maximum or a signal by name; NaN throughout where the source has no such signal."""
        measured = {GAP: np.abs(self.gap), YES_LOGIT: self.yes_logit, NO_LOGIT: self.no_logit}
        absent = np.full(len(self.positive), np.nan)
        return measured[signal] if signal in measured else self.signals.get(signal, absent)

    def group(self, name: str) -> Bools:
        """Return which answers belong to a group of `GROUPS`."""
        right = np.asarray(self.yes == self.positive)
        groups: dict[str, Bools] = {
            "all": np.ones(len(right), dtype=bool),
            "correct": right,
            "wrong": ~right,
            "tp": self.yes & self.positive,
            "tn": ~self.yes & ~self.positive,
            "fp": self.yes & ~self.positive,
            "fn": ~self.yes & self.positive,
        }
        return groups[name]

    @property
    def outcome(self) -> list[str]:
        """Each answer's confusion-matrix cell."""
        names = np.empty(len(self.positive), dtype=object)
        for name in OUTCOMES:
            names[self.group(name)] = name
        return [str(name) for name in names]


def answers_of(evidence: Evidence, block: Block) -> tuple[Answers, Bools, str]:
    """Return the answers of a block, which of its rows they are, and the pass they are of.

    They are those of the instrumented pass where there is a signals file; rows it has no logits for are left out.
    A run without signals has the answers of its records, and no attention or similarity.

    Raises:
        NotAvailableError: the pass answered none of the questions, or not with the readout's ids.
    """
    if evidence.signal_meta:
        of_pass, logits = INSTRUMENTED, evidence.signal_logits("answer_candidate_logits")
    else:
        of_pass, logits = MAIN, evidence.logits
    yes, no = (side.max(axis=1)[block.rows.question] for side in logits)
    kept = ~np.isnan(yes + no)
    if not kept.any():
        raise NotAvailableError(f"no question has logits of the {of_pass} pass")
    rows = block.rows.only(kept)
    answers = Answers(
        labels=block.labels,
        split=block.split,
        positive=rows.positive,
        yes_logit=yes[kept],
        no_logit=no[kept],
        signals={name: values[rows.question] for name, values in _signals(evidence).items()},
        images=Images(rows.image, rows.images.n),
    )
    return answers, kept, of_pass


def _signals(evidence: Evidence) -> dict[str, Floats]:
    """Return the signals of F.3 of each question; one that is not there is NaN throughout."""
    found = {CLIP_L: evidence.signal("clip_l_patches")}
    for name in (ATTENTION_WINDOW, ATTENTION_IMAGE):
        try:
            found[name] = evidence.window_attention(name)
        except NotAvailableError:
            found[name] = np.full(len(evidence.gap), np.nan)
    return found
