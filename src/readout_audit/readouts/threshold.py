"""P(yes) against a cut that other images choose: what tuning the operating point alone can do."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readout_audit.contracts import YES
from readout_audit.errors import AuditError
from readout_audit.readouts.base import (
    Decided,
    Kind,
    Metadata,
    NotAvailableError,
    TokenSets,
    compare,
    is_listed,
    named_sets,
    valid_rows,
)
from readout_audit.readouts.dynamic import set_masses


@dataclass(frozen=True)
class ThresholdReadout:
    """P(yes) = mass of the yes set / mass of both sets, above a cut chosen on the other folds' images.

    All questions about an image are in one fold. The cut of a fold maximises F1 over the rows of the other
    folds, all splits together; of equally good cuts the one nearest to one half is taken.

    Attributes:
        folds: how many parts the images are dealt into; fewer where there are fewer images.
        seed: of the generator that shuffles the sorted image names before they are dealt.
    """

    name: str = "threshold"
    sets: str = "single"
    folds: int = 5
    seed: int = 42
    rule: str = "P(yes) of set_logsumexp above a cut that maximises F1 on the other folds' images"
    source: str = "readout-audit: five folds of images, dealt with seed 42"
    kind: Kind = "logit"
    needs_labels: bool = True
    strings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def ids(self, meta: Metadata) -> TokenSets:
        """Return the sets of dynamic_single and set_logsumexp."""
        return named_sets(meta, self.sets, self.name)

    def decide(self, records: pa.Table, meta: Metadata, labels: pa.Array | None = None) -> Decided:
        """Decide n question rows; the margin is log-odds of P(yes) minus log-odds of the cut.

        Raises:
            NotAvailableError: the valid rows are about fewer than two images, or P(yes) is not known.
        """
        if labels is None:
            raise AuditError(f"{self.name} chooses its cut by labels and was given none.")
        if is_listed(meta):
            raise NotAvailableError(
                f"{self.name}: P(yes) is not known where a server lists only its likeliest tokens."
            )
        yes, no = (mass.low for mass in set_masses(records, meta, self.ids(meta), self.name))
        log_odds, positive = yes - no, np.array(labels.to_pylist(), dtype=object) == YES
        fold = deal_folds(records["image"].to_pylist(), self.folds, self.seed)
        valid = valid_rows(records)
        cuts = np.full(len(log_odds), np.nan)
        chosen: dict[str, float] = {}
        for k in np.unique(fold).tolist():
            others = valid & (fold != k)
            if not others.any():
                raise NotAvailableError(f"{self.name}: one image leaves no other to choose its cut by.")
            cut = best_cut(log_odds[others], positive[others])
            cuts[fold == k] = cut
            chosen[str(k)] = float(1 / (1 + np.exp(-cut)))
        return replace(compare(log_odds, cuts), settings={"seed": self.seed, "p_yes_cut_by_fold": chosen})


def deal_folds(images: list[str], folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each row: its images, sorted, shuffled with the seed, dealt round the folds."""
    names = sorted(set(images))
    order = np.random.default_rng(seed).permutation(len(names))
    fold_of = {names[image]: rank % folds for rank, image in enumerate(order.tolist())}
    return np.array([fold_of[image] for image in images], dtype=np.int64)


def best_cut(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Return the cut c for which calling score > c a yes has the largest F1; the nearest to 0 of several.

    Args:
        scores: log-odds of yes, n finite numbers.
        positive: which rows have label yes.

    Candidates lie halfway between neighbouring distinct scores, and one below and one above all of them.
    """
    values, group = np.unique(scores, return_inverse=True)
    hits = np.bincount(group, weights=positive, minlength=len(values))
    sizes = np.bincount(group, minlength=len(values))
    # Entry k: rows with a score above values[k-1], so all of them at 0 and none at the end.
    tp = np.append(np.cumsum(hits[::-1])[::-1], 0)
    called = np.append(np.cumsum(sizes[::-1])[::-1], 0)
    denominators = called + positive.sum()
    f1 = np.divide(2 * tp, denominators, out=np.zeros(len(tp)), where=denominators > 0)
    between = values[:-1] / 2 + values[1:] / 2
    between = np.where(between < values[1:], between, values[:-1])  # neighbours with no float between them
    cuts = np.concatenate([[values[0] - 1], between, [values[-1] + 1]])
    best = np.flatnonzero(f1 == f1.max())
    return float(cuts[best[np.argmin(np.abs(cuts[best]))]])


THRESHOLD = ThresholdReadout()
