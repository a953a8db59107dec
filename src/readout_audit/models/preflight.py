"""Checks of one model under one template, in the job, before an hour of GPU time goes into it.

Each finds a mistake that would otherwise give plausible, wrong answers. Every failure is one sentence that
names the model, its processor and the library versions.
"""

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import transformers
from PIL import Image

from readout_audit.errors import AuditError
from readout_audit.models import registry
from readout_audit.models.base import Encoded, ModelSpec, UnanswerableError, VisionLanguageModel
from readout_audit.models.precision import found_dtypes
from readout_audit.models.templates import PROBE_QUESTION, Template, render
from readout_audit.tokens.tokenmap import check_boundary, check_disjoint, swallowing_forms

LOGGER = logging.getLogger(__name__)

ATTENTION_TOLERANCE = 0.1
"""Share of the logits' range by which two attention implementations may differ."""

PROBE_SIZE = (320, 240)
"""Width and height of the picture preflight shows: no square, so that crop and pad differ."""


@dataclass(frozen=True)
class Preflight:
    """What preflight found, kept with the records.

    Attributes:
        prompt: the rendered probe prompt.
        first_input_ids: its first eight ids.
        n_image_tokens: placeholders in it.
        pixels_sha256: hash of the probe picture's processed pixel tensors, float32.
        parameter_dtypes: parameters by dtype.
        processing: how images are processed.
    """

    prompt: str
    first_input_ids: list[int]
    n_image_tokens: int
    pixels_sha256: str
    parameter_dtypes: dict[str, int]
    processing: dict[str, Any]


def load(adapter: str, spec: ModelSpec) -> VisionLanguageModel:
    """Load a model through the adapter of that name.

    Raises:
        AuditError: it cannot be loaded as asked.
    """
    family = registry.get(adapter)
    processor = str(getattr(family, "processor_class", family.__name__))
    with explained(f"preflight of {spec.name}", spec, processor):
        return family(spec)


def run(model: VisionLanguageModel, template: Template, token_map: dict[str, Any]) -> Preflight:
    """Check a loaded model under a template.

    Raises:
        AuditError: a check failed.
    """
    where = f"preflight of {model.spec.name} under template {template.name}"
    with explained(where, model.spec, processor_of(model)):
        prompt, encoded = check_prompt(model, template)
        check_tokens(model, template, prompt, token_map)
        check_forward(model, encoded)
        check_attention(model, encoded)
    LOGGER.info("%s: pictures by %s", model.spec.name, picture_words(model.describe_processing()))
    return Preflight(
        prompt=prompt,
        first_input_ids=encoded.ids[:8].tolist(),
        n_image_tokens=encoded.image.n_tokens,
        pixels_sha256=pixel_hash(encoded),
        parameter_dtypes=found_dtypes(model.network),
        processing=model.describe_processing(),
    )


@contextmanager
def explained(where: str, spec: ModelSpec, processor: str) -> Iterator[None]:
    """Turn what stops a preflight into one sentence that names everything it may come from.

    Raises:
        AuditError: something inside was refused, or did not fit into memory.
    """
    try:
        yield
    except (AuditError, UnanswerableError) as error:
        raise AuditError(f"{where}: {str(error).rstrip('.')} [{involved(spec, processor)}].") from error
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise AuditError(
            f"{where}: the memory of {spec.device} does not suffice in {spec.precision}; use nf4, or a GPU with "
            f"more [{involved(spec, processor)}]."
        ) from error


_ABOUT_SIZE = (
    *("image_mode", "before", "size", "crop_size", "min_pixels", "max_pixels", "image_grid_pinpoints"),
    *("patch_size", "merge_size", "resample"),
)


def picture_words(processing: dict[str, Any]) -> str:
    """Return in one line how pictures are cut, padded and limited in size."""
    left_out = set() if processing.get("do_center_crop") else {"crop_size"}
    said = [
        f"{name} {processing[name]}"
        for name in _ABOUT_SIZE
        if name not in left_out and processing.get(name) is not None
    ]
    cut = "centre crop" if processing.get("do_center_crop") else "no crop"
    return ", ".join([str(processing["class"]), cut, *said])


def processor_of(model: VisionLanguageModel) -> str:
    """Return the class of what prepares a model's pictures."""
    return type(getattr(model, "processor", model)).__name__


def involved(spec: ModelSpec, processor: str) -> str:
    """Return the processor, checkpoint and library versions a failure may come from."""
    return (
        f"processor {processor}, checkpoint {spec.folder.name}, "
        f"transformers {transformers.__version__}, torch {torch.__version__}"
    )


