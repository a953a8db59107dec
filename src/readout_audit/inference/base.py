"""The interface of an inference engine: images with their questions in, answers out."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from readout_audit.models.base import VisionLanguageModel


@dataclass(frozen=True)
class Question:
    """One distinct question.

    Attributes:
        uid: hash of (image namespace, image, question).
        image: file name of its image.
        object: the noun it asks about, where known.
        question: its exact text.
        prompt: the rendered prompt.
    """

    uid: str
    image: str
    object: str | None
    question: str
    prompt: str


@dataclass(frozen=True)
class ImageJob:
    """One image with the questions that are to be asked about it."""

    pixels: Image.Image
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Answer:
    """What the model gave to one question.

    Attributes:
        question: what was asked.
        n_prompt_tokens: length of the prompt, placeholders expanded.
        n_image_tokens: placeholders among them.
        ids: the prompt's ids with each run of placeholders as one, for reading.
        logits: (V,) float32, raw, at the position after the prompt.
        new_ids: greedy continuation, the ending id included when it was reached.
        fault: why there is no usable answer; the measured fields are then empty.
    """

    question: Question
    n_prompt_tokens: int = 0
    n_image_tokens: int = 0
    ids: tuple[int, ...] = ()
    logits: NDArray[np.float32] | None = None
    new_ids: tuple[int, ...] = ()
    fault: str | None = None


class Engine(ABC):
    """Asks a model the questions of some images.

    Attributes:
        model: the model.
        batch_size: how many questions may run side by side.
        max_new_tokens: longest continuation, in tokens.
        images_per_call: how many images `answer` likes to be given at once.
    """

    images_per_call: int = 1
    halvings: int = 0
    """How often an out-of-memory error made the engine's batches smaller."""

    def __init__(self, model: VisionLanguageModel, batch_size: int, max_new_tokens: int) -> None:
        """Take a loaded model."""
        self.model = model
        self.batch_size = batch_size
        self.max_new_tokens = max_new_tokens

    @abstractmethod
    def answer(self, jobs: Sequence[ImageJob]) -> Iterator[Answer]:
        """Yield one answer per question of `jobs`, in any order."""


def collapse_placeholders(ids: Sequence[int], placeholder: int) -> tuple[int, ...]:
    """Return `ids` with every run of `placeholder` shortened to one."""
    return tuple(
        token_id
        for place, token_id in enumerate(ids)
        if token_id != placeholder or place == 0 or ids[place - 1] != placeholder
    )
