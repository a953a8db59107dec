"""Is the fast engine right on the real model? A sample of its records is asked again, one by one."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from readout_audit.errors import AuditError
from readout_audit.inference.base import Answer, Engine, ImageJob, Question
from readout_audit.inference.images import decode, load_file
from readout_audit.inference.records import OK, Row
from readout_audit.inference.sequential import Sequential
from readout_audit.models.base import VisionLanguageModel

MANTISSA_BITS = {"fp32": 24, "bf16": 8, "fp16": 11}
"""Significant binary digits of each dtype, the hidden one included."""

STEPS = 2.0
"""A first token that differs is a near-tie as long as its margin is no more than so many steps of the dtype."""

FLOAT32_TOLERANCE = 1e-4
"""In float32 logits may differ by this much, or by this share of the largest one where that is more."""


def step_size(value: float, dtype: str) -> float:
    """Return the distance between neighbouring numbers of `dtype` at the magnitude of `value`."""
    _, exponent = math.frexp(value)
    return math.ldexp(1.0, exponent - MANTISSA_BITS[dtype])


def sample(rows: Sequence[Row], size: int, seed: int) -> list[Row]:
    """Return up to `size` answered rows, drawn with a generator of their own, in the order of the table."""
    answered = [place for place, row in enumerate(rows) if row["status"] == OK]
    drawn = np.random.default_rng(seed).permutation(answered)[:size]
    return [rows[place] for place in sorted(drawn.tolist())]


def ask_again(
    rows: Sequence[Row], images: Path, model: VisionLanguageModel, max_new_tokens: int
) -> list[tuple[Row, Answer]]:
    """Return each row with the sequential engine's answer to its question.

    Raises:
        AuditError: an image is gone or is not the one that was asked about.
    """
    engine = Sequential(model, 1, max_new_tokens)
    pairs: list[tuple[Row, Answer]] = []
    by_image: dict[str, list[Row]] = {}
    for row in rows:
        by_image.setdefault(row["image"], []).append(row)
    for name, asked in by_image.items():
        file = load_file(images, name)
        pixels, fault = decode(file)
        if pixels is None or file.sha256 != asked[0]["image_sha256"]:
            raise AuditError(
                f"{fault or f'{name}: not the image that the records are about'}; nothing to compare."
            )
        questions = tuple(
            Question(row["uid"], name, row["object"], row["question"], row["prompt"]) for row in asked
        )
        by_uid = {answer.question.uid: answer for answer in engine.answer([ImageJob(pixels, questions)])}
        pairs.extend((row, by_uid[row["uid"]]) for row in asked)
    return pairs


def compare(
    pairs: Sequence[tuple[Row, Answer]], candidates: list[int], dtype: str, precision: str
) -> dict[str, Any]:
    """Compare records with sequential answers.

    Args:
        pairs: what `ask_again` returned.
        candidates: ids of the records' candidate logits.
        dtype: in which the model computes: `fp32`, `bf16` or `fp16`.
        precision: of the weights; under int8, which picks outlier columns per batch, differences are
            reported and never a failure.

    Returns:
        Counts of equal first tokens and continuations, the largest difference of a candidate's logit, and
        every first token that differs with its margin in steps of `dtype`; `passed` is false where one of
        them is more than `STEPS` steps, where float32 logits differ by more than the tolerance, or where
        the sequential engine has no answer.
    """
    differences, excess, flips, continuations, broken = [0.0], [0.0], [], 0, []
    for row, answer in pairs:
        if answer.logits is None:
            broken.append({"uid": row["uid"], "reason": answer.fault})
            continue
        recorded = np.asarray(row["candidate_logits"], dtype=np.float32)
        differences.append(float(np.abs(answer.logits[candidates] - recorded).max()))
        excess.append(differences[-1] / max(1.0, float(np.abs(answer.logits).max())))
        continuations += list(answer.new_ids) == row["new_ids"]
        if answer.new_ids[0] != row["argmax_id"]:
            flips.append(flip(row, answer, dtype))
    largest = max(differences)
    close = all(entry["steps"] <= STEPS for entry in flips) and (
        dtype != "fp32" or max(excess) <= FLOAT32_TOLERANCE
    )
    return {
        "compared": len(pairs),
        "same_first_token": len(pairs) - len(flips) - len(broken),
        "same_continuation": continuations,
        "largest_difference": largest,
        "flips": flips,
        "unanswered": broken,
        "passed": not broken and (close or precision == "int8"),
    }


def check_engine(
    engine: Engine, prompts: Sequence[str], pixels: Image.Image, dtype: str, precision: str
) -> None:
    """Ask a few prompts about one picture both ways, before the engine is let loose.

    Raises:
        AuditError: the answers are not the sequential engine's.
    """
    asked = tuple(Question(str(place), "probe", None, text, text) for place, text in enumerate(prompts))
    job = ImageJob(pixels, asked)
    reference = {answer.question.uid: answer for answer in Sequential(engine.model, 1, 1).answer([job])}
    every = list(range(engine.model.vocabulary_rows))
    pairs = []
    for answer in engine.answer([job]):
        if answer.logits is None:
            raise AuditError(f"{engine.model.spec.name}: the probe question has no answer ({answer.fault}).")
        row = {
            "uid": answer.question.uid,
            "image": "probe",
            "question": answer.question.question,
            "argmax_id": answer.new_ids[0],
            "candidate_logits": answer.logits.tolist(),
            "new_ids": list(answer.new_ids[:1]),
        }
        pairs.append((row, reference[answer.question.uid]))
    found = compare(pairs, every, dtype, precision)
    if not found["passed"]:
        raise AuditError(
            f"{engine.model.spec.name}: engine {type(engine).__name__} does not give the sequential engine's "
            f"answers (logits differ by {found['largest_difference']:.3g}); use engine sequential."
        )


def flip(row: Row, answer: Answer, dtype: str) -> dict[str, Any]:
    """Describe a first token that differs: by how much the sequential engine prefers its own."""
    logits = answer.logits
    if logits is None:
        raise ValueError("an answer without logits cannot be compared")
    mine, theirs = answer.new_ids[0], row["argmax_id"]
    margin = float(logits[mine]) - float(logits[theirs])
    return {
        "uid": row["uid"],
        "question": row["question"],
        "image": row["image"],
        "recorded": theirs,
        "sequential": mine,
        "margin": margin,
        "steps": margin / step_size(float(logits[mine]), dtype),
    }
