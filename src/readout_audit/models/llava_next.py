"""LLaVA-1.6 (LLaVA-NeXT): the picture as a whole and in tiles, as many as its shape asks for."""

from collections.abc import Sequence

import torch

from readout_audit.models.base import ImageInputs
from readout_audit.models.huggingface import HuggingFaceModel


class LlavaNext(HuggingFaceModel):
    """A vision tower over up to five tiles, a projector, a causal language model.

    The tiles depend on the picture's shape, and so does the number of placeholders; both come from the
    checkpoint's own processor.
    """

    network_class = "LlavaNextForConditionalGeneration"
    processor_class = "LlavaNextProcessor"

    def see(self, images: Sequence[ImageInputs]) -> list[torch.Tensor]:
        """See images one by one: their tiles are a batch already, and differ in number."""
        return [features for image in images for features in super(LlavaNext, self).see([image])]
