"""Numbers of one answer-position distribution."""

import math
from typing import NamedTuple

import torch


class Distribution(NamedTuple):
    """Statistics of raw logits over the vocabulary, each (rows,) float64.

    `entropy` is in nats; `entropy_normalised` is divided by log of the vocabulary's size.
    """

    log_z: torch.Tensor
    entropy: torch.Tensor
    entropy_normalised: torch.Tensor
    logit_mean: torch.Tensor
    logit_sd: torch.Tensor
    logit_min: torch.Tensor
    logit_max: torch.Tensor


def describe(logits: torch.Tensor) -> Distribution:
    """Return the statistics of (rows, V) finite logits, computed in float64.

    H = log Z − Σ p ℓ; the standard deviation has divisor V.
    """
    wide = logits.double()
    log_z = torch.logsumexp(wide, dim=-1)
    probabilities = torch.exp(wide - log_z[:, None])
    # Rounding can leave −1e-16 for a distribution that is all on one token.
    entropy = (log_z - (probabilities * wide).sum(dim=-1)).clamp_min(0.0)
    return Distribution(
        log_z=log_z,
        entropy=entropy,
        entropy_normalised=entropy / math.log(logits.shape[-1]),
        logit_mean=wide.mean(dim=-1),
        logit_sd=wide.std(dim=-1, correction=0),
        logit_min=wide.amin(dim=-1),
        logit_max=wide.amax(dim=-1),
    )


def spread_entropy(weights: torch.Tensor) -> float | None:
    """Return the entropy of nonnegative weights made to sum to one, divided by log of their number.

    Args:
        weights: (n,) attention over n positions.

    Returns:
        A number in [0, 1]; None where fewer than two positions or no weight at all leave it undefined.
    """
    total = float(weights.double().sum())
    if len(weights) < 2 or total <= 0.0:
        return None
    shares = weights.double() / total
    # torch.xlogy is 0 at 0: a position without weight adds nothing.
    entropy = -float(torch.xlogy(shares, shares).sum())
    return min(max(entropy / math.log(len(weights)), 0.0), 1.0)
