"""lmms-eval's POPE task: the whole answer must be the word."""

from readout_audit.contracts import NO, UNPARSED, YES
from readout_audit.readouts.harness.base import Counts, Figures, HarnessReadout, Reading, ratio_or_zero


def read(text: str, label: str | None) -> Reading:
    """Read one answer: yes or no if that is all it says, in any case, spaces around it aside."""
    said = text.lower().strip()
    return Reading(said if said in (YES, NO) else UNPARSED)


def figures(counts: Counts) -> Figures:
    """Return what the task reports.

    Accuracy counts an unmatched answer as wrong; recall leaves it out of its denominator; the yes-ratio is a
    share of the labels, whatever the answers. A ratio 0/0 is reported as 0.
    """
    positives = counts.tp + counts.fn + counts.unparsed_pos
    rows = positives + counts.fp + counts.tn + counts.unparsed_neg
    precision = ratio_or_zero(counts.tp, counts.tp + counts.fp)
    recall = ratio_or_zero(counts.tp, counts.tp + counts.fn)
    return {
        "accuracy": ratio_or_zero(counts.tp + counts.tn, rows) if rows else None,
        "precision": precision,
        "recall": recall,
        "f1": ratio_or_zero(2 * precision * recall, precision + recall),
        "yes_ratio": ratio_or_zero(positives, rows),
    }


LMMS_EVAL = HarnessReadout(
    name="lmms_eval",
    rule="yes or no if the stripped, lower-cased answer is exactly that; else unmatched",
    source="EvolvingLMMs-Lab/lmms-eval lmms_eval/tasks/pope/utils.py at 2c03baf",
    read=read,
    figures=figures,
    quirks={
        "unmatched_dropped": "an unmatched answer (`Yes.`) is wrong in accuracy but left out of recall",
        "yes_ratio_from_labels": "its yes-ratio counts the labels, not the answers",
    },
    strings={"yes": ("yes",), "no": ("no",)},
)
