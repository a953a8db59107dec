"""POPE's own scorer, and LLaVA's copy of it: whatever does not say no is a yes."""

import re

from readout_audit.contracts import NO, YES
from readout_audit.readouts.harness.base import (
    Counts,
    Figures,
    HarnessReadout,
    Reading,
    four_cell_figures,
)

NEGATIVES = ("No", "not", "no")
"""Compared as they are: `NO`, `Not` and `No!` are none of them."""

_YES = re.compile(r"\byes\b", re.IGNORECASE)


def read(text: str, label: str | None) -> Reading:
    r"""Read one answer: no if a word of its first sentence is No, not or no; else yes.

    The sentence ends at the first full stop, commas are dropped, and words are parted by single spaces only,
    so that a line break joins what it parts ("No\nThe image" is one word).
    """
    words = text.split(".")[0].replace(",", "").split(" ")
    if any(word in words for word in NEGATIVES):
        return Reading(NO)
    return Reading(YES, frozenset() if _YES.search(text) else frozenset({"default_yes"}))


def figures(counts: Counts) -> Figures:
    """Return what the scripts print; every row has a reading."""
    rows = counts.tp + counts.fp + counts.tn + counts.fn
    yes = counts.tp + counts.fp
    return four_cell_figures(counts.tp, counts.fp, counts.tn, counts.fn, rows, yes)


POPE_OFFICIAL = HarnessReadout(
    name="pope_official",
    rule="no if a word of the first sentence is No, not or no (commas dropped, case kept); else yes",
    source="AoiDragon/POPE evaluate.py at f3ec604; haotian-liu/LLaVA llava/eval/eval_pope.py at 4241f08",
    read=read,
    figures=figures,
    quirks={
        "default_yes": "called yes although the answer has no word yes (empty, refusals, `NO`, `isn't`)",
        "pairing": "the scripts pair answers with labels by line number and check neither ids nor lengths",
    },
    strings={"yes": (), "no": NEGATIVES},
    flagged=("default_yes",),
)
