"""The interface every model is asked through, whatever its family.

A model turns an image into tensors once (`prepare_image`), a prompt into ids (`encode`), and answers by
plain forward passes: `first_logits` for the position after the prompt, `next_logits` for each token
after it. Logits are raw: no sampling, penalty, or generation default of a checkpoint ever touches them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import nn

from readout_audit.errors import AuditError

ATTENTION = ("sdpa", "eager")
"""Attention implementations that a model may be asked with."""


class UnanswerableError(Exception):
    """One question, or one image, that this model cannot be asked; its rows become `invalid`."""


@dataclass(frozen=True)
class ModelSpec:
    """What to load: the parts of the settings a model adapter needs.

    Attributes:
        name: the model's name in the config.
        folder: local checkpoint folder.
        precision: one of `precision.PRECISIONS`.
        compute_dtype: dtype of arithmetic under int8 and nf4.
        image_mode: `as_is` (what the checkpoint's own processor does) or `pad` (pad to a square with the
            mean colour first).
        attention: attention implementation, one of `ATTENTION`.
        device: where to run.
    """

    name: str
    folder: Path
    precision: str
    compute_dtype: str | None
    image_mode: str
    attention: str
    device: torch.device


@dataclass(frozen=True)
class ImageInputs:
    """One image, ready for the model.

    Attributes:
        tensors: keyword arguments of the model's forward pass, a batch of one, on the model's device.
        n_tokens: how many placeholder tokens stand for the image in the prompt.
    """

    tensors: dict[str, torch.Tensor]
    n_tokens: int


@dataclass(frozen=True)
class Encoded:
    """One prompt with its image.

    Attributes:
        prompt: rendered text, the image placeholder as written.
        ids: (n,) int64 on the CPU, the placeholder expanded to `image.n_tokens`.
        image: the image the prompt is about.
        extra: further keyword arguments of the forward pass that depend on the text.
    """

    prompt: str
    ids: torch.Tensor
    image: ImageInputs
    extra: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass
class Decoding:
    """Where one continuation stands: the cache of everything read so far, and its length in tokens."""

    cache: Any
    length: int
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DecoderStep:
    """New positions for the decoder, a batch of rows.

    Attributes:
        vectors: (batch, n, width) input vectors.
        positions: (axes, batch, n) position ids.
        is_image: (batch, n), true where a vector stands for a part of the image.
        allowed: (batch, n, cached + n), true where a position may look; None for plain causal order.
    """

    vectors: torch.Tensor
    positions: torch.Tensor
    is_image: torch.Tensor
    allowed: torch.Tensor | None


class VisionLanguageModel(ABC):
    """A loaded model.

    Attributes:
        spec: what was loaded.
        network: the torch module, in evaluation mode.
        tokenizer: its tokenizer.
        image_token_id: the placeholder's id.
        eos_ids: ids that end an answer.
    """

    image_modes: tuple[str, ...] = ("as_is",)

    spec: ModelSpec
    network: nn.Module
    tokenizer: Any
    image_token_id: int
    eos_ids: frozenset[int]

    def __init__(self, spec: ModelSpec) -> None:
        """Load the model.

        Raises:
            AuditError: the folder, the precision, the image mode or the attention does not allow it.
        """
        if spec.image_mode not in self.image_modes:
            raise AuditError(
                f"{spec.name}: image_mode {spec.image_mode!r} is not one of {', '.join(self.image_modes)}."
            )
        if spec.attention not in ATTENTION:
            raise AuditError(
                f"{spec.name}: attention {spec.attention!r} is not one of {', '.join(ATTENTION)}."
            )
        self.spec = spec

    @abstractmethod
    def prepare_image(self, image: Image.Image) -> ImageInputs:
        """Return the model's inputs for one RGB image.

        Raises:
            UnanswerableError: the processor cannot take an image of this shape.
        """

    @abstractmethod
    def encode(self, prompt: str, image: ImageInputs) -> Encoded:
        """Return the ids of a rendered prompt, its placeholder expanded for `image`.

        Raises:
            UnanswerableError: the prompt does not hold exactly the placeholders it should.
        """

    @abstractmethod
    def first_logits(self, encoded: Encoded) -> tuple[torch.Tensor, Decoding]:
        """Return the raw logits after the prompt, (V,) float32, and the state to go on from.

        One plain forward pass over the whole prompt and its image.
        """

    @abstractmethod
    def next_logits(self, state: Decoding, token_id: int) -> torch.Tensor:
        """Append `token_id` and return the raw logits after it, (V,) float32; `state` moves on."""

    @abstractmethod
    def describe_processing(self) -> dict[str, Any]:
        """Return how images are processed: class, backend, crop or pad, size limits."""

    @abstractmethod
    def visual_features(self, image: ImageInputs) -> int | None:
        """Return how many visual features the network makes of `image`; None where it checks that itself."""

    shares_prefix: bool = False
    """Whether the hooks below are there, so that questions about one image can share work."""

    window: int | None = None
    """Sliding window of the decoder in tokens: longer prompts are asked alone, as the block mask knows none."""

    prefix_depends_on_question: bool = False
    """Whether what stands for the image in the decoder differs by question (InstructBLIP's Q-Former)."""

    def see(self, images: Sequence[ImageInputs]) -> list[torch.Tensor]:
        """Run the vision part once over `images`; return what `condition` needs of each."""
        raise NotImplementedError

    def condition(self, encoded: Sequence[Encoded], seen: torch.Tensor) -> list[torch.Tensor]:
        """Return, for each prompt about one seen image, the vectors of its placeholders, (tokens, width)."""
        return [seen] * len(encoded)

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the decoder's input vectors of text ids, (..., width); placeholders get any vector."""
        raise NotImplementedError

    def positions(self, encoded: Encoded) -> torch.Tensor:
        """Return the position ids of a prompt, (axes, n) int64 on the CPU; text goes on from the largest."""
        return torch.arange(len(encoded.ids))[None]

    def new_cache(self) -> Any:
        """Return an empty cache that keeps every position."""
        raise NotImplementedError

    def decode_step(self, step: DecoderStep, cache: Any) -> torch.Tensor:
        """Run the decoder over new positions, appending them to `cache`; return (batch, n, width)."""
        raise NotImplementedError

    def head(self, hidden: torch.Tensor) -> torch.Tensor:
        """Return the raw logits of decoder outputs, (m, width) to (m, V) float32."""
        raise NotImplementedError

    @property
    def vocabulary_rows(self) -> int:
        """Rows of the output head: ids below this have a logit."""
        return int(self.network.get_output_embeddings().weight.shape[0])  # type: ignore[operator]

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        """Return the text of `ids`, white space as the tokenizer gives it."""
        text = self.tokenizer.decode(
            ids, skip_special_tokens=skip_special_tokens, clean_up_tokenization_spaces=False
        )
        return str(text)

    def piece(self, token_id: int) -> str | None:
        """Return the vocabulary piece of an id; None for a row of the head that has no token."""
        piece = self.tokenizer.convert_ids_to_tokens(token_id) if token_id < len(self.tokenizer) else None
        return None if piece is None else str(piece)


def argmax_lowest(logits: torch.Tensor) -> torch.Tensor:
    """Return the index of the largest value along the last axis, the lowest index on a tie.

    `torch.argmax` does not say which of several equal maxima it returns. Logits must be finite.
    """
    positions = torch.arange(logits.shape[-1], device=logits.device)
    best = logits == logits.amax(dim=-1, keepdim=True)
    return torch.where(best, positions, logits.shape[-1]).amin(dim=-1)