def probe_image() -> Image.Image:
    """Return a fixed picture: smooth ramps of red and green, and a blue disc off centre."""
    width, height = PROBE_SIZE
    y, x = np.mgrid[0:height, 0:width]
    disc = (x - width * 0.7) ** 2 + (y - height * 0.4) ** 2 < (height * 0.2) ** 2
    channels = [x * 255 // (width - 1), y * 255 // (height - 1), np.where(disc, 255, 40)]
    return Image.fromarray(np.stack(channels, axis=-1).astype(np.uint8))


def check_prompt(model: VisionLanguageModel, template: Template) -> tuple[str, Encoded]:
    """Check the rendered text, the first ids and the placeholders; return prompt and encoding."""
    prompt = render(template, PROBE_QUESTION, model.tokenizer, model.spec.folder)
    pinned = template.pinned.get("prompt")
    if pinned is not None and pinned != prompt:
        raise AuditError(f"the prompt renders as {prompt!r}, not as the pinned {pinned!r}")
    encoded = model.encode(prompt, model.prepare_image(probe_image()))
    check_start(model, template, encoded.ids.tolist())
    placeholders = int((encoded.ids == model.image_token_id).sum())
    features = model.visual_features(encoded.image)
    if features is not None and placeholders != features:
        raise AuditError(
            f"the prompt has {placeholders} image placeholders but the model makes {features} visual "
            f"features; the processor's patch size or selection does not fit the checkpoint"
        )
    return prompt, encoded


def check_start(model: VisionLanguageModel, template: Template, ids: list[int]) -> None:
    """Check the pinned first ids of the text, and that exactly one start token leads it."""
    text = [token_id for token_id in ids if token_id != model.image_token_id]
    pinned = template.pinned.get("first_ids")
    if pinned is not None and text[: len(pinned)] != pinned:
        raise AuditError(f"the prompt's text starts with ids {text[: len(pinned)]}, pinned are {pinned}")
    start = model.tokenizer.bos_token_id
    if start is None:
        return
    leading = next((place for place, token_id in enumerate(text) if token_id != start), len(text))
    adds = model.tokenizer.encode("")[:1] == [start]
    if leading > 1 or (adds and leading != 1):
        raise AuditError(f"the prompt has {leading} leading start tokens (id {start}), not 1")


def check_tokens(
    model: VisionLanguageModel, template: Template, prompt: str, token_map: dict[str, Any]
) -> None:
    """Check that yes and no can be told apart, the answer boundary, and that the token map fits."""
    if token_map["vocabulary_size"] != len(model.tokenizer):
        raise AuditError(
            f"the token map is of a vocabulary of {token_map['vocabulary_size']} tokens, "
            f"the checkpoint's has {len(model.tokenizer)}"
        )
    check_boundary(template, swallowing_forms(prompt, model.tokenizer))
    sets = token_map["in_context"].get(template.name)
    if sets is None:
        raise AuditError(f"the token map does not cover template {template.name}")
    check_disjoint(sets, "the in-context rule")
    check_disjoint(token_map["single"], "the one-token rule")
    outside = [
        i
        for ids in (*sets.values(), *token_map["single"].values())
        for i in ids
        if i >= model.vocabulary_rows
    ]
    if outside:
        raise AuditError(
            f"answer ids {outside} have no row in the output head of {model.vocabulary_rows} rows"
        )


def check_forward(model: VisionLanguageModel, encoded: Encoded) -> None:
    """Check that one forward pass gives finite logits, one per row of the head."""
    try:
        logits, _ = model.first_logits(encoded)
    except ValueError as error:
        raise AuditError(f"the forward pass is refused ({str(error).partition(chr(10))[0]})") from error
    if not bool(torch.isfinite(logits).all()):
        raise AuditError(
            f"a forward pass gives logits that are not finite in {model.spec.precision} with "
            f"{model.spec.attention} attention; try another of either"
        )


def check_attention(model: VisionLanguageModel, encoded: Encoded) -> None:
    """Check that another attention implementation gives about the same logits.

    Some kernels give garbage, or values that are not finite, on some hardware. Rounding makes the two differ
    a little in half precision; a difference of a tenth of the logits' range is no rounding.
    """
    network: Any = model.network
    other = "eager" if model.spec.attention == "sdpa" else "sdpa"
    mine, _ = model.first_logits(encoded)
    network.set_attn_implementation(other)
    try:
        theirs, _ = model.first_logits(encoded)
    finally:
        network.set_attn_implementation(model.spec.attention)
    difference = float((mine - theirs).abs().max())
    LOGGER.info(
        "%s: logits under %s and %s attention differ by at most %.2g",
        model.spec.name,
        model.spec.attention,
        other,
        difference,
    )
    if not difference <= ATTENTION_TOLERANCE * float(mine.max() - mine.min()):
        raise AuditError(
            f"logits under {model.spec.attention} and {other} attention differ by {difference:.3g}; one of "
            f"them is wrong on this machine, so compare both in fp32 and set attention to the right one"
        )


def pixel_hash(encoded: Encoded) -> str:
    """Return the SHA-256 of the image tensors' bytes, float ones as float32, names in order."""
    digest = hashlib.sha256()
    for name, tensor in sorted(encoded.image.tensors.items()):
        plain = tensor.float() if tensor.is_floating_point() else tensor
        digest.update(name.encode() + plain.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
