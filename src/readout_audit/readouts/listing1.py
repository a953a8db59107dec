"""The recommended readout as one function for other people's harnesses: Listing 1 with its traps fixed.

    from readout_audit import readout
    answer = readout(tokenizer, outputs.logits[0, -1]).answer

It needs a tokenizer with `encode` and `convert_ids_to_tokens`, and the raw logits of the answer position:
those of a plain forward pass, not the `scores` of `generate`, which sampling settings and penalties of the
checkpoint have changed.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from readout_audit.contracts import NO, YES
from readout_audit.errors import AuditError

FORMS = {YES: ("yes", "Yes", " yes", " Yes"), NO: ("no", "No", " no", " No")}
"""The surface forms of Listing 1."""


class FirstTokenReading(NamedTuple):
    """One answer, and what it was read from.

    Attributes:
        answer: yes or no; a tie is a no.
        margin: largest yes logit minus largest no logit.
        tie: whether the two are equal.
        emitted: id and piece of the greedy first token (lowest id on a tie; no piece beyond the vocabulary).
        covered: whether that token is one of those compared. If not, the answer compares two tokens that the
            model would not have written: look at the prompt template and at the sets.
        yes: ids and pieces read as yes.
        no: ids and pieces read as no.
    """

    answer: str
    margin: float
    tie: bool
    emitted: tuple[int, str | None]
    covered: bool
    yes: dict[int, str]
    no: dict[int, str]


def readout(tokenizer: Any, logits: Any) -> FirstTokenReading:
    """Read yes or no from the raw first-position logits: largest one-token yes form against largest no form.

    Args:
        tokenizer: the model's own, loaded as for inference.
        logits: one vector over the vocabulary; a torch tensor of any dtype and device, an array or a list.

    Raises:
        AuditError: the vector is no vector of finite logits, or a set is empty, shared or out of its range.
    """
    values = _vector(logits)
    sets = {answer: _one_token_ids(tokenizer, forms) for answer, forms in FORMS.items()}
    if not sets[YES] or not sets[NO] or sets[YES] & sets[NO]:
        raise AuditError(f"this tokenizer has no one-token forms that tell yes from no: {sets}.")
    if max(sets[YES] | sets[NO]) >= len(values):
        raise AuditError(
            f"{len(values)} logits do not cover the ids {sets}; is this another model's tokenizer?"
        )
    yes, no = (max(values[token] for token in sets[answer]) for answer in (YES, NO))
    emitted = int(values.argmax())
    pieces = {token: tokenizer.convert_ids_to_tokens(token) for token in {*sets[YES], *sets[NO], emitted}}
    return FirstTokenReading(
        answer=YES if yes > no else NO,
        margin=float(yes - no),
        tie=bool(yes == no),
        emitted=(emitted, pieces[emitted]),
        covered=emitted in sets[YES] | sets[NO],
        yes={token: pieces[token] for token in sorted(sets[YES])},
        no={token: pieces[token] for token in sorted(sets[NO])},
    )


def _one_token_ids(tokenizer: Any, forms: tuple[str, ...]) -> set[int]:
    """Return the ids of the forms that are one token; a set, since two forms may share an id."""
    encoded = [tokenizer.encode(form, add_special_tokens=False) for form in forms]
    unknown = getattr(tokenizer, "unk_token_id", None)
    return {int(ids[0]) for ids in encoded if len(ids) == 1 and ids[0] != unknown}


def _vector(logits: Any) -> NDArray[np.float64]:
    """Return the logits as float64; every dtype that models compute in converts without loss."""
    if hasattr(logits, "detach"):  # a torch tensor: numpy has no bfloat16
        logits = logits.detach().float().cpu().numpy()
    values = np.asarray(logits, dtype=np.float64)
    if values.ndim != 1:
        raise AuditError(f"one vector of logits is expected, not shape {values.shape}; take [0, -1].")
    if not np.isfinite(values).all():
        raise AuditError(
            "the logits are not all finite: processed scores, or a failed forward pass; give raw ones."
        )
    return values
