"""A tiny model of every family, pictures, and prompts of different lengths."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from readout_audit.models import registry, tiny
from readout_audit.models.base import Encoded, ModelSpec, VisionLanguageModel

PROMPTS = {
    "instructblip": "Question: {question} Answer yes or no only. Answer:",
    "mplug_owl2": "USER: <|image|>{question} Answer yes or no only.\nASSISTANT:",
    "qwen2_vl": "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>{question}<|im_end|>\n",
}
PROMPT = "USER: <image>\n{question} Answer yes or no only.\nASSISTANT:"
QUESTIONS = ("Is there a dog in the image?", "Is there a traffic light in the image?", "Is there a cat?")
FAMILIES = sorted(tiny.FAMILIES)


def picture(seed: int, width: int = 70, height: int = 50) -> Image.Image:
    rng = np.random.default_rng(seed)
    return Image.fromarray(rng.integers(0, 256, size=(height, width, 3), dtype=np.uint8))


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Returns the folder of a family's tiny checkpoint, made on first use."""
    made: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in made:
            made[family] = tmp_path_factory.mktemp("checkpoints") / f"tiny-{family}"
            tiny.build(family, made[family])
        return made[family]

    return folder


@pytest.fixture(scope="session")
def load(checkpoint: Callable[[str], Path]) -> Callable[[str, str], VisionLanguageModel]:
    """Returns a family's tiny model under an attention implementation."""
    loaded: dict[tuple[str, str], VisionLanguageModel] = {}

    def model(family: str, attention: str = "sdpa") -> VisionLanguageModel:
        if (family, attention) not in loaded:
            spec = ModelSpec(
                family, checkpoint(family), "fp32", None, "as_is", attention, torch.device("cpu")
            )
            loaded[family, attention] = registry.get(family)(spec)
        return loaded[family, attention]

    return model


def encode(model: VisionLanguageModel, family: str, questions: tuple[str, ...] = QUESTIONS) -> list[Encoded]:
    """Prompts about one picture."""
    image = model.prepare_image(picture(1))
    template = PROMPTS.get(family, PROMPT)
    return [model.encode(template.replace("{question}", question), image) for question in questions]
