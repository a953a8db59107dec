"""The logits that were read though the decoder never emitted them: what ids 3582 and 1217 actually held.

Only the records are needed. `excluded` is the readout whose ids are meant (the two-token rule), `emitted` the one
whose decision stands for the answer.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.stats import pearsonr, spearmanr

from readout_audit.corrections.auc import estimate, place
from readout_audit.corrections.evidence import Evidence
from readout_audit.corrections.rows import Block
from readout_audit.probe.answers import Answers, Bools, Floats
from readout_audit.probe.clustered import UNKNOWN, Interval, Weights, intervals
from readout_audit.scores.bootstrap import Images

OUTCOMES = ("all", "tp", "fp", "tn", "fn")
QUANTILES = {"p05": 0.05, "p25": 0.25, "median": 0.5, "p75": 0.75, "p95": 0.95}


class Excluded(NamedTuple):
    """What the excluded ids held at the answer position of n questions; shape (n,), NaN where invalid.

    Attributes:
        yes, no: largest logit of the excluded yes ids, of the excluded no ids.
        yes_rank, no_rank: the best rank of one of them in the vocabulary, 1 the largest logit.
        yes_probability, no_probability: their share of the full softmax, added over the ids.
    """

    yes: Floats
    no: Floats
    yes_rank: Floats
    no_rank: Floats
    yes_probability: Floats
    no_probability: Floats

    def take(self, rows: npt.NDArray[np.int64]) -> "Excluded":
        """Return the questions of the given rows."""
        return Excluded(*(values[rows] for values in self))


def measure_excluded(evidence: Evidence) -> Excluded:
    """Read the excluded ids; `evidence` is that of the readout whose ids they are."""
    log_z = np.asarray(evidence.records["log_z"].cast(pa.float64()).to_numpy())[:, None]
    recorded = list(evidence.record_meta["candidate_ids"])
    columns = [[recorded.index(token) for token in ids] for ids in evidence.sets]
    ranks = _ranks(evidence)
    logits = [side.max(axis=1) for side in evidence.logits]
    best = [ranks[:, places].min(axis=1) for places in columns]
    shares = [np.exp(side - log_z).sum(axis=1) for side in evidence.logits]
    return Excluded(*logits, *best, *shares)


def _ranks(evidence: Evidence) -> Floats:
    """Return the ranks of all candidates, shape (n, candidates), NaN where invalid."""
    lists = evidence.records["candidate_ranks"].combine_chunks()
    there = pc.is_valid(lists).to_numpy(zero_copy_only=False)
    ranks = np.full((len(there), len(evidence.record_meta["candidate_ids"])), np.nan)
    ranks[there] = lists.filter(pa.array(there)).flatten().to_numpy().reshape(-1, ranks.shape[1])
    return ranks


def main_answers(evidence: Evidence, block: Block) -> Answers:
    """Return the answers of the main records on a block: the excluded logits are of that pass."""
    yes, no = (side.max(axis=1)[block.rows.question] for side in evidence.logits)
    images = Images(block.rows.image, block.rows.images.n)
    return Answers(block.labels, block.split, block.rows.positive, yes, no, {}, images)


def excluded_rows(answers: Answers, excluded: Excluded, weights: Weights | None) -> Iterator[dict[str, Any]]:
    """Yield the distribution of each side and of their difference, by outcome.

    Args:
        answers: m answers under the emitted-token readout.
        excluded: of the same m rows.
        weights: the draw of images for the correlation's interval.
    """
    pair = excluded.yes - excluded.no
    sides = {
        "yes": (excluded.yes, excluded.yes_rank, excluded.yes_probability),
        "no": (excluded.no, excluded.no_rank, excluded.no_probability),
        "pair": (pair, None, excluded.yes_probability + excluded.no_probability),
    }
    for outcome in OUTCOMES:
        there = answers.group(outcome)
        for side, (values, ranks, probability) in sides.items():
            row = {"outcome": outcome, "side": side, **_distribution(values[there])}
            row |= _probability(probability[there])
            row |= _rank(ranks[there]) if ranks is not None else _relation(answers, pair, there, weights)
            yield row


def _distribution(values: Floats) -> dict[str, Any]:
    """Return n, mean, SD and quantiles of a logit."""
    row: dict[str, Any] = {"n": len(values)}
    if not len(values):
        return row
    row |= {"mean": float(values.mean()), "min": float(values.min()), "max": float(values.max())}
    row |= {name: float(np.quantile(values, share)) for name, share in QUANTILES.items()}
    return row | ({"sd": float(values.std(ddof=1))} if len(values) > 1 else {})


def _rank(ranks: Floats) -> dict[str, Any]:
    """Return mean, median and best rank."""
    if not len(ranks):
        return {}
    return {
        "rank_mean": float(ranks.mean()),
        "rank_median": float(np.median(ranks)),
        "rank_best": int(ranks.min()),
    }


def _probability(probability: Floats) -> dict[str, Any]:
    """Return mean, median and largest share of the full softmax."""
    if not len(probability):
        return {}
    return {
        "probability_mean": float(probability.mean()),
        "probability_median": float(np.median(probability)),
        "probability_max": float(probability.max()),
    }


def _relation(answers: Answers, pair: Floats, there: Bools, weights: Weights | None) -> dict[str, Any]:
    """Return how the excluded difference goes with the emitted gap, the label and the answer."""
    gap, excluded = answers.gap[there], pair[there]
    row: dict[str, Any] = {}
    if len(gap) > 2 and np.ptp(gap) and np.ptp(excluded):
        interval = _correlation_interval(gap, excluded, there, weights)
        row |= {
            "pearson": float(pearsonr(gap, excluded).statistic),
            "pearson_low": interval.low,
            "pearson_high": interval.high,
            "spearman": float(spearmanr(gap, excluded).statistic),
        }
    says_yes = excluded > 0
    row |= {
        "says_yes": int(says_yes.sum()),
        "label_hits": int((says_yes == answers.positive[there]).sum()),
        "answer_hits": int((says_yes == answers.yes[there]).sum()),
    }
    if answers.images is not None:
        placed = place(excluded, answers.positive[there], answers.images.codes[there], answers.images.n)
        if placed is not None:
            found = estimate(placed)
            row |= {"label_auc": found.value, "label_auc_low": found.low, "label_auc_high": found.high}
    return row


def _correlation_interval(gap: Floats, excluded: Floats, there: Bools, weights: Weights | None) -> Interval:
    """Return Pearson's interval over images, from weighted moments."""
    if weights is None:
        return UNKNOWN
    x, y = gap - gap.mean(), excluded - excluded.mean()
    columns = np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)
    per_image = np.zeros((weights.images, 6))
    np.add.at(per_image, weights.image[there], columns)
    n, sx, sy, sxx, syy, sxy = (weights.times @ per_image).T
    with np.errstate(divide="ignore", invalid="ignore"):
        above = n * sxy - sx * sy
        below = np.sqrt(np.maximum(n * sxx - sx * sx, 0) * np.maximum(n * syy - sy * sy, 0))
        found = np.where(below > 0, above / below, np.nan)
    return intervals(found[:, None])[0]
