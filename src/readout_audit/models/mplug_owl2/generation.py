"""Greedy decoding from one prompt pass and a cache (docs/mplug-owl2.md §5.3, §6)."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from readout_audit.models.base import argmax_lowest
from readout_audit.models.mplug_owl2.model import MplugOwl2ForCausalLM
from readout_audit.models.mplug_owl2.splicing import PaddedPrompts


@dataclass(frozen=True)
class Greedy:
    """What greedy decoding gave.

    Attributes:
        tokens: new ids per row, the end-of-sequence id included where it came.
        logits: `[batch, steps, vocabulary]`: the raw logits each new id was taken from.
    """

    tokens: list[list[int]]
    logits: Tensor


@torch.inference_mode()
def generate_greedy(
    model: MplugOwl2ForCausalLM,
    prompts: PaddedPrompts,
    images: Tensor | None = None,
    *,
    max_new_tokens: int,
    min_new_tokens: int = 0,
) -> Greedy:
    """Continue every row by the largest raw logit (the lowest id on a tie) until end-of-sequence.

    New tokens are text, and their positions go on from each row's expanded length (§5.3).

    Args:
        model: the model.
        prompts: a batch, padded on either side.
        images: `[images, queries + 1, width]` from `encode_images`, over the rows in order.
        max_new_tokens: most new tokens per row, at least 1; the original's short answers use 10.
        min_new_tokens: end-of-sequence cannot be chosen before so many tokens; the original's short answers use 1.
    """
    ends = _end_ids(model)
    embeds, modality_indicators = model.splice(prompts.input_ids, images)
    mask = prompts.attention_mask
    outputs = model(
        inputs_embeds=embeds,
        modality_indicators=modality_indicators,
        position_ids=prompts.position_ids,
        attention_mask=mask,
        logits_to_keep=prompts.last[:, None],
    )
    logits: list[Tensor] = [outputs.logits[:, 0]]
    chosen: list[Tensor] = []
    while True:
        chosen.append(_choose(logits[-1], [] if len(chosen) >= min_new_tokens else ends))
        if len(chosen) == max_new_tokens or all(_has_ended(row, ends) for row in _rows(chosen)):
            break
        mask = torch.cat([mask, torch.ones_like(mask[:, :1])], dim=1)
        outputs = model(
            input_ids=chosen[-1][:, None],
            position_ids=(prompts.lengths + len(chosen) - 1)[:, None],
            attention_mask=mask,
            cache=outputs.cache,
        )
        logits.append(outputs.logits[:, 0])
    return Greedy([_until_end(row, ends) for row in _rows(chosen)], torch.stack(logits, dim=1))


def _end_ids(model: MplugOwl2ForCausalLM) -> list[int]:
    """Return the end-of-sequence ids of the configuration."""
    ends = model.config.eos_token_id
    if ends is None:
        return []
    return list(ends) if isinstance(ends, list | tuple) else [ends]


def _choose(logits: Tensor, forbidden: Sequence[int]) -> Tensor:
    """Return the largest id per row of `[batch, vocabulary]` logits; the logits stay as they are."""
    return argmax_lowest(
        logits.index_fill(1, torch.tensor(forbidden, dtype=torch.long, device=logits.device), -torch.inf)
    )


def _rows(chosen: Sequence[Tensor]) -> list[list[int]]:
    """Turn new ids by step into new ids by row."""
    rows: list[list[int]] = torch.stack(list(chosen), dim=1).tolist()
    return rows


def _has_ended(row: Sequence[int], ends: Sequence[int]) -> bool:
    """Tell whether a row has come to end-of-sequence."""
    return any(token in ends for token in row)


def _until_end(row: list[int], ends: Sequence[int]) -> list[int]:
    """Cut a row after its first end-of-sequence id."""
    return next((row[: index + 1] for index, token in enumerate(row) if token in ends), row)
