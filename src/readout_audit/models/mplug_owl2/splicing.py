"""Token ids with image placeholders become the decoder's input (docs/mplug-owl2.md §4, §5.4)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from readout_audit.errors import AuditError

IMAGE_TOKEN_ID = -200
"""Stands for an image among the ids. It is in no vocabulary and must not reach the embedding table (§4)."""


@dataclass(frozen=True)
class PaddedPrompts:
    """Prompts of different lengths as one batch of length `L`, images expanded.

    Positions are counted without the padding and the mask hides it, so every row is what it would be alone: the
    original is wrong here and is not imitated (§5.4).

    Attributes:
        input_ids: `[batch, L]` int64, -200 at every vector of an image, 0 at padding.
        position_ids: `[batch, L]` int64, counted per row from its first real position; 0 at padding.
        attention_mask: `[batch, L]` int64, 1 at real positions.
        lengths: `[batch]` int64, real positions per row.
    """

    input_ids: Tensor
    position_ids: Tensor
    attention_mask: Tensor
    lengths: Tensor

    @property
    def last(self) -> Tensor:
        """`[batch]`: index of each row's last real position."""
        index = torch.arange(self.input_ids.shape[1], device=self.input_ids.device)
        return (self.attention_mask * index).amax(dim=1)


def expand_ids(prompt: Sequence[int], vectors_per_image: int) -> list[int]:
    """Repeat each placeholder once per vector of its image, so that ids and positions count alike (§4)."""
    return [token for one in prompt for token in [one] * (vectors_per_image if one == IMAGE_TOKEN_ID else 1)]


def pad_prompts(
    prompts: Sequence[Sequence[int]], padding_side: Literal["left", "right"], device: torch.device
) -> PaddedPrompts:
    """Put expanded prompts of different lengths, none of them empty, into one batch."""

    def pad(rows: list[Tensor]) -> Tensor:
        return pad_sequence(rows, batch_first=True, padding_side=padding_side).to(device)

    return PaddedPrompts(
        input_ids=pad([torch.tensor(row) for row in prompts]),
        position_ids=pad([torch.arange(len(row)) for row in prompts]),
        attention_mask=pad([torch.ones(len(row), dtype=torch.long) for row in prompts]),
        lengths=torch.tensor([len(row) for row in prompts], device=device),
    )


def splice(input_ids: Tensor, images: Tensor, embed: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Embed expanded ids, each image's vectors in the place of its placeholders, in order (§4).

    Args:
        input_ids: `[batch, L]` expanded ids.
        images: `[images, vectors, width]`, over the rows of the batch in order.
        embed: the embedding table.

    Returns:
        `[batch, L, width]` embeddings and `[batch, L]` modality indicators (0 text, 1 image).

    Raises:
        AuditError: the placeholders are not as many as the vectors.
    """
    is_image = input_ids == IMAGE_TOKEN_ID
    places, vectors = int(is_image.sum()), images.shape[0] * images.shape[1]
    if places != vectors:
        raise AuditError(
            f"The prompts hold {places} image positions but {images.shape[0]} images of {images.shape[1]} vectors "
            f"were given; write <|image|> once for each image."
        )
    embeds = embed(input_ids.masked_fill(is_image, 0))
    filled = embeds.masked_scatter(is_image[..., None], images.to(embeds))
    return filled, is_image.long()
