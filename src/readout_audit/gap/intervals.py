"""Intervals and tests of the gap: by image, and by question as papers have it.

By image: a bootstrap interval of each rate and of the paired difference of F1, and a permutation test of that
difference which exchanges the two readouts image by image (under the null hypothesis the readouts are
exchangeable; images stay whole). By question, naive: McNemar's test.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from readout_audit.gap.algebra import Ratio
from readout_audit.gap.table import Quantity, Step
from readout_audit.gap.transitions import Paired, answered, kinds
from readout_audit.scores.bootstrap import (
    LEVEL,
    Floats,
    Images,
    counts_per_image,
    number_images,
    percentile_intervals,
    ratio,
    resampled_totals,
    swapped_totals,
)
from readout_audit.scores.confusion import Codes
from readout_audit.scores.decisions import Decisions
from readout_audit.scores.labels import LabelSet
from readout_audit.scores.naive import mcnemar

_WIDTH = len(Paired._fields)
_POS_YN, _POS_NY, _NEG_YN, _NEG_NY = (
    Paired._fields.index(n) for n in ("pos_yn", "pos_ny", "neg_yn", "neg_ny")
)
_OTHER_WAY = [0, 2, 1, 3, 4, 6, 5, 7]
"""Columns of `Paired` with the two readouts exchanged."""

_ROUNDING = 1e-12
"""Two differences of F1 closer than this are the same rational; two different ones are further apart."""


class Inference(NamedTuple):
    """Further quantities of each step, in the steps' order, and what the metadata says about them."""

    quantities: list[list[Quantity]]
    note: dict[str, Any]


def infer(
    decisions: Decisions, label_sets: Sequence[LabelSet], steps: Sequence[Step], resamples: int, seed: int
) -> Inference:
    """Return intervals and p-values of every step; McNemar alone without resamples or known images.

    Args:
        decisions: the rows, paired.
        label_sets: the labels the steps were counted against.
        steps: the counted pairs.
        resamples: bootstrap samples, and as many permutations; 0 for none.
        seed: of the one draw that all steps share; the bootstrap's is that of the scores.
    """
    found = [[_mcnemar(step.paired)] for step in steps]
    note: dict[str, Any] = {"interval": f"percentile, {LEVEL:.0%}", "unit": "image", "resamples": 0}
    images = number_images(decisions.identity["image"]) if resamples else None
    if resamples and images is None:
        note["why_not"] = "the source does not know which image a row is about"
    if images is None:
        return Inference(found, note)
    groups: dict[tuple[str, str], list[int]] = {}
    for index, step in enumerate(steps):
        groups.setdefault((step.labels, step.split), []).append(index)
    codes = {label_set.name: label_set.codes for label_set in label_sets}
    # By label set and split, to bound the memory: the same seed gives every group the same draw.
    for (labels, _), indices in groups.items():
        group = [steps[index] for index in indices]
        by_step = _infer_group(decisions, codes[labels], images, group, resamples, seed)
        for index, further in zip(indices, by_step, strict=True):
            found[index] += further
    note |= {"resamples": resamples, "seed": seed, "images": images.n}
    return Inference(found, note)


def _infer_group(
    decisions: Decisions, labels: Codes, images: Images, steps: Sequence[Step], resamples: int, seed: int
) -> list[list[Quantity]]:
    """Return the intervals and the permutation test of steps on the same rows."""
    # One direction of a pair is the other with columns exchanged: each pair is resampled once.
    pairs = list({_key(step): step for step in steps}.values())
    position = {_key(step): i for i, step in enumerate(pairs)}
    counts = [_per_image(decisions, labels, step, images) for step in pairs]
    totals = resampled_totals(np.concatenate(counts, axis=1), resamples, seed)
    p_values = permutation_p_values(counts, resamples, seed)
    found = []
    for step in steps:
        i = position[_key(step)]
        resampled = totals[:, i * _WIDTH : (i + 1) * _WIDTH]
        same_way = pairs[i].before == step.before
        found.append([*_intervals(resampled if same_way else resampled[:, _OTHER_WAY]), p_values[i]])
    return found


def _key(step: Step) -> frozenset[str]:
    """Return what both directions of a step on the same rows share."""
    return frozenset((step.before, step.after))


def _per_image(decisions: Decisions, labels: Codes, step: Step, images: Images) -> npt.NDArray[np.int64]:
    """Return shape (images, 8), the paired counts of a step."""
    before, after = (decisions.answers[name][step.rows] for name in (step.before, step.after))
    both = answered(before, after)
    of_row = kinds(labels[step.rows][both], before[both], after[both])
    return counts_per_image(images, step.rows[both], of_row, _WIDTH)


