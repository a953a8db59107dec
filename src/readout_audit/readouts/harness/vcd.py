"""VCD's scorer: it looks for the right answer, so the label decides what is read."""

from readout_audit.contracts import NO, YES
from readout_audit.readouts.harness.base import (
    Counts,
    Figures,
    HarnessReadout,
    Reading,
    four_cell_figures,
)


def read(text: str, label: str | None) -> Reading:
    """Read one answer under its label: the label's word anywhere in it, also inside a word, means the label.

    An answer that has both words, or neither, is right or wrong by the label alone: with both it always
    agrees, with neither it never does. Such a reading is flagged.
    """
    said, sought = text.lower(), YES if label == YES else NO
    decision = sought if sought in said else NO if sought == YES else YES
    by_label = (YES in said) == (NO in said)
    return Reading(decision, frozenset({"label_decides"}) if by_label else frozenset())


def figures(counts: Counts) -> Figures:
    """Return what the script prints; every row has a reading."""
    rows = counts.tp + counts.fp + counts.tn + counts.fn
    return four_cell_figures(counts.tp, counts.fp, counts.tn, counts.fn, rows, counts.tp + counts.fp)


VCD = HarnessReadout(
    name="vcd",
    rule="label yes: yes if the answer contains `yes`, else no; label no: no if it contains `no`, else yes",
    source="DAMO-NLP-SG/VCD experiments/eval/eval_pope.py at 039af55",
    read=read,
    figures=figures,
    quirks={
        "label_decides": "the answer has both words or neither, so that the label alone decides the reading"
    },
    strings={"yes": ("yes",), "no": ("no",)},
    needs_labels=True,
    flagged=("label_decides",),
)
