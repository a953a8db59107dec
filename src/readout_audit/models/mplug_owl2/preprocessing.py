"""Pictures to model input: a square by bicubic resize, then CLIP's processor (docs/mplug-owl2.md §7)."""

from collections.abc import Sequence
from pathlib import Path

from PIL import Image
from torch import Tensor
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

from readout_audit.errors import AuditError
from readout_audit.models.mplug_owl2.configuration import read_settings

PROCESSOR_SETTINGS = (
    *("do_convert_rgb", "do_resize", "size", "resample", "do_center_crop", "crop_size"),
    *("do_rescale", "rescale_factor", "do_normalize", "image_mean", "image_std"),
)
"""Keys taken from the file: it may also name a class, which is not followed."""


def square(image: Image.Image) -> Image.Image:
    """Return the picture as RGB, resized to a square of its longer side; the aspect ratio is not kept (§7, 2)."""
    side = max(image.size)
    return image.convert("RGB").resize((side, side), resample=Image.Resampling.BICUBIC)


def load_image_processor(folder: Path, image_size: int) -> CLIPImageProcessorPil:
    """Read `preprocessor_config.json` and check that it makes pictures of the model's size.

    The Pillow-backed processor is the exact one; the torchvision-backed one is off by up to one step of 1/255 (§7).

    Args:
        folder: the checkpoint's folder.
        image_size: side in pixels that the vision encoder was built for.

    Raises:
        AuditError: the file is missing, unreadable, or makes pictures of another size.
    """
    path = folder / "preprocessor_config.json"
    settings = read_settings(path, "the image processor's configuration")
    processor = CLIPImageProcessorPil(**{key: settings[key] for key in PROCESSOR_SETTINGS if key in settings})
    size, crop = dict(processor.size), dict(processor.crop_size)
    if size != {"shortest_edge": image_size} or crop != {"height": image_size, "width": image_size}:
        raise AuditError(
            f"{path}: size {size} and crop_size {crop} do not make pictures of {image_size} × {image_size}, which the "
            f"vision encoder of config.json needs; use the files published with the mPLUG-Owl2 weights."
        )
    return processor


def preprocess_images(images: Sequence[Image.Image], processor: CLIPImageProcessorPil) -> Tensor:
    """Return `[images, 3, size, size]` float32."""
    pixel_values: Tensor = processor([square(image) for image in images], return_tensors="pt")["pixel_values"]
    return pixel_values
