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
        AuditError: the tokenizer is none, the vector is no vector of finite logits, or a set is empty, shared or
            out of its range.
    """
    sets = _sets(tokenizer)
    values = _vector(logits)
    largest = max(sets[YES] | sets[NO])
    if largest >= len(values):
        raise AuditError(
            f"{len(values)} logits do not reach the token id {largest} that this tokenizer has for yes or no; give the "
            "logits of the whole vocabulary, and the model's own tokenizer."
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


def _sets(tokenizer: Any) -> dict[str, set[int]]:
    """Return the ids of the one-token forms by answer.

    Raises:
        AuditError: it is no tokenizer, a set is empty, or the two share an id.
    """
    try:
        sets = {answer: _one_token_ids(tokenizer, forms) for answer, forms in FORMS.items()}
    except (AttributeError, TypeError):
        hint = "; take its .tokenizer" if hasattr(tokenizer, "tokenizer") else ""
        raise AuditError(
            "the first argument must be the model's tokenizer, with encode(text, add_special_tokens=False) and "
            f"convert_ids_to_tokens(id), not {type(tokenizer).__name__}{hint}."
        ) from None
    for answer, ids in sets.items():
        if not ids:
            raise AuditError(
                f"this tokenizer has no form of {answer} ({', '.join(map(repr, FORMS[answer]))}) that is one token; "
                "read the whole answer's text instead."
            )
    if shared := sorted(sets[YES] & sets[NO]):
        raise AuditError(
            f"this tokenizer gives yes and no the same token ids {shared}; no logit tells them apart."
        )
    return sets


def _one_token_ids(tokenizer: Any, forms: tuple[str, ...]) -> set[int]:
    """Return the ids of the forms that are one token; a set, since two forms may share an id."""
    encoded = [tokenizer.encode(form, add_special_tokens=False) for form in forms]
    unknown = getattr(tokenizer, "unk_token_id", None)
    return {int(ids[0]) for ids in encoded if len(ids) == 1 and ids[0] != unknown}


def _vector(logits: Any) -> NDArray[np.float64]:
    """Return the logits as float64; every dtype that models compute in converts without loss.

    Raises:
        AuditError: they are no vector of finite logits, or probabilities.
    """
    if hasattr(logits, "detach"):  # a torch tensor: numpy has no bfloat16
        logits = logits.detach().float().cpu().numpy()
    try:
        given = np.asarray(logits)
    except ValueError:  # rows of different length
        given = np.asarray(None)
    if given.dtype.kind not in "iuf":
        raise AuditError(
            f"the logits must be numbers, one for each token of the vocabulary, not {type(logits).__name__}; give "
            "outputs.logits[0, -1]."
        )
    values = given.astype(np.float64)
    if values.ndim != 1:
        raise AuditError(
            f"one vector of logits is expected, not shape {values.shape}: call it once for each row of a batch, and of a "
            "sequence give the answer's first position, such as logits[0, -1]."
        )
    if not np.isfinite(values).all():
        raise AuditError(
            "the logits are not all finite: processed scores, or a failed forward pass; give raw ones."
        )
    if (values >= 0).all() and abs(values.sum() - 1) < 0.01:
        raise AuditError("these are probabilities, which add up to 1; give the raw logits they were made of.")
    return values
