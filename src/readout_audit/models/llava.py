"""LLaVA-1.5 and everything saved as `LlavaForConditionalGeneration`, the demo models among them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from PIL import Image

from readout_audit.models.base import ImageInputs
from readout_audit.models.huggingface import HuggingFaceModel


class Llava(HuggingFaceModel):
    """A vision tower, a projector, a causal language model; one tile per image.

    The published checkpoint's processor resizes the short edge and crops the centre, which cuts away a
    third of a 640x427 picture; the original code pads to a square instead (`image_mode: pad`).
    """

    image_modes = ("as_is", "pad")
    network_class = "LlavaForConditionalGeneration"
    processor_class = "LlavaProcessor"

    def prepare_image(self, image: Image.Image) -> ImageInputs:
        """Pad first where the settings say so; see `VisionLanguageModel`."""
        if self.spec.image_mode == "pad":
            image = pad_to_square(image, self.processor.image_processor.image_mean)
        return super().prepare_image(image)

    @torch.inference_mode()
    def see(self, images: Sequence[ImageInputs]) -> list[torch.Tensor]:
        """Run the layers of the vision tower that are used; see `VisionLanguageModel`."""
        network: Any = self.network
        pixels = torch.cat([image.tensors["pixel_values"] for image in images])
        with only_used_layers(network):
            output = network.get_image_features(pixel_values=pixels, return_dict=True)
        return list(output.pooler_output)


@contextmanager
def only_used_layers(network: Any) -> Iterator[None]:
    """Let the vision tower's unused last layers pass their input on.

    LLaVA reads the features of the last layer but one, and transformers runs the last one all the same. The
    layers stay where they are, since transformers counts and hooks them.
    """
    feature_layer, tower = network.config.vision_feature_layer, network.model.vision_tower
    unused = -feature_layer - 1 if isinstance(feature_layer, int) and feature_layer < 0 else 0
    layers = getattr(getattr(tower, "encoder", None), "layers", [])
    idle = list(layers)[len(layers) - unused :]
    for layer in idle:
        layer.forward = _pass_on
    try:
        yield
    finally:
        for layer in idle:
            del layer.forward


def _pass_on(hidden_states: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return hidden_states


def pad_to_square(image: Image.Image, mean: Any) -> Image.Image:
    """Return the image centred on a square of its longer edge, filled with the mean colour.

    As `expand2square` of the original LLaVA code: the mean is in [0, 1] per channel, truncated to 8 bits;
    an odd pixel goes below or to the right.
    """
    width, height = image.size
    edge = max(width, height)
    square = Image.new("RGB", (edge, edge), tuple(int(channel * 255) for channel in mean))
    square.paste(image, ((edge - width) // 2, (edge - height) // 2))
    return square
