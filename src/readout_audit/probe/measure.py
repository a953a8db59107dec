"""All rows of the probe's tables for one set of answers."""

from typing import Any

import numpy as np
import numpy.typing as npt

from readout_audit.contracts import NO, YES
from readout_audit.corrections.evidence import Evidence
from readout_audit.probe.answers import ATTENTION_IMAGE, ATTENTION_WINDOW, Answers
from readout_audit.probe.clustered import Weights
from readout_audit.probe.excluded import Excluded
from readout_audit.probe.windows import window_effects
from readout_audit.readouts.base import NotAvailableError

Row = dict[str, Any]


def answer_rows(
    answers: Answers, question_ids: list[str], images: list[str] | None, of_pass: str
) -> list[Row]:
    """Return rows of `schema.PROBE` without main records and excluded ids.

    Args:
        answers: m answers.
        question_ids: m ids.
        images: m names; None where not known.
        of_pass: which pass the answers are of.
    """
    columns = {
        "question_id": question_ids,
        "image": images if images is not None else [None] * len(question_ids),
        "label": np.where(answers.positive, YES, NO).tolist(),
        "answer": np.where(answers.yes, YES, NO).tolist(),
        "outcome": answers.outcome,
        "yes_logit": answers.yes_logit.tolist(),
        "no_logit": answers.no_logit.tolist(),
        "tie": answers.tie.tolist(),
        **{name: nullable(values) for name, values in answers.signals.items()},
    }
    fixed = {"labels": answers.labels, "split": answers.split, "pass": of_pass}
    return [fixed | dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def main_columns(gap: npt.NDArray[np.float64], excluded: Excluded | None) -> list[Row]:
    """Return the columns of the main records by row.

    Args:
        gap: shape (m,), the main records' gap, NaN where invalid.
        excluded: what the excluded ids held, of the same rows; None where this model has none.
    """
    known = ~np.isnan(gap)
    columns = {
        "main_answer": [
            (YES if one > 0 else NO) if there else None for one, there in zip(gap, known, strict=True)
        ],
        "main_gap": nullable(gap),
        "main_tie": [bool(one == 0) if there else None for one, there in zip(gap, known, strict=True)],
    }
    if excluded is not None:
        columns |= {f"excluded_{name}": nullable(values) for name, values in excluded._asdict().items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def nullable(values: npt.NDArray[np.float64]) -> list[float | None]:
    """Return numbers as a list in which NaN is None."""
    return [None if np.isnan(value) else float(value) for value in values]


def window_rows(
    evidence: Evidence, answers: Answers, questions: npt.NDArray[np.int64], weights: Weights | None
) -> list[Row]:
    """Return rows of `schema.WINDOWS`: correct against wrong, for both sets of positions.

    Args:
        evidence: where the attention stands by question.
        answers: m answers.
        questions: shape (m,), each answer's question.
        weights: the draw of images.
    """
    found = []
    for name in (ATTENTION_WINDOW, ATTENTION_IMAGE):
        try:
            by_layer = evidence.attention(name)[questions]
        except NotAvailableError:
            continue
        known = ~np.isnan(by_layer.sum(axis=1))
        if not known.any():
            continue
        correct, wrong = (answers.group(group) & known for group in ("correct", "wrong"))
        values = np.where(known[:, None], by_layer, 0.0)
        sizes = {"n_correct": int(correct.sum()), "n_wrong": int(wrong.sum())}
        for row in window_effects(values, correct, wrong, weights):
            chosen = (row["start"], row["end"]) == evidence.layers
            found.append({"signal": name, "chosen": chosen, **sizes, **row})
    return found
