"""The corrections as the authors' public code has them, where it differs from Appendix F.1.

All attention statistics are over positions 1 to 576 of the sequence, wherever the image stands; a run whose sequences
are shorter has a window of its own, whose size then stands for 576. Where a question
has no such word the code falls back on a constant certainty; here the signal is null and the row not available.
"""

import numpy as np

from readout_audit.corrections.base import Correction, complement, constant, gate, squashed
from readout_audit.corrections.evidence import Evidence, Floats
from readout_audit.corrections.paper import B32_CENTRE, B32_SCALE

_BETA = "β: 1, the code's default; the paper does not say which was run"

FULL_AT = 10
"""So many times the uniform share of attention make the certainty 1."""


def attended_share(evidence: Evidence) -> Floats:
    """Return min(1, mean attention of the spatial words to one position × 576 / 10), shape (n,)."""
    share = evidence.signal("spatial_attention_mean_window") * evidence.positions
    return np.minimum(share / FULL_AT, 1.0)


def noise_gap(evidence: Evidence, strengths: Floats) -> Floats:
    """Return gap − β · gap on a picture of uniform noise."""
    noise = evidence.signal_gap("vcd_uniform_candidate_logits")
    return np.asarray(evidence.gap[:, None] - strengths[None, :] * noise[:, None])


CLIP_B32_CODE = Correction(
    name="clip_b32_code",
    title="CLIP-B/32 certainty (code)",
    family="code",
    formula="ℓ_yes − β(1 − c), c = sigmoid(20 (s − 0.22)), s = largest cosine over 4×4 crops and whole image",
    signals=("clip_b32_crops",),
    rule=gate(squashed("clip_b32_crops", B32_CENTRE, B32_SCALE)),
    strengths=(1.0, 1.5),
)
ENTROPY_CODE = Correction(
    name="entropy_code",
    title="entropy (code)",
    family="code",
    formula="ℓ_yes − β(1 − c), c = 1 − H / log 576, H = entropy of the spatial words' attention, all layers",
    signals=("spatial_attention_entropy_window",),
    rule=gate(complement("spatial_attention_entropy_window")),
)
MAGNITUDE_CODE = Correction(
    name="magnitude_code",
    title="magnitude (code)",
    family="code",
    formula="ℓ_yes − β(1 − c), c = min(1, 576 a / 10), a = mean attention of the spatial words to a position",
    signals=("spatial_attention_mean_window",),
    rule=gate(attended_share),
    ours=_BETA,
)
CLS_CODE = Correction(
    name="cls_code",
    title="CLS similarity (code)",
    family="code",
    formula="ℓ_yes − β(1 − c), c = 1: the first position attends to nothing later, so its entropy counts as 0",
    signals=(),
    rule=gate(constant(1.0)),
    ours=_BETA,
)
OBJECT_CODE = Correction(
    name="object_code",
    title="object gating (code)",
    family="code",
    formula="ℓ_yes − β(1 − c), c = 1 − H / log 576, H = entropy of attention of the words outside a stop list",
    signals=("words_attention_entropy_window",),
    rule=gate(complement("words_attention_entropy_window")),
    ours=_BETA,
)
MIDPOINT_CODE = Correction(
    name="midpoint_code",
    title="generation midpoint (code)",
    family="code",
    formula="ℓ_yes − β(1 − c), c = 1 − H / log 576, H = entropy of the first step's attention, layers 14:20",
    signals=("answer_attention_entropy_window",),
    rule=gate(complement("answer_attention_entropy_window")),
    ours=_BETA,
)
VCD_UNIFORM_CODE = Correction(
    name="vcd_uniform_code",
    title="VCD, uniform noise (code)",
    family="code",
    formula="gap − β · gap given a picture of uniform noise",
    signals=("vcd_uniform_candidate_logits",),
    rule=noise_gap,
    ours=_BETA,
)
