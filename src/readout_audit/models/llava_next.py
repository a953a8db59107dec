"""LLaVA-1.6 (LLaVA-NeXT): the picture as a whole and in tiles, as many as its shape asks for."""

from collections.abc import Sequence
from typing import Any

import torch

from readout_audit.models.base import ImageInputs
from readout_audit.models.huggingface import HuggingFaceModel
from readout_audit.models.llava import only_used_layers


class LlavaNext(HuggingFaceModel):
    """A vision tower over up to five tiles, a projector, a causal language model.

    The tiles depend on the picture's shape, and so does the number of placeholders; both come from the
    checkpoint's own processor.
    """

    network_class = "LlavaNextForConditionalGeneration"
    processor_class = "LlavaNextProcessor"

    @torch.inference_mode()
    def see(self, images: Sequence[ImageInputs]) -> list[torch.Tensor]:
        """See images one by one: their tiles are a batch already, and differ in number."""
        network: Any = self.network
        with only_used_layers(network):
            outputs = [network.get_image_features(**image.tensors, return_dict=True) for image in images]
        return [output.pooler_output[0] for output in outputs]
