"""What a job is going to take, said before it starts: questions, images, tokens, memory, disk."""

from collections.abc import Sequence
from typing import Any

from readout_audit.inference.base import Question
from readout_audit.models.base import VisionLanguageModel

BYTES_PER_QUESTION = 600
"""Of the record file, compressed; measured on the demo's records and rounded up."""

PART_BYTES_PER_QUESTION = 1000
"""Of the part files, which compress less because they are small; measured likewise."""


def weight_bytes(model: VisionLanguageModel) -> int:
    """Return the bytes of all parameters and buffers as they are in memory."""
    tensors = [*model.network.parameters(), *model.network.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def cache_bytes(model: VisionLanguageModel, tokens: int) -> int:
    """Return the bytes of keys and values of `tokens` positions, from the sizes in the config."""
    config: Any = model.network.config
    text = config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    element = next(model.network.parameters()).element_size()
    return int(2 * text.num_hidden_layers * heads * width * max(element, 2) * tokens)


def job_lines(
    model: VisionLanguageModel,
    questions: Sequence[Question],
    n_image_tokens: int,
    batch_size: int,
    images_per_call: int,
) -> list[str]:
    """Return what a job is going to take, in two lines.

    Args:
        model: the loaded model.
        questions: what is still to be asked.
        n_image_tokens: placeholders of a picture (of the probe's, where they differ by shape).
        batch_size: questions side by side.
        images_per_call: images side by side.
    """
    images = len({question.image for question in questions})
    text = len(model.tokenizer.encode(questions[0].prompt)) if questions else 0
    prefix = n_image_tokens + text
    cache = cache_bytes(model, images_per_call * prefix + batch_size * text)
    weights = weight_bytes(model)
    disk = len(questions) * (BYTES_PER_QUESTION + PART_BYTES_PER_QUESTION)
    return [
        f"{len(questions)} distinct questions about {images} images; prompts of about {prefix} tokens, "
        f"{n_image_tokens} of them for the image",
        f"estimated: weights {weights / 2**30:.2f} GiB, caches {cache / 2**30:.2f} GiB, and activations beside "
        f"them; on disk {disk / 1e6:.1f} MB",
    ]
