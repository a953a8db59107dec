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

from readout_audit.contracts import INVALID, NO, YES
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


def candidate_logits(
    records: pa.Table, meta: Metadata, ids: Sequence[int], readout: str
) -> NDArray[np.float32]:
    """Return the raw logits of `ids`, float32 of shape (n, len(ids)); NaN in invalid rows.

    Raises:
        AuditError: an id is not among the recorded candidates, or a row that is said to be ok has a
            missing or non-finite logit.
    """
    recorded = {token: column for column, token in enumerate(meta["candidate_ids"])}
    outside = [token for token in ids if token not in recorded]
    if outside:
        raise AuditError(
            f"{readout} reads token ids {outside}, which the records of {_model(meta)} do not hold; "
            "run inference again with them among the candidates, or leave this readout out."
        )
    ok = valid_rows(records)
    width = len(meta["candidate_ids"])
    lists = records["candidate_logits"].combine_chunks().filter(pa.array(ok))
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    values = lists.flatten().to_numpy(zero_copy_only=False)
    if (lengths != width).any() or not np.isfinite(values).all():
        raise AuditError(
            f"{readout}: a row of {_model(meta)} has status ok but not {width} finite candidate logits; "
            "such a row must be marked invalid when it is recorded."
        )
    logits = np.full((len(ok), len(ids)), np.nan, dtype=np.float32)
    logits[ok] = values.reshape(-1, width)[:, [recorded[token] for token in ids]]
    return logits


def compare(yes: NDArray[Any], no: NDArray[Any]) -> Decided:
    """Decide n rows by yes > no, strictly: a tie is a no. NaN on either side makes a row invalid.

    Args:
        yes: n scores of yes.
        no: n scores of no, in the same floating type; the comparison is exact in it.
    """
    invalid = np.isnan(yes) | np.isnan(no)
    decision = np.where(invalid, INVALID, np.where(yes > no, YES, NO))
    margin = np.where(invalid, 0, yes - no).astype(np.float32)
    return Decided(
        decision=pa.array(decision, pa.string()),
        margin=pa.array(margin, pa.float32(), mask=invalid),
        tie=pa.array(yes == no, pa.bool_(), mask=invalid),
    )


def max_against_max(records: pa.Table, meta: Metadata, sets: TokenSets, readout: str) -> Decided:
    """Decide every row by the largest raw logit of `sets.yes` > the largest of `sets.no`."""
    logits = candidate_logits(records, meta, [*sets.yes, *sets.no], readout)
    split = len(sets.yes)
    return compare(logits[:, :split].max(axis=1), logits[:, split:].max(axis=1))


def decide_texts(
    texts: pa.ChunkedArray, valid: NDArray[np.bool_], rule: Callable[[str | None], str]
) -> pa.Array:
    """Apply `rule` (text or None -> decision) to n texts, once per distinct text; invalid rows stay so."""
    encoded = pc.dictionary_encode(texts, null_encoding="encode").combine_chunks()
    decisions = np.array([rule(text) for text in encoded.dictionary.to_pylist()] + [INVALID], dtype=object)
    codes = np.where(valid, encoded.indices.to_numpy(zero_copy_only=False), len(decisions) - 1)
    return pa.array(decisions[codes], pa.string())
