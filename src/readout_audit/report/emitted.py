"""What the pair of readouts compares, and with which tokens the answers begin, in sentences."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from readout_audit.report.text import listed, of, quoted
from readout_audit.scores.decisions import Decisions


def compared_spellings(decisions: Decisions | None, pair: tuple[str, str]) -> list[str]:
    """Say which spellings each readout of the pair compares, by which rule; nothing where they are not known."""
    described = decisions.metadata.get("readouts", {}) if decisions is not None else {}
    said = [_compared(name, described.get(name, {})) for name in pair]
    if "" in said:
        return []
    return [f"{'; '.join(said)} (▁ and Ġ stand for a leading space)."]


def _compared(name: str, described: Mapping[str, Any]) -> str:
    """Say what one readout compares, and by which rule where it is recorded; empty where the pieces are not known."""
    ids, pieces = (described.get(key) or {} for key in ("ids", "pieces"))
    spelt = [[pieces.get(str(token)) for token in ids.get(answer, [])] for answer in ("yes", "no")]
    if not all(side and all(piece is not None for piece in side) for side in spelt):
        return ""
    sides = (listed([quoted(str(piece)) for piece in side]) for side in spelt)
    rule = f", by the rule: {described['rule']}" if described.get("rule") else ""
    return f"{name} compares {' with '.join(sides)}{rule}"


def emitted_tokens(decisions: Decisions) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]] | None:
    """Return the first tokens of all rows, ascending, and how often each stands there; None where one is not known."""
    column = decisions.identity["first_token_id"]
    if column.null_count:
        return None
    tokens, counts = np.unique(column.to_numpy(), return_counts=True)
    return tokens, counts


def first_tokens(decisions: Decisions | None, pair: tuple[str, str]) -> list[str]:
    """Say which share of the answers begins with a token that each readout of the pair looks at.

    A readout that compares tokens the model does not write decides between candidates that were not chosen
    (Corollary 1 of the paper). Nothing is said where first tokens or ids are not known.
    """
    known = emitted_tokens(decisions) if decisions is not None else None
    if decisions is None or known is None:
        return []
    emitted, counts = known
    total = int(counts.sum())
    shares = []
    for name in pair:
        readout = decisions.metadata.get("readouts", {}).get(name, {})
        ids = [token for side in (readout.get("ids") or {}).values() for token in side]
        if ids and total:
            shares.append((name, int(counts[np.isin(emitted, ids)].sum())))
    if not shares:
        return []
    most = [(int(emitted[i]), int(counts[i])) for i in np.argsort(-counts, kind="stable")[:4]]
    pieces = known_pieces(decisions)
    tokens = listed([f"{_token(token, pieces)} ({count:,})" for token, count in most])
    kinds = f" (the {len(most)} most frequent of {len(emitted)})" if len(emitted) > len(most) else ""
    found = listed([f"{name} looks at that token in {of(n, total)}" for name, n in shares])
    outside = any(n < total for _, n in shares)
    why = ". Where it does not, it decides between tokens that the model did not choose" if outside else ""
    return [f"The answers begin with {tokens}{kinds}; {found}{why}."]


def known_pieces(decisions: Decisions) -> dict[str, str]:
    """Return the vocabulary pieces that a decision file knows, by id as text."""
    described = decisions.metadata.get("readouts", {}).values()
    maps = [*(readout.get("pieces") or {} for readout in described)]
    maps.append(decisions.metadata.get("first_token_pieces") or {})
    return {token: piece for pieces in maps for token, piece in pieces.items() if piece is not None}


def _token(token: int, pieces: dict[str, str]) -> str:
    """Return a token by its piece and id."""
    piece = pieces.get(str(token))
    return f"{quoted(piece)} = {token}" if piece is not None else f"id {token}"
