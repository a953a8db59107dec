"""The language decoder inside a network: its layers and its final norm, found by their shape."""

from dataclasses import dataclass
from typing import Any

from torch import nn


@dataclass(frozen=True)
class Decoder:
    """The parts of a decoder that signals are read from.

    Attributes:
        layers: decoder layers in order, each with a `self_attn`.
        norm: what the last layer's output goes through before the output head.
        n_heads: query heads per layer.
    """

    layers: tuple[nn.Module, ...]
    norm: nn.Module
    n_heads: int

    @property
    def attentions(self) -> tuple[nn.Module, ...]:
        """The layers' attention modules, in order."""
        return tuple(layer.get_submodule("self_attn") for layer in self.layers)


def find_decoder(network: nn.Module) -> Decoder | None:
    """Return the one decoder of a network; None where there is no such part or more than one.

    A decoder is a module with a `norm` and a list of `layers` whose attention knows its place
    (`layer_idx`, which only attention with a cache has) and has a query projection.
    """
    found = [module for module in network.modules() if _is_decoder(module)]
    if len(found) != 1:
        return None
    decoder: Any = found[0]
    config = decoder.layers[0].self_attn.config
    return Decoder(tuple(decoder.layers), decoder.norm, int(config.num_attention_heads))


def _is_decoder(module: Any) -> bool:
    layers = getattr(module, "layers", None)
    if not isinstance(layers, nn.ModuleList) or not len(layers):
        return False
    if not isinstance(getattr(module, "norm", None), nn.Module):
        return False
    return all(
        hasattr(getattr(layer, "self_attn", None), "layer_idx") and hasattr(layer.self_attn, "q_proj")
        for layer in layers
    )
