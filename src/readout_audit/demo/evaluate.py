"""Ask a demo model every question of the demo's three splits and score two readouts of the same logits.

A short helper for the acceptance of a training; the pipeline's own engine, readouts and scores are others,
and what they give for the shipped models is in the demo's tables.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from transformers import LlavaForConditionalGeneration, LlavaProcessor

from readout_audit.datasets.sampling import Question
from readout_audit.demo.architecture import Recipe, answer_id
from readout_audit.demo.tokenizers import ANSWERS
from readout_audit.scores.confusion import Confusion

BATCH = 32


class Evaluation(NamedTuple):
    """`scores[split][readout]` for the readouts two_token and eight_token, and how often each piece is emitted."""

    scores: dict[str, dict[str, Confusion]]
    emitted: dict[str, int]


def answer_ids(processor: LlavaProcessor, forms: Sequence[str]) -> list[int]:
    """Return the ids of pieces as this vocabulary writes them, with and without the space."""
    vocabulary = processor.tokenizer.get_vocab()
    return sorted(
        vocabulary[prefix + form]
        for form in forms
        for prefix in ("", "▁", "Ġ")
        if prefix + form in vocabulary
    )


def in_context_pieces(recipe: Recipe, processor: LlavaProcessor) -> frozenset[str]:
    """Return the two pieces a careful answer is written in after this model's prompt."""
    ids = [answer_id(recipe, processor.tokenizer, recipe.answer_prefix + word) for word in ("Yes", "No")]
    return frozenset(processor.tokenizer.convert_ids_to_tokens(ids))


def evaluate(
    model: LlavaForConditionalGeneration,
    processor: LlavaProcessor,
    recipe: Recipe,
    questions: Mapping[str, Sequence[Question]],
    images: Path,
) -> Evaluation:
    """Score a model on the questions of every split, with the readout ids of its own vocabulary.

    Args:
        model: in evaluation mode, float32.
        processor: its processor.
        recipe: gives the prompt.
        questions: split -> rows.
        images: folder with the pictures.
    """
    distinct = sorted({(row.image, row.text) for rows in questions.values() for row in rows})
    logits = first_logits(model, processor, recipe, distinct, images)
    row_of = {asked: index for index, asked in enumerate(distinct)}
    vocabulary = processor.tokenizer.get_vocab()
    yes_forms, no_forms = ([a for a in ANSWERS if a.lower() == word] for word in ("yes", "no"))
    margins = {
        "two_token": logits[:, vocabulary["yes"]] - logits[:, vocabulary["no"]],
        "eight_token": logits[:, answer_ids(processor, yes_forms)].max(axis=1)
        - logits[:, answer_ids(processor, no_forms)].max(axis=1),
    }
    scores = {
        split: {
            readout: score(
                [row.label == "yes" for row in rows],
                [bool(margin[row_of[row.image, row.text]] > 0) for row in rows],
            )
            for readout, margin in margins.items()
        }
        for split, rows in questions.items()
    }
    pieces = processor.tokenizer.convert_ids_to_tokens(logits.argmax(axis=1).tolist())
    return Evaluation(scores, dict(Counter(pieces).most_common()))


def score(truth: Sequence[bool], answers: Sequence[bool]) -> Confusion:
    """Count the four outcomes."""
    counts = Counter(zip(truth, answers, strict=True))
    return Confusion(
        tp=counts[True, True], fp=counts[False, True], tn=counts[False, False], fn=counts[True, False]
    )


@torch.inference_mode()
def first_logits(
    model: LlavaForConditionalGeneration,
    processor: LlavaProcessor,
    recipe: Recipe,
    asked: Sequence[tuple[str, str]],
    images: Path,
) -> np.ndarray:
    """Return [n, vocabulary] float32: the raw logits at the answer position of each (image, question text)."""
    found = []
    for start in range(0, len(asked), BATCH):
        batch = asked[start : start + BATCH]
        inputs = processor(
            images=[Image.open(images / image).convert("RGB") for image, _ in batch],
            text=[recipe.prompt.format(question=text) for _, text in batch],
            return_tensors="pt",
            padding=True,
        )
        found.append(model(**inputs, logits_to_keep=1).logits[:, -1].float().numpy())
    return np.concatenate(found)
