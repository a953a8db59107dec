"""Attention of a few positions, per layer and head, without the matrices of all against all.

The weights of position i are softmax(q_i · K / √d): one row. The pass runs as it always does (SDPA,
whose kernel never forms the matrix); beside each call of the attention function the chosen queries are
multiplied with the same keys, so extra memory grows with the sequence, not with its square. Query and key
are what that function is given, rotary positions and all, so every family is read alike.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from readout_audit.signals.decoder import Decoder

ANSWER, NOUN, SPATIAL, WORDS = 0, 1, 2, 3
"""Sets of positions whose attention is averaged: the last prompt token, tokens of the noun, of spatial
words, and of the words the authors' "object" variant takes."""

N_SETS = 4


@dataclass(frozen=True)
class Watched:
    """Which positions of a batch are asked where they look.

    Attributes:
        queries: (rows, k) int64 positions; the first is the last prompt token, the end may repeat one.
        members: (rows, N_SETS, k) float32: share of each query in each set's mean; rows of zeros for an
            empty set.
        image: (rows, n) bool, the positions that hold image embeddings.
        window: [first, end) positions, the authors' span.
    """

    queries: torch.Tensor
    members: torch.Tensor
    image: torch.Tensor
    window: tuple[int, int]

    @staticmethod
    def of(sets: list[list[list[int]]], image: torch.Tensor, window: tuple[int, int]) -> "Watched":
        """Build from position lists: for each row, one list per set; the answer's holds one position."""
        rows = [list(dict.fromkeys(place for places in row for place in places)) for row in sets]
        width, device = max(len(row) for row in rows), image.device
        queries = torch.tensor([row + [row[0]] * (width - len(row)) for row in rows], device=device)
        members = torch.zeros((len(rows), N_SETS, width))
        for number, (row, columns) in enumerate(zip(sets, rows, strict=True)):
            for kind, places in enumerate(row):
                for place in places:
                    members[number, kind, columns.index(place)] = 1.0 / len(places)
        return Watched(queries, members.to(device), image, window)


@dataclass
class Seen:
    """What the watched positions looked at.

    Attributes:
        image: (layers, rows, heads), the last prompt token's weights SUMMED over the image positions.
        window: the same over the window.
        means: (rows, N_SETS, n): weights averaged over heads, the set's positions and layers (the answer's
            over `entropy_layers` alone).
    """

    image: torch.Tensor
    window: torch.Tensor
    means: torch.Tensor


