"""The published rows of Table 8 against what a run's corrections make of them."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from readout_audit.claims.finding import agrees
from readout_audit.claims.numbers import Number
from readout_audit.corrections.registry import correction
from readout_audit.scores.confusion import Confusion

FORMS: Mapping[str, tuple[tuple[str, float], ...]] = {
    "clip_b32_certainty_beta_1.0": (("clip_b32", 1.0), ("clip_b32_code", 1.0)),
    "clip_b32_certainty_beta_1.5": (("clip_b32", 1.5), ("clip_b32_code", 1.5)),
    "clip_l14_336_certainty": (("clip_l", 1.0),),
    "entropy": (("entropy", 1.0), ("entropy_code", 1.0)),
    "magnitude": (("magnitude", 1.0), ("magnitude_code", 1.0)),
    "cls_similarity": (("cls", 1.0), ("cls_code", 1.0)),
    "object_noun_clip": (("object_noun", 1.0), ("object_code", 1.0)),
    "uniform": (("uniform", 1.0),),
    "vcd_noise": (("vcd", 1.0), ("vcd_uniform_code", 1.0)),
}
"""Row of the published table -> the forms of it that can be run: as in Appendix F.1, as in the code."""

METRICS = ("f1", "precision", "recall")

REPRODUCED, DIFFERS, NOT_IDENTIFIABLE = "reproduced", "differs", "not_identifiable"


class Verdict(NamedTuple):
    """What one form of a published row gives, and the word for it."""

    method: str
    matrix: Confusion
    word: str


def row_name(number: Number) -> str:
    """Return the row of a published number: "entropy" of "entropy:f1"."""
    return number.quantity.partition(":")[0]


def metric_name(number: Number) -> str:
    """Return the metric of a published number: "f1" of "entropy:f1"."""
    return number.quantity.partition(":")[2]


def metric(matrix: Confusion, name: str) -> Fraction | None:
    """Return a metric of a matrix by name."""
    found: Fraction | None = getattr(matrix, name)
    return found


def judge(method: str, matrix: Confusion, members: Sequence[Number]) -> Verdict:
    """Say whether a form of a row gives what is printed.

    It differs only where its source leaves nothing open; else another map or β may give the row.
    """
    same = all(agrees(metric(matrix, metric_name(number)), number) for number in members)
    settled = not correction(method).ours
    word = REPRODUCED if same else DIFFERS if settled else NOT_IDENTIFIABLE
    return Verdict(method, matrix, word)


def best_verdict(verdicts: Sequence[Verdict]) -> Verdict:
    """Return the verdict on a row whose forms disagree: reproduced by one, else settled by one, else open."""
    order = (REPRODUCED, DIFFERS, NOT_IDENTIFIABLE)
    return min(verdicts, key=lambda verdict: order.index(verdict.word))
