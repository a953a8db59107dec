"""Readouts whose token sets come from the model's own tokenizer."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from readout_audit.readouts.base import (
    AUTHORS,
    PAPER,
    Bounds,
    Decided,
    Kind,
    Metadata,
    TokenSets,
    candidate_bounds,
    compare_bounds,
    is_listed,
    max_against_max,
    named_sets,
    valid_rows,
)


@dataclass(frozen=True)
class SetReadout:
    """Largest logit of one named yes set against the no set, strictly."""

    name: str
    sets: str
    rule: str
    source: str
    kind: Kind = "logit"
    needs_labels: bool = False
    strings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def ids(self, meta: Metadata) -> TokenSets:
        """Return the sets that the record metadata holds under this readout's set name."""
        return named_sets(meta, self.sets, self.name)

    def decide(self, records: pa.Table, meta: Metadata, labels: pa.Array | None = None) -> Decided:
        """Decide every row by max over the yes ids > max over the no ids."""
        return max_against_max(records, meta, self.ids(meta), self.name)


@dataclass(frozen=True)
class LogSumExpReadout:
    """Total probability of the yes set against that of the no set, strictly."""

    name: str
    sets: str
    rule: str
    source: str
    kind: Kind = "logit"
    needs_labels: bool = False
    strings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def ids(self, meta: Metadata) -> TokenSets:
        """Return the sets that the record metadata holds under this readout's set name."""
        return named_sets(meta, self.sets, self.name)

    def decide(self, records: pa.Table, meta: Metadata, labels: pa.Array | None = None) -> Decided:
        """Decide every row by log-sum-exp over the yes ids > log-sum-exp over the no ids."""
        return compare_bounds(*set_masses(records, meta, self.ids(meta), self.name))


def set_masses(records: pa.Table, meta: Metadata, sets: TokenSets, readout: str) -> tuple[Bounds, Bounds]:
    """Return the log-sum-exp of the yes and of the no logits, n float64 each; NaN in invalid rows.

    Where a server lists only its likeliest tokens, a set may have all the probability that is left over.
    """
    yes, no = (log_sum_exp(candidate_bounds(records, meta, ids, readout).low) for ids in sets)
    if not is_listed(meta):
        return Bounds(yes, yes), Bounds(no, no)
    rest = unlisted_mass(records)
    with np.errstate(invalid="ignore"):  # NaN of invalid rows
        return Bounds(yes, np.logaddexp(yes, rest)), Bounds(no, np.logaddexp(no, rest))


def unlisted_mass(records: pa.Table) -> NDArray[np.float64]:
    """Return the log of the mass that all tokens outside `top_logits` have together, in the rows' own units."""
    ok = valid_rows(records)
    rest = np.full(len(ok), np.nan)
    columns = (records[name].filter(pa.array(ok)).to_pylist() for name in ("top_logits", "log_z"))
    for row, logits, log_z in zip(np.flatnonzero(ok).tolist(), *columns, strict=True):
        listed = float(np.exp(np.array(logits, dtype=np.float64) - log_z).sum())
        # float32 cannot tell less than this from nothing.
        rest[row] = log_z + np.log(max(1.0 - listed, 0.0) + len(logits) * np.finfo(np.float32).eps)
    return rest


def log_sum_exp(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return log(sum(exp(row))) of each row of float32 (n, k), as n float64.

    Rows are summed in ascending order, so that two rows that hold the same logits give the same float.
    Minus infinity where all are.
    """
    ordered = np.sort(logits.astype(np.float64), axis=1)
    top = np.where(np.isneginf(ordered[:, -1]), 0.0, ordered[:, -1])
    with np.errstate(divide="ignore"):
        total: NDArray[np.float64] = top + np.log(np.exp(ordered - top[:, None]).sum(axis=1))
    return total


DYNAMIC_SINGLE = SetReadout(
    name="dynamic_single",
    sets="single",
    rule="largest logit of the one-token forms among yes, Yes, ␣yes, ␣Yes > the same for no; each id once",
    source=f"{PAPER}, Listing 1; {AUTHORS}, src/run_multi_model_audit.py",
)
VOCAB_SCAN = SetReadout(
    name="vocab_scan",
    sets="scan",
    rule="largest logit among all pieces whose surface is yes > among all whose surface is no",
    source="readout-audit: every piece of the vocabulary, stripped of spaces and signs, any case",
)
IN_CONTEXT = SetReadout(
    name="in_context",
    sets="in_context",
    rule="largest logit of the first ids that yes answers take after the rendered prompt > the same for no",
    source="readout-audit: prompt and answer encoded together, with and without a joining space",
)
SET_LOGSUMEXP = LogSumExpReadout(
    name="set_logsumexp",
    sets="single",
    rule="log-sum-exp of dynamic_single's yes logits > log-sum-exp of its no logits",
    source=f"{PAPER}: the sum or softmax over forms that it argues against",
)
