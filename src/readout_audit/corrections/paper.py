"""The corrections as Appendix F.1 of the paper states them.

F.1 gives no map from a cosine to [0, 1] and no β for several; what had to be chosen stands in `ours`.
"""

import numpy as np

from readout_audit.corrections.base import Correction, complement, constant, gate, sigmoid, squashed
from readout_audit.corrections.evidence import Evidence, Floats

B32_CENTRE, B32_SCALE = 0.22, 20.0
L14_CENTRE, L14_SCALE = 0.27, 25.0
"""Constants of the authors' sigmoid maps (src/run_ablation_a.py, src/clip_l_grounding.py, at 08a10ab)."""

_B32 = "map: the authors' sigmoid of their CLIP-B/32 code"
_L14 = "map: the authors' sigmoid of their CLIP-L code"
_BETA = "β: 1, the default of the authors' code"

PLAUSIBILITY = 0.1
"""β of Leng et al. 2024: tokens less probable than this share of the largest probability are left out.

It and α = 1 are the defaults of DAMO-NLP-SG/VCD at 039af55, experiments/eval/object_hallucination_vqa_llava.py.
"""


def relative_magnitude(evidence: Evidence) -> Floats:
    """Return how many SDs the yes logit lies above the vocabulary's mean logit, shape (n,)."""
    return (evidence.yes - evidence.signal("logit_mean")) / evidence.signal("logit_sd")


def soft_threshold(evidence: Evidence) -> Floats:
    """Return sigmoid(z − median z) of the relative magnitude z; the median is over the file's questions."""
    magnitude = relative_magnitude(evidence)
    known = magnitude[~np.isnan(magnitude)]
    return sigmoid(magnitude - np.median(known)) if known.size else magnitude


def midpoint(evidence: Evidence, strengths: Floats) -> Floats:
    """Return the gap at the midpoint step of the continuation, once per strength."""
    gap = evidence.signal_gap("midpoint_candidate_logits")
    return np.repeat(gap[:, None], len(strengths), axis=1)


def contrastive(evidence: Evidence, strengths: Floats) -> Floats:
    """Return the margin under visual contrastive decoding (Leng et al. 2024; vcd_utils/vcd_sample.py at 039af55).

    Logits are (1 + α)ℓ − αℓ', with ℓ' from the noised image. A candidate stays only where its probability given
    the real image is at least `PLAUSIBILITY` of the largest one. Where no candidate of either set stays, the
    readout has nothing else to compare, so all stay.
    """
    real = evidence.logits
    noised = evidence.signal_logits("vcd_candidate_logits")
    cut = (evidence.largest_logit + np.log(PLAUSIBILITY))[:, None]
    plausible = [logits >= cut for logits in real]
    none = np.concatenate(plausible, axis=1).sum(axis=1) == 0
    kept = [one | none[:, None] for one in plausible]
    margins = np.empty((len(none), len(strengths)))
    for k, alpha in enumerate(strengths):
        yes, no = (
            np.where(keep, (1 + alpha) * clear - alpha * blurred, -np.inf).max(axis=1)
            for keep, clear, blurred in zip(kept, real, noised, strict=True)
        )
        margins[:, k] = yes - no
    # A masked candidate hides a missing second pass behind −∞.
    missing = np.isnan(np.concatenate(noised, axis=1).sum(axis=1))
    return np.where(missing[:, None], np.nan, margins)


CLIP_B32 = Correction(
    name="clip_b32",
    title="CLIP-B/32 certainty",
    family="F.1",
    formula="ℓ_yes − β(1 − c), c = sigmoid(20 (s − 0.22)), s = largest cosine over projected patches",
    signals=("clip_b32_patches",),
    rule=gate(squashed("clip_b32_patches", B32_CENTRE, B32_SCALE)),
    strengths=(1.0, 1.5),
    ours=f"{_B32}; largest cosine of the patches",
)
CLIP_L = Correction(
    name="clip_l",
    title="CLIP-L/14-336 certainty",
    family="F.1",
    formula="ℓ_yes − β(1 − c), c = sigmoid(25 (s − 0.27)), s = largest cosine over 576 projected patches",
    signals=("clip_l_patches",),
    rule=gate(squashed("clip_l_patches", L14_CENTRE, L14_SCALE)),
    ours=f"{_L14}; {_BETA}",
)
ENTROPY = Correction(
    name="entropy",
    title="entropy",
    family="F.1",
    formula="ℓ_yes − β(1 − c), c = 1 − H / log n, H = entropy of the answer-position distribution over n ids",
    signals=("entropy_normalised",),
    rule=gate(complement("entropy_normalised")),
    ours=_BETA,
)
MAGNITUDE = Correction(
    name="magnitude",
    title="magnitude",
    family="F.1",
    formula="ℓ_yes − β(1 − c), c = sigmoid(z − median z), z = (ℓ_yes − mean) / SD over the vocabulary",
    signals=("logit_mean", "logit_sd"),
    rule=gate(soft_threshold),
    ours=f"form of the soft threshold, at the median of the file's questions; {_BETA}",
)
CLS = Correction(
    name="cls",
    title="CLS similarity",
    family="F.1",
    formula="ℓ_yes − β(1 − c), c = sigmoid(25 (s − 0.27)), s = cosine of the CLIP-L CLS embedding",
    signals=("clip_l_cls",),
    rule=gate(squashed("clip_l_cls", L14_CENTRE, L14_SCALE)),
    ours=f"{_L14}; {_BETA}",
)
OBJECT_NOUN = Correction(
    name="object_noun",
    title="object-noun CLIP",
    family="F.1",
    formula="ℓ_yes − β(1 − c), c = sigmoid(20 (s − 0.22)), s = cosine of the whole image, CLIP-B/32",
    signals=("clip_b32_image",),
    rule=gate(squashed("clip_b32_image", B32_CENTRE, B32_SCALE)),
    ours=f"{_B32}; {_BETA}",
)
UNIFORM = Correction(
    name="uniform",
    title="uniform",
    family="F.1",
    formula="ℓ_yes − β(1 − c), c = 0.5",
    signals=(),
    rule=gate(constant(0.5)),
    ours=f"c: 0.5, as in the authors' code; {_BETA}",
)
MIDPOINT = Correction(
    name="midpoint",
    title="generation midpoint",
    family="F.1",
    formula="gap at step ⌊T/2⌋ of a continuation of T tokens, in place of the first",
    signals=("midpoint_candidate_logits",),
    rule=midpoint,
    swept=False,
    ours="which step, and that its gap replaces the first",
)
VCD = Correction(
    name="vcd",
    title="VCD, diffusion noise",
    family="F.1",
    formula="(1 + α)ℓ − αℓ' over candidates with p ≥ 0.1 max p, ℓ' from the diffusion-noised image",
    signals=("vcd_candidate_logits",),
    rule=contrastive,
    ours="α: 1, plausibility 0.1, the defaults of Leng et al.; F.1 gives neither α nor noise",
)