def _intervals(resampled: Floats) -> Iterator[Quantity]:
    """Yield both ends of each interval, and the share of resamples left out of it as 0/0, where there are any.

    `resampled` has the columns of `Paired`.
    """
    statistics = resampled_quantities(resampled)
    intervals = percentile_intervals(np.stack(list(statistics.values()), axis=1))
    for name, interval in zip(statistics, intervals, strict=True):
        note = f"{interval.undefined} resamples left it undefined" if interval.undefined else None
        yield Quantity(f"{name}_ci_low", interval.low, note)
        yield Quantity(f"{name}_ci_high", interval.high, note)
        if interval.undefined:
            yield Quantity(f"{name}_ci_undefined", Ratio(interval.undefined, len(resampled)))


def resampled_quantities(resampled: Floats) -> dict[str, Floats]:
    """Return each quantity that has an interval, shape (resamples,), NaN where it is undefined."""
    pos_yy, pos_yn, pos_ny, pos_nn, neg_yy, neg_yn, neg_ny, neg_nn = resampled.T
    positives = pos_yy + pos_yn + pos_ny + pos_nn
    flipped = pos_ny + neg_ny
    f1_from = _f1(pos_yy + pos_yn, neg_yy + neg_yn, positives)
    f1_to = _f1(pos_yy + pos_ny, neg_yy + neg_ny, positives)
    return {
        "rho_n": ratio(neg_ny, neg_ny + neg_nn),
        "phi": ratio(pos_ny, pos_ny + pos_nn),
        "yes_to_no_pos": ratio(pos_yn, pos_yy + pos_yn),
        "yes_to_no_neg": ratio(neg_yn, neg_yy + neg_yn),
        "f1_from": f1_from,
        "f1_to": f1_to,
        "delta_f1": f1_from - f1_to,
        "pooled_flip_rate": ratio(flipped, flipped + pos_nn + neg_nn),
        "agreement": ratio(pos_yy + pos_nn + neg_yy + neg_nn, resampled.sum(axis=1)),
    }


def _f1(true_positives: Floats, false_positives: Floats, positives: Floats) -> Floats:
    """Return 2TP / (TP + FP + P), NaN where it is 0/0."""
    return ratio(2 * true_positives, true_positives + false_positives + positives)


def permutation_p_values(
    counts: Sequence[npt.NDArray[np.int64]], resamples: int, seed: int
) -> list[Quantity]:
    """Return the two-sided p-value of each pair's difference of F1 when readouts are exchanged by image.

    p = (1 + permutations at least as extreme) / (1 + permutations), after Phipson and Smyth 2010.

    Args:
        counts: per pair, shape (images, 8), the paired counts.
        resamples: number of permutations.
        seed: of the coins, which all pairs share.
    """
    # Exchanging an image moves its true and its false positives; its positives stay.
    moved = [
        np.stack(
            [c[:, gained] - c[:, lost] for gained, lost in ((_POS_NY, _POS_YN), (_NEG_NY, _NEG_YN))], axis=1
        )
        for c in counts
    ]
    swapped = swapped_totals(np.concatenate(moved, axis=1), resamples, seed)
    found = []
    for i, per_image in enumerate(counts):
        total = per_image.sum(axis=0).astype(np.float64)
        observed = resampled_quantities(total[None])["delta_f1"][0]
        if np.isnan(observed):
            found.append(Quantity("delta_f1_permutation_p", None, "F1 is undefined"))
            continue
        tp, fp = swapped[:, 2 * i], swapped[:, 2 * i + 1]
        positives = np.full(resamples, total[:4].sum())
        exchanged_from = _f1(total[[0, 1]].sum() + tp, total[[4, 5]].sum() + fp, positives)
        exchanged_to = _f1(total[[0, 2]].sum() - tp, total[[4, 6]].sum() - fp, positives)
        # An undefined difference cannot be told from the observed one, so it counts as extreme.
        extreme = ~(np.abs(exchanged_from - exchanged_to) < abs(observed) - _ROUNDING)
        p_value = Ratio(1 + int(extreme.sum()), 1 + resamples)
        found.append(Quantity("delta_f1_permutation_p", p_value, "readouts exchanged image by image"))
    return found


def _mcnemar(paired: Paired) -> Quantity:
    """Return McNemar's p-value and the discordant rows it rests on."""
    worse, better = paired.pos_yn + paired.neg_ny, paired.pos_ny + paired.neg_yn
    note = f"naive, takes questions for independent: {worse} rows right only under `from`, {better} only under `to`"
    return Quantity("mcnemar_p", mcnemar(worse, better), note)
