"""Train a demo CLIP: pictures against nouns, on scenes that no evaluation picture shares a seed with.

A picture shows several things, so each noun of what is there is a positive of its own against all nouns of
what is not; and each noun's pictures are set against the pictures without it. Half of the pictures are cut
to a random part, so that a crop of a scene is no foreign sight. Patch features get no loss of their own, as
in the published CLIPs: what their similarity tells is a by-product.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate
from transformers import CLIPModel

from readout_audit.demo.clip import ClipRecipe, build_image_processor, build_model, build_tokenizer
from readout_audit.demo.scenes import BACKGROUND, SIDE, draw_scene
from readout_audit.demo.training import optimise
from readout_audit.demo.world import CATEGORIES

MIN_PIXELS = 12
"""A category counts as shown in a part of a picture from this many pixels on."""

MIN_CUT = 21
"""Smallest side of a cut, in pixels: a cell of the 4 × 4 crops."""

CUT_SHARE = 0.5
TEXT_FORMS = ("{noun}", "a {noun}", "a photo of a {noun}")
"""Texts a noun is trained in; the bare noun is what the signals ask for by default."""

MAX_SCALE = 100.0
"""Largest factor of the cosines, as in CLIP."""


class ClipSchedule(NamedTuple):
    """How much training; one step sees `batch` pictures."""

    scenes: int = 6_000
    steps: int = 1_500
    batch: int = 64
    rate: float = 1.5e-3


FULL: dict[str, ClipSchedule] = {
    "tiny-clip-b": ClipSchedule(),
    "tiny-clip-l": ClipSchedule(steps=1_000),
}
SMOKE = ClipSchedule(scenes=64, steps=3, batch=16)
"""Enough to run every line; the model it makes knows nothing."""

Report = Callable[[dict[str, Any]], None]


class Pictures(NamedTuple):
    """Training scenes: pixels [n, SIDE, SIDE, 3] uint8, shows [n, SIDE, SIDE] int8 category or `BACKGROUND`."""

    pixels: npt.NDArray[np.uint8]
    shows: npt.NDArray[np.int8]


def train(recipe: ClipRecipe, schedule: ClipSchedule, report: Report) -> CLIPModel:
    """Train one demo CLIP from nothing; `report` receives the log, one dict at a time."""
    started = time.monotonic()
    pictures = draw_pictures(schedule.scenes)
    report({"stage": "scenes", "scenes": schedule.scenes, "seconds": round(time.monotonic() - started, 1)})
    model = build_model(recipe)
    model.train()
    losses = contrastive_losses(model, pictures, schedule.batch, np.random.default_rng([recipe.seed, 1]))
    groups = [{"params": list(model.parameters()), "lr": schedule.rate}]
    optimise("contrastive", groups, losses, schedule.steps, report)
    report({"stage": "done", "seconds": round(time.monotonic() - started, 1)})
    return model.eval()


def draw_pictures(count: int) -> Pictures:
    """Draw `count` training scenes with the category seen at each pixel."""
    pixels = np.empty((count, SIDE, SIDE, 3), dtype=np.uint8)
    shows = np.full((count, SIDE, SIDE), BACKGROUND, dtype=np.int8)
    for index in range(count):
        scene = draw_scene("train", index)
        pixels[index] = scene.pixels
        categories = np.array([placed.category for placed in scene.objects], dtype=np.int8)
        seen = scene.owner != BACKGROUND
        shows[index][seen] = categories[scene.owner[seen]]
    return Pictures(pixels, shows)


def shown(shows: npt.NDArray[np.int8]) -> npt.NDArray[np.bool_]:
    """Return [categories]: what a part of a picture shows enough of to count."""
    counts = np.bincount(shows[shows != BACKGROUND].ravel(), minlength=len(CATEGORIES))
    return counts >= MIN_PIXELS


def cut(rng: np.random.Generator) -> tuple[slice, slice]:
    """Return rows and columns of a random part of a picture, or of all of it."""
    if rng.random() >= CUT_SHARE:
        return slice(None), slice(None)
    side = int(rng.integers(MIN_CUT, SIDE))
    top, left = (int(value) for value in rng.integers(0, SIDE - side + 1, 2))
    return slice(top, top + side), slice(left, left + side)


def batches(
    pictures: Pictures, size: int, rng: np.random.Generator
) -> Iterator[tuple[Tensor, npt.NDArray[np.bool_]]]:
    """Yield normalised pixels [size, 3, SIDE, SIDE] and what they show [size, categories], for ever."""
    processor = build_image_processor()
    mean, spread = (
        torch.tensor(values).view(3, 1, 1) for values in (processor.image_mean, processor.image_std)
    )
    while True:
        order = rng.permutation(len(pictures.pixels))
        for start in range(0, len(order) - size + 1, size):
            chosen = order[start : start + size]
            parts = [cut(rng) for _ in chosen]
            pixels = torch.stack(
                [_enlarged(pictures.pixels[index][part]) for index, part in zip(chosen, parts, strict=True)]
            )
            present = [shown(pictures.shows[index][part]) for index, part in zip(chosen, parts, strict=True)]
            yield (pixels - mean) / spread, np.stack(present)


def _enlarged(pixels: npt.NDArray[np.uint8]) -> Tensor:
    """Return [3, SIDE, SIDE] in 0 to 1 of a square part of a picture."""
    values = torch.from_numpy(pixels.copy()).permute(2, 0, 1).float() / 255.0
    if values.shape[-1] == SIDE:
        return values
    return interpolate(values[None], size=(SIDE, SIDE), mode="bicubic")[0].clamp(0.0, 1.0)


def contrastive_losses(
    model: CLIPModel, pictures: Pictures, size: int, rng: np.random.Generator
) -> Iterator[Tensor]:
    """Yield the mean of the two directions' losses, pictures to nouns and nouns to pictures."""
    tokenizer = build_tokenizer()
    for pixels, present in batches(pictures, size, rng):
        form = TEXT_FORMS[int(rng.integers(len(TEXT_FORMS)))]
        texts = tokenizer(
            [form.format(noun=category.name) for category in CATEGORIES], padding=True, return_tensors="pt"
        )
        words = _unit(model.get_text_features(**texts).pooler_output)
        views = _unit(model.get_image_features(pixel_values=pixels).pooler_output)
        scores = model.logit_scale.exp().clamp(max=MAX_SCALE) * views @ words.T
        there = torch.from_numpy(present)
        yield (multi_positive_loss(scores, there) + multi_positive_loss(scores.T, there.T)) / 2


def multi_positive_loss(scores: Tensor, positive: Tensor) -> Tensor:
    """Return the mean over positives of −log softmax, each against its row's negatives alone.

    Args:
        scores: [rows, columns].
        positive: [rows, columns] bool; rows without a positive or without a negative say nothing.
    """
    against = torch.logsumexp(scores.masked_fill(positive, -torch.inf), dim=1, keepdim=True)
    losses: Tensor = nn.functional.softplus(against - scores)
    return losses[positive & torch.isfinite(against)].mean()


def _unit(vectors: Tensor) -> Tensor:
    unit: Tensor = vectors / vectors.norm(dim=-1, keepdim=True)
    return unit
