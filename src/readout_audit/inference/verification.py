"""Is the fast engine right on the real model? A sample of its records is asked again, one by one."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from readout_audit.contracts import OK
from readout_audit.errors import AuditError
from readout_audit.inference.base import Answer, Engine, ImageJob, Question
from readout_audit.inference.images import decode, load_file
from readout_audit.inference.records import Row
from readout_audit.inference.sequential import Sequential
from readout_audit.models.base import VisionLanguageModel
from readout_audit.models.precision import compute_dtype, dtype_name
from readout_audit.models.preflight import explained, probe_image, processor_of
from readout_audit.models.templates import PROBE_QUESTION, Template, render

TokenSets = tuple[list[int], list[int]]
"""The ids that a readout takes for yes, and for no."""

MANTISSA_BITS = {"fp32": 24, "bf16": 8, "fp16": 11}
"""Significant binary digits of each dtype, the hidden one included."""

STEPS = 2.0
"""A first token or decision that differs is a near-tie if its margin is no more than so many steps of the dtype."""

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


def decision_sets(described: dict[str, Any]) -> dict[str, TokenSets]:
    """Return, by readout, the yes ids and no ids of records described so, where their logits were kept.

    Args:
        described: metadata of a record file.
    """
    sets, kept = described["token_sets"], set(described["candidate_ids"])
    forms = sets["legacy"]
    eight = {answer: list(forms[answer].values()) for answer in ("yes", "no")}
    bare = {answer: [forms[answer][answer]] for answer in ("yes", "no")}
    rules = {"legacy_8tok": eight, "legacy_2tok": bare, "dynamic_single": sets["single"]}
    rules |= {"in_context": sets["in_context"], "vocab_scan": sets["scan"]}
    return {
        name: (rule["yes"], rule["no"])
        for name, rule in rules.items()
        if rule["yes"] and rule["no"] and kept.issuperset([*rule["yes"], *rule["no"]])
    }


def compare(
    pairs: Sequence[tuple[Row, Answer]],
    candidates: list[int],
    dtype: str,
    precision: str,
    sets: Mapping[str, TokenSets] | None = None,
) -> dict[str, Any]:
    """Compare records with sequential answers.

    Args:
        pairs: what `ask_again` returned.
        candidates: ids of the records' candidate logits.
        dtype: in which the model computes: `fp32`, `bf16` or `fp16`.
        precision: of the weights; under int8, which picks outlier columns per batch, differences are
            reported and never a failure.
        sets: yes ids and no ids of the readouts whose decisions are compared, among the candidates.

    Returns:
        Counts of equal first tokens and continuations, the largest difference of a candidate's logit, and
        every first token and every decision that differs with its margin in steps of `dtype`; `passed` is
        false where one of them was no near-tie, where float32 logits differ by more than the tolerance, or
        where the sequential engine has no answer.
    """
    differences, excess, flips, continuations, broken = [0.0], [0.0], [], 0, []
    decisions: list[dict[str, Any]] = []
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
        decisions += decision_flips(row, answer.logits, candidates, dtype, sets or {})
    largest = max(differences)
    close = all(entry["near_tie"] for entry in [*flips, *decisions]) and (
        dtype != "fp32" or max(excess) <= FLOAT32_TOLERANCE
    )
    return {
        "compared": len(pairs),
        "same_first_token": len(pairs) - len(flips) - len(broken),
        "same_continuation": continuations,
        "largest_difference": largest,
        "flips": flips,
        "readouts": sorted(sets or {}),
        "decision_flips": decisions,
        "unanswered": broken,
        "passed": not broken and (close or precision == "int8"),
    }


def decision_flips(
    row: Row,
    again: NDArray[np.float32],
    candidates: list[int],
    dtype: str,
    sets: Mapping[str, TokenSets],
) -> list[dict[str, Any]]:
    """Return the readouts that read a record otherwise than the sequential logits `again`, with the margin there.

    Steps are of `dtype` at the magnitude of the largest logit: small logits inherit the rounding of the vectors
    that the large ones are made from.
    """
    scale = float(np.abs(again).max())
    kept = dict(zip(candidates, row["candidate_logits"], strict=True))
    flips = []
    for name, (yes, no) in sets.items():
        recorded = max(kept[i] for i in yes) > max(kept[i] for i in no)
        for_yes, for_no = float(again[yes].max()), float(again[no].max())
        if recorded == (for_yes > for_no):
            continue
        flips.append(
            {
                **named(row),
                "readout": name,
                "recorded": "yes" if recorded else "no",
                "sequential": "no" if recorded else "yes",
                **margin_of(abs(for_yes - for_no), scale, dtype),
            }
        )
    return flips


PROBE_QUESTIONS = (
    PROBE_QUESTION,
    "Is there a traffic light behind the dog in the image?",
    "Is it?",
)
"""What an engine is asked about the probe picture before it is let loose: texts of different length."""


def check_engine(
    engine: Engine, template: Template, folder: Path, precision: str, declared_dtype: str | None
) -> None:
    """Ask a few questions about the probe picture both ways, before the engine is let loose.

    Raises:
        AuditError: the answers are not the sequential engine's.
    """
    if isinstance(engine, Sequential):
        return
    model = engine.model
    where = f"preflight of {model.spec.name} under template {template.name}"
    with explained(where, model.spec, processor_of(model)):
        prompts = [render(template, text, model.tokenizer, folder) for text in PROBE_QUESTIONS]
        asked = tuple(Question(text, "probe", None, text, text) for text in prompts)
        jobs = [ImageJob(probe_image(), asked)]
        found = compare_engine(engine, jobs, precision, compute_dtype(precision, declared_dtype))
        if found["unanswered"]:
            raise AuditError(f"the probe question has no answer ({found['unanswered'][0]['reason']})")
        if not found["passed"]:
            raise AuditError(
                f"engine {type(engine).__name__} does not give the sequential engine's answers (logits differ by "
                f"{found['largest_difference']:.3g}); use engine sequential"
            )


def compare_engine(
    engine: Engine,
    jobs: Sequence[ImageJob],
    precision: str,
    dtype: torch.dtype,
    sets: Mapping[str, TokenSets] | None = None,
) -> dict[str, Any]:
    """Return the comparison of an engine's first tokens with the sequential engine's, over every logit.

    Args:
        engine: what is compared.
        jobs: pictures with their questions; no two questions of one uid.
        precision: of the weights.
        dtype: in which the model computes.
        sets: as in `compare`.
    """
    again = {answer.question.uid: answer for answer in Sequential(engine.model, 1, 1).answer(jobs)}
    pairs = []
    for answer in engine.answer(jobs):
        if answer.logits is None:
            pairs.append((unmeasured(answer), answer))
            continue
        measured = {
            "argmax_id": answer.new_ids[0],
            "candidate_logits": answer.logits.tolist(),
            "new_ids": list(answer.new_ids[:1]),
        }
        pairs.append(({**unmeasured(answer), **measured}, again[answer.question.uid]))
    every = list(range(engine.model.vocabulary_rows))
    return compare(pairs, every, dtype_name(dtype), precision, sets)


def unmeasured(answer: Answer) -> Row:
    """Return what identifies an answer's question, as a row has it."""
    question = answer.question
    return {"uid": question.uid, "image": question.image, "question": question.question}


def flip(row: Row, answer: Answer, dtype: str) -> dict[str, Any]:
    """Describe a first token that differs: by how much the sequential engine prefers its own."""
    logits = answer.logits
    if logits is None:
        raise ValueError("an answer without logits cannot be compared")
    mine, theirs = answer.new_ids[0], row["argmax_id"]
    margin = float(logits[mine]) - float(logits[theirs])
    return {
        **named(row),
        "recorded": theirs,
        "sequential": mine,
        **margin_of(margin, float(logits[mine]), dtype),
    }


def margin_of(margin: float, scale: float, dtype: str) -> dict[str, Any]:
    """Return a margin, in steps of `dtype` at the magnitude of `scale` too, and whether it is a near-tie.

    In float32 a step is far below what two orders of summation differ by; there the tolerance decides.
    """
    steps = margin / step_size(scale, dtype)
    tolerated = dtype == "fp32" and margin <= FLOAT32_TOLERANCE * max(1.0, abs(scale))
    return {"margin": margin, "steps": steps, "near_tie": steps <= STEPS or tolerated}


def named(row: Row) -> dict[str, Any]:
    """Return what says which question a flip is about."""
    return {"uid": row["uid"], "question": row["question"], "image": row["image"]}
