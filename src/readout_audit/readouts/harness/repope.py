"""RePOPE's scorer: yes or no as substrings, yes first; what has neither is dropped."""

import re

from readout_audit.contracts import NO, UNPARSED, YES
from readout_audit.readouts.harness.base import (
    Counts,
    Figures,
    HarnessReadout,
    Reading,
    four_cell_figures,
)


def read(text: str, label: str | None) -> Reading:
    """Read one answer: yes if it contains `yes`, else no if it contains `no`, also inside a word.

    The script also looks for `not`, which contains `no` and so never gets its turn.
    """
    said = text.lower()
    decision = YES if YES in said else NO if NO in said else UNPARSED
    inside = decision != UNPARSED and not re.search(rf"\b{decision}\b", said)
    return Reading(decision, frozenset({"inside_word"}) if inside else frozenset())


def figures(counts: Counts) -> Figures:
    """Return what the script reports: rows without a reading are in no denominator."""
    rows = counts.tp + counts.fp + counts.tn + counts.fn
    return four_cell_figures(counts.tp, counts.fp, counts.tn, counts.fn, rows, counts.tp + counts.fp)


REPOPE = HarnessReadout(
    name="repope",
    rule="yes if the answer contains `yes`, else no if it contains `no`, also inside a word; else dropped",
    source="YanNeu/RePOPE src/eval_utils.py at 127ad0f",
    read=read,
    figures=figures,
    quirks={
        "inside_word": "read from inside a longer word (the `no` of cannot, not, snowboard)",
        "unmatched_dropped": "an answer with neither word is left out of every figure",
    },
    strings={"yes": ("yes",), "no": ("no",)},
    flagged=("inside_word",),
)
