"""The decoder: LLaMA with two sets of weights for some modules, one per modality (docs/mplug-owl2.md §5)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers.cache_utils import Cache
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm, apply_rotary_pos_emb

from readout_audit.models.mplug_owl2.attention import MultiHeadAttention
from readout_audit.models.mplug_owl2.configuration import MplugOwl2Config

TEXT, IMAGE = 0, 1
"""Values of the modality indicator, and indices of the two sets of weights (§4, §5.1)."""


@dataclass(frozen=True)
class Routing:
    """Which positions of a batch each of the two sets of weights computes; made once per forward pass.

    Attributes:
        only: the one modality there is, or None where both occur.
        indices: flat indices of the text and of the image positions; empty where `only` is set.
    """

    only: int | None
    indices: tuple[Tensor, ...] = ()


def route(modality_indicators: Tensor | None) -> Routing:
    """Sort positions by modality; None stands for text alone, which is known without asking the device.

    Args:
        modality_indicators: `[batch, positions]`, 0 text, 1 image (§4), or None.
    """
    if modality_indicators is None:
        return Routing(only=TEXT)
    flat = modality_indicators.flatten()
    indices = tuple((flat == modality).nonzero().squeeze(1) for modality in (TEXT, IMAGE))
    for modality in (TEXT, IMAGE):
        if len(indices[modality]) == len(flat):
            return Routing(only=modality)
    return Routing(only=None, indices=indices)


class Multiway(nn.Module):
    """A module in two versions; each position goes through the one that its indicator names (§5.1)."""

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.multiway = nn.ModuleList(make() for _ in (TEXT, IMAGE))

    def forward(self, x: Tensor, routing: Routing) -> Tensor:
        """Map `[batch, positions, in]` to `[batch, positions, out]`, each position computed once."""
        if routing.only is not None:
            only: Tensor = self.multiway[routing.only](x)
            return only
        flat = x.flatten(0, 1)
        indices = [index.to(x.device) for index in routing.indices]
        parts = [module(flat[index]) for module, index in zip(self.multiway, indices, strict=True)]
        merged: Tensor = parts[TEXT].new_empty(flat.shape[0], parts[TEXT].shape[-1])
        for index, part in zip(indices, parts, strict=True):
            merged[index] = part
        return merged.view(*x.shape[:2], -1)


def rotary_tables(config: MplugOwl2Config, position_ids: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return cosines and sines `[batch, positions, head_dim]`; channel j is paired with j + head_dim/2 (§5.2).

    The frequencies are computed when used: as a buffer they could come back uninitialised (§9.3).
    """
    exponent = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=position_ids.device)
    frequency = 1.0 / (config.rotary_base ** (exponent / config.head_dim))
    angle = position_ids[..., None].float() * frequency
    doubled = torch.cat([angle, angle], dim=-1)
    return doubled.cos().to(dtype), doubled.sin().to(dtype)


class DecoderAttention(MultiHeadAttention):
    """Causal attention with keys and values per modality; queries and the output projection are shared (§5.1)."""

    def __init__(self, config: MplugOwl2Config, layer_idx: int) -> None:
        super().__init__(config, config.head_dim, is_causal=True)
        width, inner = config.hidden_size, config.num_attention_heads * config.head_dim
        self.layer_idx = layer_idx
        self.q_proj = nn.Linear(width, inner, bias=False)
        self.k_proj = Multiway(lambda: nn.Linear(width, inner, bias=False))
        self.v_proj = Multiway(lambda: nn.Linear(width, inner, bias=False))
        self.o_proj = nn.Linear(inner, width, bias=False)

    def forward(
        self,
        x: Tensor,
        routing: Routing,
        rotary: tuple[Tensor, Tensor],
        mask: Tensor | None,
        cache: Cache | None,
    ) -> tuple[Tensor, Tensor | None]:
        """Return `[batch, positions, width]` and, from `eager`, the weights `[batch, heads, queries, keys]`."""
        query, key = self.split(self.q_proj(x)), self.split(self.k_proj(x, routing))
        value = self.split(self.v_proj(x, routing))
        query, key = apply_rotary_pos_emb(query, key, *rotary)
        if cache is not None:
            key, value = cache.update(key, value, self.layer_idx)
        context, weights = self.attend(query, key, value, mask)
        return self.o_proj(context), weights


class DecoderLayer(nn.Module):
    """Attention and MLP, each after a norm per modality; the MLP itself is shared (§5.2)."""

    def __init__(self, config: MplugOwl2Config, layer_idx: int) -> None:
        super().__init__()
        self.self_attn = DecoderAttention(config, layer_idx)
        self.mlp = LlamaMLP(config)
        self.input_layernorm = Multiway(lambda: LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps))
        self.post_attention_layernorm = Multiway(
            lambda: LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        )

    def forward(
        self,
        x: Tensor,
        routing: Routing,
        rotary: tuple[Tensor, Tensor],
        mask: Tensor | None,
        cache: Cache | None,
    ) -> Tensor:
        """Map `[batch, positions, width]` to the same shape."""
        attended, _ = self.self_attn(self.input_layernorm(x, routing), routing, rotary, mask, cache)
        x = x + attended
        y: Tensor = x + self.mlp(self.post_attention_layernorm(x, routing))
        return y
