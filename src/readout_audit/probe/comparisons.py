"""The comparisons of Appendix F.3, and the same with the image where it really stands."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from readout_audit.probe.answers import (
    ATTENTION_IMAGE,
    ATTENTION_WINDOW,
    CLIP_L,
    GAP,
    GROUPS,
    NO_LOGIT,
    YES_LOGIT,
    Answers,
    Bools,
    Floats,
)
from readout_audit.probe.clustered import Weights, compare_groups, mean_interval
from readout_audit.probe.matching import match
from readout_audit.probe.statistics import (
    bonferroni,
    bootstrap_difference,
    cohens_d,
    mann_whitney,
    pooled_sd,
    summarise,
)

PAPER_FAMILY, IMAGE_FAMILY = "paper", "image positions"


class Comparison(NamedTuple):
    """A signal in one group against another; the family is what its p-value is corrected within."""

    signal: str
    a: str
    b: str
    family: str


COMPARISONS = (
    Comparison(ATTENTION_WINDOW, "correct", "wrong", PAPER_FAMILY),
    Comparison(ATTENTION_WINDOW, "tp", "fp", PAPER_FAMILY),
    Comparison(ATTENTION_WINDOW, "tn", "fn", PAPER_FAMILY),
    Comparison(GAP, "correct", "wrong", PAPER_FAMILY),
    Comparison(GAP, "tp", "fn", PAPER_FAMILY),
    Comparison(GAP, "tn", "fp", PAPER_FAMILY),
    Comparison(CLIP_L, "tp", "fp", PAPER_FAMILY),
    Comparison(ATTENTION_IMAGE, "correct", "wrong", IMAGE_FAMILY),
    Comparison(ATTENTION_IMAGE, "tp", "fp", IMAGE_FAMILY),
    Comparison(ATTENTION_IMAGE, "tn", "fn", IMAGE_FAMILY),
)
"""The seven p-values the paper prints (it corrects for six), and attention over the image's own positions."""

SIGNALS = (*dict.fromkeys(comparison.signal for comparison in COMPARISONS), YES_LOGIT, NO_LOGIT)
"""What group means are taken of: the signals compared, and the two set maxima."""


@dataclass(frozen=True)
class Resampling:
    """How intervals are made: the authors' bootstrap of questions, and the draw of images."""

    resamples: int
    seed: int
    weights: Weights | None


def group_rows(answers: Answers, weights: Weights | None) -> Iterator[dict[str, Any]]:
    """Yield n, mean, SD, median and the mean's interval of every signal in every group that has it."""
    for signal in SIGNALS:
        values = answers.value(signal)
        known = ~np.isnan(values)
        for group in GROUPS:
            there = answers.group(group) & known
            summary = summarise(values[there])
            interval = mean_interval(values, there, weights)
            yield {
                "signal": signal,
                "group": group,
                **summary._asdict(),
                "mean_low": interval.low,
                "mean_high": interval.high,
            }


def comparison_rows(answers: Answers, resampling: Resampling) -> Iterator[dict[str, Any]]:
    """Yield every comparison, its p-value corrected for the tests of its family that could be made."""
    found = [_compare(answers, one, resampling) for one in COMPARISONS]
    for row in found:
        if row.get("p") is not None:
            size = sum(other["family"] == row["family"] and other.get("p") is not None for other in found)
            row |= {"family_size": size, "p_corrected": bonferroni(row["p"], size)}
        yield row


def _compare(answers: Answers, comparison: Comparison, resampling: Resampling) -> dict[str, Any]:
    """Return one comparison, or that there is nothing to compare."""
    row: dict[str, Any] = {
        "signal": comparison.signal,
        "group_a": comparison.a,
        "group_b": comparison.b,
        "family": comparison.family,
    }
    values = answers.value(comparison.signal)
    known = ~np.isnan(values)
    a, b = (answers.group(name) & known for name in (comparison.a, comparison.b))
    row |= {"n_a": int(a.sum()), "n_b": int(b.sum())}
    if not known.any():
        return row | {"status": "not_available", "reason": "the signal is null on every answer"}
    if not a.any() or not b.any():
        empty = comparison.a if not a.any() else comparison.b
        return row | {"status": "not_available", "reason": f"no answer is {empty}"}
    return (
        row
        | {"status": "ok"}
        | _effect(values, a, b, resampling)
        | _matched(answers, comparison, a, b, resampling)
    )


def _effect(values: Floats, a: Bools, b: Bools, resampling: Resampling) -> dict[str, Any]:
    """Return means, difference, U, p and d with their intervals."""
    first, second = summarise(values[a]), summarise(values[b])
    test = mann_whitney(values[a], values[b])
    ends = bootstrap_difference(values[a], values[b], resampling.resamples, resampling.seed)
    by_image = compare_groups(np.where(a | b, values, 0.0), a, b, resampling.weights)
    assert first.mean is not None and second.mean is not None and test is not None  # neither group is empty
    return {
        "mean_a": first.mean,
        "sd_a": first.sd,
        "mean_b": second.mean,
        "sd_b": second.sd,
        "difference": first.mean - second.mean,
        "difference_low": ends.low if ends else None,
        "difference_high": ends.high if ends else None,
        "difference_image_low": by_image.difference.low,
        "difference_image_high": by_image.difference.high,
        "u": test.u,
        "p": test.p,
        "pooled_sd": pooled_sd(first.n, first.sd, second.n, second.sd),
        "d": cohens_d(values[a], values[b]),
        "d_low": by_image.d.low,
        "d_high": by_image.d.high,
    }


def _matched(
    answers: Answers, comparison: Comparison, a: Bools, b: Bools, resampling: Resampling
) -> dict[str, Any]:
    """Return the effect at equal |gap|; of |gap| itself there is none."""
    if comparison.signal == GAP:
        return {}
    values = np.where(a | b, answers.value(comparison.signal), 0.0)
    matched = match(values, answers.value(GAP), a, b, resampling.weights)
    if matched is None:
        return {}
    first, second = summarise(values[a]), summarise(values[b])
    spread = pooled_sd(first.n, first.sd, second.n, second.sd)
    return {
        "matched_strata": matched.strata,
        "matched_n_a": matched.n_a,
        "matched_n_b": matched.n_b,
        "matched_difference": matched.difference,
        "matched_low": matched.interval.low,
        "matched_high": matched.interval.high,
        "matched_d": matched.difference / spread if spread else None,
        "gap_difference": matched.gap_before,
        "gap_difference_matched": matched.gap_after,
    }
