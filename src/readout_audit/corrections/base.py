"""What a correction is: a pure function of records, signals and a strength to the margin of yes over no."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from readout_audit.corrections.evidence import Evidence, Floats

Family = Literal["F.1", "code"]
"""Appendix F.1 of the paper, or the authors' code where it does something else under the same name."""

SOURCES: dict[Family, str] = {
    "F.1": "arXiv 2610.25964, Appendix F.1",
    "code": "Kesav2k04/ugaa-research at 08a10ab, src/run_ablation_a.py",
}


@dataclass(frozen=True)
class Correction:
    """One correction.

    A row is answered yes where its margin is > 0, strictly; a margin is NaN where a signal it reads is null.

    Attributes:
        name: its name in configs and columns.
        title: its name in tables and figures.
        family: whose definition it is.
        formula: the margin, as a line of text.
        signals: columns of the signals file it reads.
        strengths: the strengths that are reported as they stand (β, or α of a contrast); the first is the default.
        swept: whether it has a strength that can be swept; at strength 0 it then changes no decision.
        ours: what the source leaves open and this project chose; empty where the source says everything.
        rule: (evidence, k strengths) -> margins of shape (n, k).
    """

    name: str
    title: str
    family: Family
    formula: str
    signals: tuple[str, ...]
    rule: Callable[[Evidence, Floats], Floats]
    strengths: tuple[float, ...] = (1.0,)
    swept: bool = True
    ours: str = ""

    def margins(self, evidence: Evidence, strengths: Floats) -> Floats:
        """Return the margin of yes over no, shape (n, k), NaN where a signal is null or the record invalid.

        Args:
            evidence: records and signals of n questions.
            strengths: k strengths; ignored (but k kept) where there is none to set.

        Raises:
            NotAvailableError: the signals cannot hold what it reads.
        """
        margins = self.rule(evidence, np.asarray(strengths, dtype=np.float64))
        return np.where(np.isnan(evidence.gap)[:, None], np.nan, margins)


Certainty = Callable[[Evidence], Floats]
"""Evidence of n questions -> certainty in [0, 1], shape (n,), NaN where it is not known."""


def gate(certainty: Certainty) -> Callable[[Evidence, Floats], Floats]:
    """Return the rule ℓ_yes − β(1 − c) against ℓ_no (Appendix F.1)."""

    def rule(evidence: Evidence, strengths: Floats) -> Floats:
        doubt = 1.0 - certainty(evidence)
        return np.asarray(evidence.gap[:, None] - strengths[None, :] * doubt[:, None])

    return rule


def sigmoid(values: Floats) -> Floats:
    """Return 1 / (1 + exp(-x)), computed without overflow."""
    small = np.exp(-np.abs(values))
    return np.where(values >= 0, 1 / (1 + small), small / (1 + small))


def squashed(signal: str, centre: float, scale: float) -> Certainty:
    """Return the certainty sigmoid(scale · (signal − centre))."""
    return lambda evidence: sigmoid(scale * (evidence.signal(signal) - centre))


def complement(signal: str) -> Certainty:
    """Return the certainty 1 − signal, for a signal in [0, 1], kept within [0, 1] against rounding."""
    return lambda evidence: np.clip(1.0 - evidence.signal(signal), 0.0, 1.0)


def constant(value: float) -> Certainty:
    """Return the same certainty for every question."""
    return lambda evidence: np.full(len(evidence.gap), value)
