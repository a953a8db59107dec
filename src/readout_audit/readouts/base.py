"""What a readout is, and the arithmetic that all logit readouts share.

A readout is a pure function of the record table and its metadata. It reads either the raw first-step
logits of two sets of token ids, or a text. It is registered by name in `readouts.registry`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from readout_audit.contracts import INVALID, NO, UNPARSED, YES
from readout_audit.errors import AuditError

PAPER = "arXiv 2610.25964"
AUTHORS = "Kesav2k04/ugaa-research at 08a10ab"

Kind = Literal["logit", "string"]
Metadata = Mapping[str, Any]


class NotAvailableError(AuditError):
    """The source does not give what the readout reads; its columns are null, with this sentence."""


class TokenSets(NamedTuple):
    """The ids a readout compares, ascending and without repeats."""

    yes: tuple[int, ...]
    no: tuple[int, ...]


@dataclass(frozen=True)
class Decided:
    """What one readout makes of n rows.

    Attributes:
        decision: n strings, yes | no | unparsed | invalid.
        margin: n float32, yes score minus no score; null where invalid. None for string readouts.
        tie: n booleans, whether the two scores are equal; null where invalid. None for string readouts.
        flags: by name, n booleans that mark the rows a quirk of the rule decided.
        settings: what the rule chose for itself (such as a cut), for the output's metadata.
    """

    decision: pa.Array
    margin: pa.Array | None = None
    tie: pa.Array | None = None
    flags: Mapping[str, pa.Array] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


class Readout(Protocol):
    """One way to read an answer.

    Attributes:
        name: its name in configs and columns.
        kind: what it reads, the logits or a text.
        source: where the rule comes from, to file and version.
        rule: the rule in one sentence.
        strings: the words it looks for, by the answer they mean; empty for logit readouts.
        needs_labels: whether the rule looks at the right answers.
    """

    name: str
    kind: Kind
    source: str
    rule: str
    strings: Mapping[str, tuple[str, ...]]
    needs_labels: bool

    def ids(self, meta: Metadata) -> TokenSets | None:
        """Return the ids it reads under this record metadata; None for string readouts.

        Raises:
            NotAvailableError: the metadata gives no such ids.
        """
        ...

    def decide(self, records: pa.Table, meta: Metadata, labels: pa.Array | None = None) -> Decided:
        """Decide every row of `records`; `labels` (yes | no per row) only where `needs_labels`."""
        ...


def token_sets(yes: Sequence[int], no: Sequence[int], readout: str, meta: Metadata) -> TokenSets:
    """Return the two sets as a readout may use them: sorted, without repeats, disjoint, none empty.

    Raises:
        NotAvailableError: a set is empty.
        AuditError: an id stands in both sets.
    """
    sets = TokenSets(tuple(sorted(set(yes))), tuple(sorted(set(no))))
    for answer, ids in (("yes", sets.yes), ("no", sets.no)):
        if not ids:
            raise NotAvailableError(f"{readout}: {_model(meta)} has no token id that means {answer} for it.")
    both = sorted(set(sets.yes) & set(sets.no))
    if both:
        raise AuditError(
            f"{readout}: token ids {both} of {_model(meta)} mean both yes and no; "
            "look at the tokenizer, or leave this readout out."
        )
    return sets


def named_sets(meta: Metadata, name: str, readout: str) -> TokenSets:
    """Return `meta["token_sets"][name]`, whose sides are lists of ids.

    Raises:
        NotAvailableError: the metadata has no such sets, or one is empty.
    """
    sets = meta.get("token_sets", {}).get(name)
    if sets is None:
        raise NotAvailableError(f"{readout}: the records of {_model(meta)} name no {name} token sets.")
    return token_sets(sets["yes"], sets["no"], readout, meta)


def _model(meta: Metadata) -> str:
    """Return the model's name for an error."""
    return str(meta.get("model", "this model"))


def valid_rows(records: pa.Table) -> NDArray[np.bool_]:
    """Return which rows have status ok, as n booleans."""
    mask: NDArray[np.bool_] = pc.equal(records["status"], "ok").to_numpy()
    return mask


class Bounds(NamedTuple):
    """What is known of some scores: the least and the most that each can be, NaN where invalid.

    Equal where the logits were recorded. A server that lists only its likeliest tokens leaves the others
    between minus infinity and the last one of its list.
    """

    low: NDArray[Any]
    high: NDArray[Any]


def is_listed(meta: Metadata) -> bool:
    """Tell whether the records hold a server's list of likeliest tokens and null for all others."""
    return "unlisted" in meta


def candidate_logits(
    records: pa.Table, meta: Metadata, ids: Sequence[int], readout: str
) -> NDArray[np.float32]:
    """Return the raw logits of `ids`, float32 of shape (n, len(ids)); NaN in invalid rows.

    Raises:
        NotAvailableError: a server listed only its likeliest tokens.
        AuditError: an id is not among the recorded candidates, or a row that is said to be ok has a
            missing or non-finite logit.
    """
    if is_listed(meta):
        raise NotAvailableError(
            f"{readout} needs every candidate's logit; {_model(meta)}'s server lists only its likeliest tokens."
        )
    return candidate_bounds(records, meta, ids, readout).low


