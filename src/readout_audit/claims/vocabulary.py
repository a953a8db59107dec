"""Numbers that a tokenizer gives: ids of pieces, of encoded forms, of the single-token sets."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from readout_audit.claims.evidence import Evidence
from readout_audit.claims.finding import Finding, Missing
from readout_audit.claims.numbers import Number


def _token_map(number: Number, evidence: Evidence) -> Mapping[str, Any] | Missing:
    """Return the token map of a claim's model."""
    found = evidence.token_maps.get(number.model)
    return found if found is not None else Missing("not_run", f"this run has no tokenizer of {number.model}.")


def vocabulary(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return the id of one piece (Table 5)."""
    token_map = _token_map(number, evidence)
    if isinstance(token_map, Missing):
        return token_map
    answer, _, form = number.quantity.partition(":")
    token = token_map["vocabulary"][answer].get(form)
    return Finding(Fraction(token) if token is not None else "not in the vocabulary", _source(number))


def encode(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return the ids that one form encodes to (Table 10)."""
    token_map = _token_map(number, evidence)
    if isinstance(token_map, Missing):
        return token_map
    form = number.quantity.partition(":")[2]
    return Finding(", ".join(map(str, token_map["encode"].get(form, []))), _source(number))


def single_ids(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return the ids that Listing 1 keeps for one answer."""
    token_map = _token_map(number, evidence)
    if isinstance(token_map, Missing):
        return token_map
    return Finding(", ".join(map(str, token_map["single"][number.quantity])), _source(number))


def _source(number: Number) -> str:
    """Return what vocabulary numbers are found from."""
    return f"tokenizer of {number.model}"
