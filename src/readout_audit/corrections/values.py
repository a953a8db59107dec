"""The signals as one number per question: what is asked whether it tells wrong answers from right ones."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from readout_audit.corrections.evidence import Evidence, Floats
from readout_audit.corrections.paper import relative_magnitude
from readout_audit.readouts.base import NotAvailableError


@dataclass(frozen=True)
class Value:
    """One signal.

    Attributes:
        name: its name in columns.
        title: what it is, for tables.
        of: evidence of n questions -> shape (n,), NaN where a column it reads is null.
    """

    name: str
    title: str
    of: Callable[[Evidence], Floats]


def column(name: str, title: str, signal: str | None = None) -> Value:
    """Return a signal that stands in the signals file as it is."""
    read = signal or name
    return Value(name, title, lambda evidence: evidence.signal(read))


def agreement(evidence: Evidence) -> Floats:
    """Return the share of decoder layers whose gap has the sign of the answer's, shape (n,).

    Each layer is read through the final norm and the unembedding; a gap of 0 is a no, as at the answer.

    Raises:
        NotAvailableError: the signals hold no layers, or not the readout's ids.
    """
    width, n_layers = len(evidence.signal_meta.get("candidate_ids", [])), evidence.signal_meta.get("n_layers")
    sets = evidence.held
    if not n_layers:
        raise NotAvailableError("the signals hold no layers")
    flat = evidence.signal_lists("layer_candidate_logits", n_layers * width)
    by_layer = flat.reshape(len(flat), n_layers, width)
    yes, no = (by_layer[:, :, columns].max(axis=2) for columns in sets)
    agreeing = ((yes - no > 0) == (evidence.gap > 0)[:, None]).mean(axis=1)
    return np.where(np.isnan(flat).any(axis=1), np.nan, agreeing)


ENTROPY = column("entropy", "entropy of the answer distribution", "entropy_normalised")
MAGNITUDE = Value("magnitude", "yes logit, SDs above the vocabulary's mean", relative_magnitude)
MIDPOINT_GAP = Value(
    "midpoint_gap", "|gap| at the midpoint step", lambda e: np.abs(e.signal_gap("midpoint_candidate_logits"))
)
LAYERS_AGREEING = Value("layers_agreeing", "share of layers that side with the answer", agreement)
CLIP_B32_PATCHES = column("clip_b32_patches", "CLIP-B/32, largest cosine of patches")
CLIP_B32_IMAGE = column("clip_b32_image", "CLIP-B/32, cosine of the whole image")
CLIP_B32_CROPS = column("clip_b32_crops", "CLIP-B/32, largest cosine of crops")
CLIP_L_PATCHES = column("clip_l_patches", "CLIP-L/14-336, largest cosine of patches")
CLIP_L_CLS = column("clip_l_cls", "CLIP-L/14-336, cosine of CLS")
VCD_SHIFT = Value(
    "vcd_shift",
    "gap minus gap given the noised image",
    lambda e: e.gap - e.signal_gap("vcd_candidate_logits"),
)
VCD_UNIFORM_SHIFT = Value(
    "vcd_uniform_shift",
    "gap minus gap given uniform noise",
    lambda e: e.gap - e.signal_gap("vcd_uniform_candidate_logits"),
)
ATTENTION_IMAGE = Value(
    "attention_image", "attention to the image", lambda e: e.window_attention("attention_image")
)
ATTENTION_WINDOW = Value(
    "attention_window",
    "attention to the authors' fixed positions",
    lambda e: e.window_attention("attention_window"),
)
ANSWER_ATTENTION_ENTROPY = column(
    "answer_attention_entropy", "entropy of the answer's attention", "answer_attention_entropy_image"
)
NOUN_ATTENTION_ENTROPY = column(
    "noun_attention_entropy", "entropy of the noun's attention", "noun_attention_entropy_image"
)
SPATIAL_ATTENTION_ENTROPY = column(
    "spatial_attention_entropy", "entropy of spatial words' attention", "spatial_attention_entropy_image"
)