class AttentionProbe:
    """Reads the attention of one forward pass.

    `with probe.attached(): <one forward pass>`, then `probe.seen()`.
    """

    def __init__(self, decoder: Decoder, watched: Watched, entropy_layers: tuple[int, int]) -> None:
        """Take the decoder, what to watch, and the layers [first, end) of the answer's mean."""
        self.watched, self.entropy_layers = watched, entropy_layers
        self.places = {id(module): place for place, module in enumerate(decoder.attentions)}
        self.attentions = decoder.attentions
        self.fits = True
        self.sums: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        rows, columns = watched.image.shape
        self.total = torch.zeros((rows, N_SETS, columns), device=watched.image.device)

    @contextmanager
    def attached(self) -> Iterator["AttentionProbe"]:
        """Watch every call of the decoder's attention inside the block."""
        config: Any = self.attentions[0].config
        implementation = config._attn_implementation
        with ExitStack() as stack:
            if implementation == "eager":
                # The eager function forms the matrices anyway, and each model file has its own.
                for module in self.attentions:
                    handle = module.register_forward_hook(self._read_output)
                    stack.callback(handle.remove)
            else:
                plain = ALL_ATTENTION_FUNCTIONS[implementation]
                ALL_ATTENTION_FUNCTIONS[implementation] = self._beside(plain)
                stack.callback(ALL_ATTENTION_FUNCTIONS.__setitem__, implementation, plain)
            yield self

    def _beside(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """Return the attention function `plain` with a look at the chosen queries."""

        def watching(
            module: nn.Module,
            query: torch.Tensor,
            key: torch.Tensor,
            value: torch.Tensor,
            attention_mask: torch.Tensor | None,
            *arguments: Any,
            **further: Any,
        ) -> Any:
            place = self.places.get(id(module))
            if place is not None and place not in self.sums:
                scaling = further.get("scaling") or query.shape[-1] ** -0.5
                weights = attention_rows(query, key, scaling, attention_mask, self.watched.queries)
                self._keep(place, weights)
            return plain(module, query, key, value, attention_mask, *arguments, **further)

        return watching

    def _read_output(self, module: nn.Module, _: Any, output: Any) -> None:
        """Take the chosen rows of the weights that an eager attention module returned."""
        place = self.places[id(module)]
        if place not in self.sums:
            weights: torch.Tensor = output[1]
            chosen = self.watched.queries[:, None, :, None].expand(-1, weights.shape[1], -1, weights.shape[3])
            self._keep(place, weights.gather(2, chosen).float())

    def _keep(self, place: int, weights: torch.Tensor) -> None:
        """Reduce one layer's (rows, heads, k, n) weights to what is kept of it."""
        watched = self.watched
        if weights.shape[-1] != watched.image.shape[1]:
            # The network puts more, or less, into its decoder than the prompt's ids: nothing fits.
            self.fits = False
            return
        last = weights[:, :, 0]
        first, end = watched.window
        self.sums[place] = (
            (last * watched.image[:, None]).sum(dim=-1),
            last[..., first:end].sum(dim=-1),
        )
        mean = torch.einsum("rsk,rkn->rsn", watched.members, weights.mean(dim=1))
        if not self.entropy_layers[0] <= place < self.entropy_layers[1]:
            mean[:, ANSWER] = 0.0
        self.total += mean

    def seen(self) -> Seen | None:
        """Return what was read of a pass that went through every layer.

        None where the decoder's sequence is another than the prompt's ids.
        """
        if not self.fits:
            return None
        if len(self.sums) != len(self.attentions):
            raise RuntimeError(f"attention of {len(self.sums)} of {len(self.attentions)} layers was seen")
        layers = len(self.attentions)
        image, window = (
            torch.stack([self.sums[place][which] for place in range(layers)]) for which in (0, 1)
        )
        first, end = self.entropy_layers
        divisors = torch.full((N_SETS, 1), float(layers), device=self.total.device)
        divisors[ANSWER] = max(min(end, layers) - first, 1)
        return Seen(image, window, self.total / divisors)


def attention_rows(
    query: torch.Tensor,
    key: torch.Tensor,
    scaling: float,
    mask: torch.Tensor | None,
    places: torch.Tensor,
) -> torch.Tensor:
    """Return the attention weights of a few queries, in float32.

    Args:
        query: (rows, heads, new, d), rotary positions applied.
        key: (rows, key heads, n, d), cached ones first.
        scaling: factor of the scores.
        mask: (rows or 1, 1 or heads, new, n), bool (true: may look) or added to the scores; or None.
        places: (rows, k) which of the `new` queries.

    Returns:
        (rows, heads, k, n). Keys after the query are never looked at, whatever the mask says.
    """
    rows, heads, new, width = query.shape
    groups, columns = key.shape[1], key.shape[2]
    chosen = query.gather(2, places[:, None, :, None].expand(-1, heads, -1, width)).float()
    # Heads that share keys lie side by side; they are multiplied together, so keys are not repeated.
    chosen = chosen.reshape(rows, groups, -1, width)
    scores = (chosen @ key.float().transpose(2, 3) * scaling).view(rows, heads, -1, columns)
    if mask is not None:
        index = places[:, None, :, None].expand(-1, mask.shape[1], -1, mask.shape[3])
        picked = mask.expand(rows, -1, -1, -1).gather(2, index)
        blocked = torch.finfo(torch.float32).min
        scores = (
            scores.masked_fill(~picked, blocked) if picked.dtype == torch.bool else scores + picked.float()
        )
    reach = places + (columns - new)
    later = torch.arange(columns, device=places.device) > reach[..., None]
    return scores.masked_fill(later[:, None], -torch.inf).softmax(dim=-1)
