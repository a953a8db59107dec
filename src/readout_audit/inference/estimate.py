"""What a job is going to take, said before it starts: questions, images, tokens, memory, disk.

Questions and tokens are counted on the real prompts. Memory is an estimate from the sizes in the model's
configuration: weights, keys and values of one call of the engine, and the largest tensors that live at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from readout_audit.errors import AuditError
from readout_audit.inference.base import Question
from readout_audit.inference.packing import common_prefix
from readout_audit.inference.sizes import answer_bytes, expected_bytes, size
from readout_audit.models.base import ImageInputs, UnanswerableError, VisionLanguageModel
from readout_audit.models.precision import QUANTISED, compute_dtype

_SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads")
"""What a configuration must say for an estimate; models of other kinds than a transformer may not."""

_LAYER_WIDTHS, _LAYER_INNERS = 6, 3
"""Vectors of a decoder layer that live at once: input, norm, queries, keys, values, output; gate, up, product."""


@dataclass(frozen=True)
class Work:
    """What the waiting questions add up to, in tokens of the decoder.

    Attributes:
        questions: distinct questions.
        images: images they are about.
        image_tokens: placeholders of one picture (of the probe's, where they differ by shape).
        prefix_tokens: read once per image, over all images.
        own_tokens: read once per question, over all questions.
        longest_prefix: of one image.
        longest_own: of one question.
    """

    questions: int
    images: int
    image_tokens: int
    prefix_tokens: int
    own_tokens: int
    longest_prefix: int
    longest_own: int


def measure_work(
    model: VisionLanguageModel, questions: Sequence[Question], image_tokens: int, alone: bool
) -> Work:
    """Count the tokens of questions, each picture taken as `image_tokens` placeholders.

    Args:
        model: the loaded model.
        questions: what is still to be asked.
        image_tokens: placeholders of a picture.
        alone: whether questions are asked one by one, each with its whole prompt.
    """
    sharing = not (alone or model.prefix_depends_on_question)
    by_image: dict[str, list[torch.Tensor]] = {}
    for question in questions:
        by_image.setdefault(question.image, []).append(_ids(model, question.prompt))
    # One placeholder stands for all of them in `_ids`.
    more = image_tokens - 1
    prefixes, owns = [0], [0]
    for prompts in by_image.values():
        read = common_prefix(prompts) if sharing else 0
        prefixes.append(read + more if sharing else 0)
        owns += [len(ids) - read + (0 if sharing else more) for ids in prompts]
    return Work(
        len(questions), len(by_image), image_tokens, sum(prefixes), sum(owns), max(prefixes), max(owns)
    )


def _ids(model: VisionLanguageModel, prompt: str) -> torch.Tensor:
    """Return a prompt's ids with one placeholder for its picture."""
    if not model.shares_prefix:
        return torch.tensor(model.tokenizer.encode(prompt), dtype=torch.int64)
    try:
        return model.encode(prompt, ImageInputs({}, 1)).ids
    except UnanswerableError:
        return torch.zeros(1, dtype=torch.int64)


def loaded_bytes(model: VisionLanguageModel) -> int:
    """Return the bytes of all parameters and buffers as they are in memory."""
    tensors = [*model.network.parameters(), *model.network.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def weights_line(folder: Path, precision: str, declared_dtype: str | None, device: torch.device) -> str:
    """Return what a checkpoint's weights are going to take, before they are loaded.

    Raises:
        AuditError: the precision or its dtype is not known, or the GPU has less memory free than that.
    """
    compute_dtype(precision, declared_dtype)
    parameters, needed = expected_bytes(folder, precision, declared_dtype)
    line = f"{parameters / 1e6:,.1f} million parameters, about {size(needed)} in {precision}"
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        if needed > free:
            raise AuditError(
                f"{folder}: the weights take about {size(needed)} in {precision} and the GPU has {size(free)} of "
                f"{size(total)} free; use a smaller precision (nf4) or a larger GPU."
            )
        line += f"; {size(free)} of the GPU's {size(total)} are free"
    return line


def position_bytes(model: VisionLanguageModel) -> int:
    """Return the bytes of keys and values of one position, from the sizes in the config."""
    config: Any = model.network.config
    text = config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    return int(2 * text.num_hidden_layers * heads * width * _element(model))


def _element(model: VisionLanguageModel) -> int:
    return compute_dtype(model.spec.precision, model.spec.compute_dtype).itemsize


@dataclass(frozen=True)
class Memory:
    """Bytes that a job takes at its peak, estimated."""

    weights: int
    caches: int
    activations: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.caches + self.activations


def estimate_memory(
    model: VisionLanguageModel, work: Work, batch_size: int, images_per_call: int, max_new_tokens: int
) -> Memory | None:
    """Estimate what one call of the engine takes; None where the model's configuration does not say its sizes.

    Args:
        model: the loaded model.
        work: what is asked.
        batch_size: questions side by side.
        images_per_call: images side by side.
        max_new_tokens: longest continuation.
    """
    config: Any = model.network.config
    element, text = _element(model), config.get_text_config()
    if any(not isinstance(getattr(text, name, None), int) for name in _SIZES):
        return None
    prefix, own = images_per_call * work.longest_prefix, batch_size * work.longest_own
    positions = max(prefix, own)
    columns = work.longest_prefix + own // images_per_call
    inner = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    vectors = positions * (_LAYER_WIDTHS * text.hidden_size + _LAYER_INNERS * inner) * element
    # The mask as booleans and as numbers; every head's scores where attention is written out.
    scores = text.num_attention_heads * 4 if model.spec.attention == "eager" else 0
    mask = max(own * columns, prefix * work.longest_prefix) * (1 + element + scores)
    logits = batch_size * model.vocabulary_rows * (4 + element)
    unpacked = text.hidden_size * inner * element if model.spec.precision in QUANTISED else 0
    held = prefix + batch_size * (work.longest_own + max_new_tokens)
    return Memory(loaded_bytes(model), position_bytes(model) * held, vectors + mask + logits + unpacked)


def job_lines(work: Work, memory: Memory | None, device: torch.device) -> list[str]:
    """Return what a job is going to take, for people."""
    plain = work.prefix_tokens + work.own_tokens
    place = "GPU memory" if device.type == "cuda" else "memory"
    needed = "not known, since the model's configuration does not say its sizes"
    if memory is not None:
        needed = (
            f"{size(memory.total)} (weights {size(memory.weights)}, caches {size(memory.caches)}, activations "
            f"{size(memory.activations)})"
        )
    return [
        f"{work.questions:,} distinct questions about {work.images:,} images; {work.image_tokens:,} tokens a "
        f"picture; the decoder reads {plain:,} tokens: {work.prefix_tokens:,} of prefixes, once per image, and "
        f"{work.own_tokens:,} of the questions' own",
        f"estimated {place}: {needed}; on disk {answer_bytes(work.questions) / 1e6:.1f} MB",
    ]
