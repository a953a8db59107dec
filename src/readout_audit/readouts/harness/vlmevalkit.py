"""VLMEvalKit's yes/no rule without its language-model fallback (`exact_matching`)."""

import re

from readout_audit.contracts import NO, UNPARSED, YES
from readout_audit.readouts.harness.base import Counts, Figures, HarnessReadout, Reading, ratio_or_zero

PUNCTUATION = ';/[]"{}()=+\\_-><@`,?!'
"""Signs that are dropped or become spaces; an apostrophe, a colon and an asterisk are not among them."""

MOST_PERIODS = 32
"""A flag (re.UNICODE, which is 32) stands where the number of replacements belongs."""

_COMMA_IN_NUMBER = re.compile(r"\d,\d")
_PERIOD = re.compile(r"\.(?!\d)")


def without_punctuation(text: str) -> str:
    """Drop or blank the signs as the kit does.

    A sign that stands next to a space anywhere in the text is dropped everywhere, and so are all signs if a
    number with a comma occurs; otherwise a sign becomes a space. Then up to 32 periods that no digit follows
    are dropped.
    """
    drop_all = _COMMA_IN_NUMBER.search(text) is not None
    cleaned = text
    for sign in PUNCTUATION:
        dropped = drop_all or f"{sign} " in text or f" {sign}" in text
        cleaned = cleaned.replace(sign, "" if dropped else " ")
    return _PERIOD.sub("", cleaned, count=MOST_PERIODS)


def read(text: str, label: str | None) -> Reading:
    """Read one answer: the one of the words yes and no that it has; unknown if it has both or neither."""
    words = without_punctuation(text.lower()).split()
    if ("yes" in words) == ("no" in words):
        return Reading(UNPARSED)
    return Reading(YES if "yes" in words else NO)


def figures(counts: Counts) -> Figures:
    """Return what the kit reports (as fractions, not percent).

    Unknown is wrong in accuracy, but a no in precision, recall and F1: the two rest on different readings. A
    ratio 0/0 is reported as 0; there is no yes-ratio.
    """
    fn = counts.fn + counts.unparsed_pos
    rows = counts.tp + counts.fp + counts.tn + fn + counts.unparsed_neg
    precision, recall = (
        ratio_or_zero(counts.tp, counts.tp + counts.fp),
        ratio_or_zero(counts.tp, counts.tp + fn),
    )
    return {
        "accuracy": ratio_or_zero(counts.tp + counts.tn, rows) if rows else None,
        "precision": precision,
        "recall": recall,
        "f1": ratio_or_zero(2 * precision * recall, precision + recall),
        "yes_ratio": None,
    }


VLMEVALKIT = HarnessReadout(
    name="vlmevalkit",
    rule="the one of the words yes and no that the answer has, punctuation aside; both or neither: unknown",
    source="open-compass/VLMEvalKit vlmeval/dataset/utils/yorn.py at 0c7163c, vlmeval/smp/misc.py at 06d45c5",
    read=read,
    figures=figures,
    quirks={
        "unknown_two_ways": "an unknown answer is wrong in accuracy but a no in precision, recall and F1"
    },
    strings={"yes": ("yes",), "no": ("no",)},
)
