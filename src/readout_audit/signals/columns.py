"""From one row of an instrumented pass to columns of the signals table."""

from dataclasses import dataclass
from typing import Any

import torch

from readout_audit.inference.base import Question
from readout_audit.models.base import Encoded, argmax_lowest
from readout_audit.signals import attention, distribution
from readout_audit.signals.nouns import Noun
from readout_audit.signals.passes import Reading
from readout_audit.signals.schema import SIGNALS

NO_DECODER = "the network has no decoder of the known form, so attention and layers cannot be read"
NO_LENS = "final norm and output head alone do not give this model's logits, so layers cannot be read"
NO_POSITIONS = (
    "the image's positions in the decoder's sequence are not known, so attention to them is not either"
)

_RTOL, _ATOL = 0.02, 0.05
"""Tolerance of the last layer read through norm and head, against the logits: 16-bit rounding, and no more."""

_SETS = {
    "answer": attention.ANSWER,
    "noun": attention.NOUN,
    "spatial": attention.SPATIAL,
    "words": attention.WORDS,
}

Columns = dict[str, Any]
"""Some columns of `schema.SIGNALS`."""


@dataclass(frozen=True)
class Asked:
    """One question on its way through, with what its record says.

    Attributes:
        question: what is asked.
        noun: what it asks about.
        encoded: its prompt.
        new_ids: the record's continuation.
    """

    question: Question
    noun: Noun
    encoded: Encoded
    new_ids: tuple[int, ...]

    @property
    def midpoint(self) -> int | None:
        """Step of the continuation's midpoint, 0 being the answer; None for an answer of one token."""
        return len(self.new_ids) // 2 if len(self.new_ids) > 1 else None


def answer_columns(item: Asked, reading: Reading, number: int, candidates: torch.Tensor) -> Columns:
    """Return what the logits of row `number` say; they must be finite."""
    answer = reading.answer[number]
    found: Columns = {
        name: float(value) for name, value in distribution.describe(answer[None])._asdict().items()
    }
    found |= {
        "noun": item.noun.text,
        "noun_reason": item.noun.reason,
        "answer_argmax_id": int(argmax_lowest(answer)),
        "answer_candidate_logits": answer[candidates].tolist(),
        "midpoint_step": item.midpoint,
    }
    if item.midpoint is not None:
        found["midpoint_candidate_logits"] = reading.after[number][candidates].tolist()
    return found


def layer_columns(reading: Reading, number: int, candidates: torch.Tensor) -> tuple[Columns, str | None]:
    """Return the logits read at each layer, or why there are none.

    A model may scale or cap its logits after the head; then its layers cannot be read like this.
    """
    if reading.layers is None:
        return {}, NO_DECODER
    layers = reading.layers[number]
    if not torch.allclose(layers[-1], reading.answer[number][candidates], rtol=_RTOL, atol=_ATOL):
        return {}, NO_LENS
    return {"layer_candidate_logits": layers.flatten().tolist()}, None


def attention_columns(
    reading: Reading, number: int, length: int, window: tuple[int, int], entropy_layers: tuple[int, int]
) -> tuple[Columns, str | None]:
    """Return what the watched positions of row `number` looked at, or why something is missing.

    Args:
        reading: of an instrumented pass.
        number: of the row.
        length: of its prompt, in positions.
        window: the authors' span; what of it lies beyond the prompt holds nothing.
        entropy_layers: layers of the answer's entropy, which is null where the decoder has fewer.
    """
    seen, places = reading.seen, reading.image[number, :length].nonzero().flatten()
    if seen is None or not len(places):
        return {}, NO_POSITIONS if reading.layers is not None else None
    found: Columns = {
        "n_image_positions": len(places),
        "image_start": int(places[0]),
        "attention_image": seen.image[:, number].flatten().tolist(),
        "attention_window": seen.window[:, number].flatten().tolist(),
    }
    enough = entropy_layers[1] <= len(seen.image)
    for name, kind in _SETS.items():
        mean = seen.means[number, kind]
        if bool(mean.any()) and (enough or kind != attention.ANSWER):
            found |= _spread(name, "image", mean[places])
            found |= _spread(name, "window", mean[window[0] : min(window[1], length)])
    missing = (
        f"the decoder has {len(seen.image)} layers, fewer than entropy_layers {list(entropy_layers)} name"
    )
    return found, None if enough else missing


def _spread(name: str, where: str, weights: torch.Tensor) -> Columns:
    """Return entropy and mean of attention over some positions, as far as the table has columns for them."""
    found = {
        f"{name}_attention_entropy_{where}": distribution.spread_entropy(weights),
        f"{name}_attention_mean_{where}": float(weights.mean()) if len(weights) else None,
    }
    return {column: value for column, value in found.items() if column in SIGNALS.names}
