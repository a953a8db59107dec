"""The disturbed pictures of contrastive decoding, drawn for each question from a seed of its own.

Diffusion noise as Leng et al. 2024 (Visual Contrastive Decoding) define it: q(x_T | x_0) of a diffusion
of 1,000 steps, on the processed (normalised) pixels. The uniform-noise picture is the variant of the code
behind the paper: random 8-bit RGB in place of the image, before any processing.
"""

import hashlib
import math
from functools import cache

import numpy as np
import torch
from PIL import Image

from readout_audit.models.base import ImageInputs, VisionLanguageModel
from readout_audit.signals.settings import NOISE_STEPS

_BETA_FIRST, _BETA_RANGE, _SIGMOID_REACH = 1e-5, 0.5e-2 - 1e-5, 6.0


@cache
def alpha_bars() -> tuple[float, ...]:
    """Return ᾱ_t for t = 0 to 999: the product over s ≤ t of 1 − β_s.

    β_s = sigmoid(x_s)·(0.005 − 10⁻⁵) + 10⁻⁵ with x_s evenly spaced from −6 to 6, the schedule of VCD's
    released code.
    """
    places = np.linspace(-_SIGMOID_REACH, _SIGMOID_REACH, NOISE_STEPS)
    betas = _BETA_RANGE / (1.0 + np.exp(-places)) + _BETA_FIRST
    return tuple(np.cumprod(1.0 - betas).tolist())


def diffused(pixels: torch.Tensor, noise: torch.Tensor, step: int) -> torch.Tensor:
    """Return √ᾱ_T·x₀ + √(1 − ᾱ_T)·ε, in the dtype of `pixels`, computed in float32."""
    kept = alpha_bars()[step]
    mixed = math.sqrt(kept) * pixels.float() + math.sqrt(1.0 - kept) * noise.float().to(pixels.device)
    return mixed.to(pixels.dtype)


def generator(purpose: str, seed: int, uid: str) -> np.random.Generator:
    """Return the generator of one question's noise; neither order nor sharding can change it."""
    key = hashlib.sha256(f"{purpose}\n{uid}".encode()).digest()
    return np.random.default_rng([seed, *np.frombuffer(key, dtype="<u4").tolist()])


def frames_of(model: VisionLanguageModel) -> int | None:
    """Return how many frames a model's patches hold, for processors that treat a picture as a short film."""
    processor = getattr(model, "processor", None)
    frames = getattr(getattr(processor, "image_processor", None), "temporal_patch_size", None)
    return None if frames is None else int(frames)


def diffused_inputs(image: ImageInputs, uid: str, step: int, seed: int, frames: int | None) -> ImageInputs:
    """Return an image's inputs with diffusion noise on every pixel tensor.

    Args:
        image: processed inputs.
        uid: of the question.
        step: T, 0 to 999.
        seed: of the settings.
        frames: how many frames a Qwen2-VL patch holds (`frames_of`). A still picture fills them with copies
            of itself, so they get the same noise.
    """
    rng = generator("vcd", seed, uid)
    tensors = dict(image.tensors)
    for name in sorted(tensors):
        if name.startswith("pixel_values") and tensors[name].is_floating_point():
            noise = _gaussian(rng, tensors[name].shape, frames if "image_grid_thw" in tensors else None)
            tensors[name] = diffused(tensors[name], noise, step)
    return ImageInputs(tensors, image.n_tokens)


def _gaussian(rng: np.random.Generator, shape: torch.Size, frames: int | None) -> torch.Tensor:
    """Draw standard normal noise on the CPU, the same on every machine.

    Args:
        rng: drawn from.
        shape: of the result.
        frames: with it, `shape` is (patches, 3·frames·side·side) and the frames of a patch share noise.
    """
    if frames is None:
        return torch.from_numpy(rng.standard_normal(tuple(shape), dtype=np.float32))
    patches, values = shape
    pixels = values // (3 * frames)
    one = torch.from_numpy(rng.standard_normal((patches, 3, 1, pixels), dtype=np.float32))
    return one.expand(patches, 3, frames, pixels).reshape(patches, values)


def uniform_picture(uid: str, side: int, seed: int) -> Image.Image:
    """Return a side × side picture whose 8-bit RGB values are drawn uniformly from 0 to 255."""
    rng = generator("vcd_uniform", seed, uid)
    return Image.fromarray(rng.integers(0, 256, (side, side, 3), dtype=np.uint8))