def candidate_bounds(records: pa.Table, meta: Metadata, ids: Sequence[int], readout: str) -> Bounds:
    """Return what is known of the logits of `ids`, float32 of shape (n, len(ids)).

    Raises:
        NotAvailableError: the model has no logit of an id: its vocabulary is smaller than the reference's.
        AuditError: an id is not among the recorded candidates, or a row that is said to be ok has a
            missing or non-finite logit.
    """
    recorded = {token: column for column, token in enumerate(meta["candidate_ids"])}
    outside = [token for token in ids if token not in recorded]
    if outside and set(outside) <= set(meta.get("ids_without_logit", ())):
        raise NotAvailableError(
            f"{readout} reads token ids {outside}, of which {_model(meta)} has no logit: its vocabulary ends before."
        )
    if outside:
        raise AuditError(
            f"{readout} reads token ids {outside}, which the records of {_model(meta)} do not hold; "
            "run inference again with them among the candidates, or leave this readout out."
        )
    ok = valid_rows(records)
    width = len(meta["candidate_ids"])
    lists = records["candidate_logits"].combine_chunks().filter(pa.array(ok))
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    flat = lists.flatten()
    values, unlisted = flat.to_numpy(zero_copy_only=False), flat.is_null().to_numpy(zero_copy_only=False)
    if (lengths != width).any() or not np.isfinite(values[~unlisted]).all() or _missing(unlisted, meta):
        raise AuditError(
            f"{readout}: a row of {_model(meta)} has status ok but not {width} finite candidate logits; "
            "such a row must be marked invalid when it is recorded."
        )
    columns = [recorded[token] for token in ids]
    low, high = (np.full((len(ok), len(ids)), np.nan, dtype=np.float32) for _ in range(2))
    values, unlisted = values.reshape(-1, width)[:, columns], unlisted.reshape(-1, width)[:, columns]
    low[ok] = np.where(unlisted, -np.inf, values)
    high[ok] = np.where(unlisted, _least_listed(records, ok)[:, None], values) if is_listed(meta) else values
    return Bounds(low, high)


def _missing(unlisted: NDArray[np.bool_], meta: Metadata) -> bool:
    """Tell whether logits are missing that nothing excuses."""
    return bool(unlisted.any()) and not is_listed(meta)


def _least_listed(records: pa.Table, ok: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the last of each valid row's `top_logits`: no token that is not listed has a larger logit."""
    lists = records["top_logits"].combine_chunks().filter(pa.array(ok))
    ends = np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False))
    last: NDArray[np.float32] = lists.flatten().to_numpy(zero_copy_only=False)[ends - 1]
    return last


def compare(yes: NDArray[Any], no: NDArray[Any]) -> Decided:
    """Decide n rows by yes > no, strictly: a tie is a no. NaN on either side makes a row invalid.

    Args:
        yes: n scores of yes.
        no: n scores of no, in the same floating type; the comparison is exact in it.
    """
    return compare_bounds(Bounds(yes, yes), Bounds(no, no))


def compare_bounds(yes: Bounds, no: Bounds) -> Decided:
    """Decide n rows by yes > no, strictly, as far as the bounds decide it; the others are unparsed.

    Yes where the least yes is above the most no, no where the most yes is not above the least no. The margin
    is null where a score is not known exactly, and so is the tie where there may be one.
    """
    invalid = np.isnan(yes.low) | np.isnan(no.low)
    is_yes, is_no = yes.low > no.high, yes.high <= no.low
    decision = np.where(invalid, INVALID, np.where(is_yes, YES, np.where(is_no, NO, UNPARSED)))
    exact = (yes.low == yes.high) & (no.low == no.high)
    apart = is_yes | (yes.high < no.low)
    margin = np.subtract(yes.low, no.low, out=np.zeros_like(yes.low), where=exact)
    return Decided(
        decision=pa.array(decision, pa.string()),
        margin=pa.array(margin.astype(np.float32), pa.float32(), mask=invalid | ~exact),
        tie=pa.array(exact & (yes.low == no.low), pa.bool_(), mask=invalid | ~(exact | apart)),
    )


def max_against_max(records: pa.Table, meta: Metadata, sets: TokenSets, readout: str) -> Decided:
    """Decide every row by the largest raw logit of `sets.yes` > the largest of `sets.no`."""
    known = candidate_bounds(records, meta, [*sets.yes, *sets.no], readout)
    split = len(sets.yes)
    yes, no = (
        Bounds(*(bound[:, side].max(axis=1) for bound in known))
        for side in (slice(split), slice(split, None))
    )
    return compare_bounds(yes, no)


def decide_texts(
    texts: pa.ChunkedArray, valid: NDArray[np.bool_], rule: Callable[[str | None], str]
) -> pa.Array:
    """Apply `rule` (text or None -> decision) to n texts, once per distinct text; invalid rows stay so."""
    encoded = pc.dictionary_encode(texts, null_encoding="encode").combine_chunks()
    decisions = np.array([rule(text) for text in encoded.dictionary.to_pylist()] + [INVALID], dtype=object)
    codes = np.where(valid, encoded.indices.to_numpy(zero_copy_only=False), len(decisions) - 1)
    return pa.array(decisions[codes], pa.string())
