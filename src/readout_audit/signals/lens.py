"""What each decoder layer would answer, read through the final norm and the output head."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from readout_audit.models.base import VisionLanguageModel
from readout_audit.signals.decoder import Decoder


class LayerProbe:
    """Keeps the answer position's state after every layer of one forward pass."""

    def __init__(self, decoder: Decoder, places: torch.Tensor) -> None:
        """Take the decoder and (rows,) answer positions."""
        self.decoder, self.places = decoder, places
        self.states: dict[int, torch.Tensor] = {}

    @contextmanager
    def attached(self) -> Iterator["LayerProbe"]:
        """Watch every layer inside the block."""
        with ExitStack() as stack:
            for place, layer in enumerate(self.decoder.layers):
                handle = layer.register_forward_hook(self._reader(place))
                stack.callback(handle.remove)
            yield self

    def _reader(self, place: int) -> Any:
        def read(_: nn.Module, __: Any, output: Any) -> None:
            if place not in self.states:
                states: torch.Tensor = output[0] if isinstance(output, tuple) else output
                rows = torch.arange(len(states), device=states.device)
                self.states[place] = states[rows, self.places]

        return read

    def candidate_logits(self, model: VisionLanguageModel, candidates: torch.Tensor) -> torch.Tensor:
        """Return (rows, layers, candidates) float32: raw logits read at each layer.

        Args:
            model: whose output head reads them; one layer at a time, or a large vocabulary would take
                more memory than the pass itself.
            candidates: ids.
        """
        read = [
            model.head(self.decoder.norm(self.states[place]))[:, candidates]
            for place in range(len(self.decoder.layers))
        ]
        return torch.stack(read, dim=1)
