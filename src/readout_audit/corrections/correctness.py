"""Does a signal know which answers are wrong, and does it know more than the logit gap?"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from readout_audit.corrections.auc import Placed, estimate, gain, place
from readout_audit.corrections.evidence import Evidence, Floats
from readout_audit.corrections.logistic import out_of_fold
from readout_audit.corrections.rows import Block, fold_of_images
from readout_audit.corrections.schema import ANSWERS, GAP, NOT_AVAILABLE, OK
from readout_audit.corrections.tallies import Bools, Ints
from readout_audit.corrections.values import Value
from readout_audit.readouts.base import NotAvailableError


class _Asked(NamedTuple):
    """Rows whose right and wrong answers are to be told apart: |gap| and one signal, shape (m,) each."""

    gap: Floats
    signal: Floats
    wrong: Bools
    image: Ints
    images: int
    fold: Ints


def correctness(
    evidence: Evidence, block: Block, signals: Iterable[Value], folds: int, seed: int
) -> Iterator[dict[str, Any]]:
    """Yield rows of `schema.CORRECTNESS` without their cell: |gap|, then every signal, by answer.

    Args:
        evidence: records and signals.
        block: the rows of one split under one label set.
        signals: what to ask.
        folds: parts of the images that the logistic models are cross-validated over.
        seed: of the folds.
    """
    fold = fold_of_images(block.rows.images, folds, seed)[block.rows.image]
    values = {GAP: np.abs(evidence.gap)} | {signal.name: _values(signal, evidence) for signal in signals}
    for answers in ANSWERS:
        found = [_ask(evidence, block, name, value, answers, fold) for name, value in values.items()]
        tested = sum(row.get("p") is not None for row in found)
        for row in found:
            p = row.get("p")
            corrected = {"tried": tested, "p_corrected": min(1.0, p * tested)} if p is not None else {}
            yield row | corrected


def _values(signal: Value, evidence: Evidence) -> Floats | str:
    """Return a signal of each question, or why it is not there."""
    try:
        return signal.of(evidence)
    except NotAvailableError as error:
        return str(error)


def _ask(
    evidence: Evidence, block: Block, name: str, value: Floats | str, answers: str, fold: Ints
) -> dict[str, Any]:
    """Return the row of one signal among the answers of one kind."""
    row: dict[str, Any] = {"answers": answers, "signal": name}
    if isinstance(value, str):
        return row | {"status": NOT_AVAILABLE, "reason": value}
    rows = block.rows
    gap = evidence.gap[rows.question]
    answered = gap > 0
    kept = ~np.isnan(value[rows.question])
    if answers != "all":
        kept &= answered == (answers == "yes")
    wrong = answered != rows.positive
    asked = _Asked(
        np.abs(gap)[kept],
        value[rows.question][kept],
        wrong[kept],
        rows.image[kept],
        rows.images.n,
        fold[kept],
    )
    return row | _measure(name, asked)


def _measure(name: str, asked: _Asked) -> dict[str, Any]:
    """Return AUC alone and beyond |gap|."""
    counts = {"n": len(asked.wrong), "wrong": int(asked.wrong.sum())}
    alone = _placed(asked.signal, asked)
    if alone is None:
        why = "every answer is right" if not counts["wrong"] else "every answer is wrong"
        return {"status": NOT_AVAILABLE, "reason": why if counts["n"] else "null on every answer", **counts}
    auc = estimate(alone)
    found = {
        "status": OK,
        **counts,
        "auc": auc.value,
        "auc_low": auc.low,
        "auc_high": auc.high,
        "auc_p": auc.p,
    }
    if name == GAP:
        return found
    models = [
        out_of_fold(np.stack(features, axis=1), asked.wrong, asked.fold)
        for features in ([asked.gap], [asked.gap, asked.signal])
    ]
    placed = [_placed(model, asked) for model in models if model is not None]
    if len(placed) < 2 or placed[0] is None or placed[1] is None:
        return found | {"reason": "too few wrong answers to fit a model in every fold"}
    added = gain(placed[0], placed[1])
    return found | {
        "auc_gap": placed[0].auc,
        "auc_gap_and_signal": placed[1].auc,
        "gain": added.value,
        "gain_low": added.low,
        "gain_high": added.high,
        "p": added.p,
    }


def _placed(scores: Floats, asked: _Asked) -> Placed | None:
    """Return the AUC of scores for a wrong answer."""
    return place(scores, asked.wrong, asked.image, asked.images)
