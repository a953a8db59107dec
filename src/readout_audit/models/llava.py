"""LLaVA-1.5 and everything saved as `LlavaForConditionalGeneration`, the demo models among them."""

from typing import Any

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
