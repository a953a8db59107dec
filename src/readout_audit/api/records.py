"""From replies to rows of the record table, and the description that travels with them.

A server gives log-probabilities: logits from which one number, the same for the whole row, was taken away.
So `log_z` is 0, differences and order are those of the logits, and a probability is exp of an entry. A
candidate that the server did not list has no number: it is null in `candidate_logits` and known only to be
at most the last of `top_logits`.
"""

import platform
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

import pyarrow as pa

from readout_audit.api.asking import Answered
from readout_audit.api.pictures import HOW_SENT
from readout_audit.api.settings import ApiSettings
from readout_audit.api.vocabulary import Token, Vocabulary, build, tokens_of
from readout_audit.contracts import INVALID, OK, RECORDS
from readout_audit.tokens.forms import FORMS

SCHEMA = 1
"""Version of the record file's layout, as in inference/description.py."""
UNLISTED = "null in candidate_logits: not listed by the server, at most the last of top_logits"

Row = dict[str, Any]
"""One row of `contracts.RECORDS`."""


def vocabulary_of(answered: Iterable[Answered]) -> Vocabulary:
    """Return the vocabulary of some answers."""
    replies = [item.reply for item in answered if item.reply is not None]
    return build((reply.top for reply in replies), (piece for reply in replies for piece in reply.written))


def row(answered: Answered, vocabulary: Vocabulary, candidates: Sequence[int]) -> Row:
    """Return the row of one question.

    Args:
        answered: what came of it.
        vocabulary: of the record file.
        candidates: ids whose log-probabilities are kept, ascending.
    """
    if answered.reply is None:
        return {
            **dict.fromkeys(RECORDS.names),
            **identity(answered),
            "status": INVALID,
            "reason": answered.fault,
        }
    reply = answered.reply
    ids = [vocabulary.ids[token] for token in tokens_of(reply.top)]
    listed = {token_id: place for place, token_id in enumerate(ids)}
    logprobs = [mark.logprob for mark in reply.top]
    places = [listed.get(token_id) for token_id in candidates]
    return {
        **identity(answered),
        "n_prompt_tokens": reply.prompt_tokens,
        "n_image_tokens": None,
        "argmax_id": ids[0],
        "argmax_text": reply.top[0].piece.text,
        "argmax_logit": logprobs[0],
        "log_z": 0.0,
        "candidate_logits": [None if place is None else logprobs[place] for place in places],
        "candidate_ranks": [None if place is None else place + 1 for place in places],
        "top_ids": ids,
        "top_logits": logprobs,
        "new_ids": [vocabulary.ids[Token(piece.data, 0)] for piece in reply.written],
        "new_text": reply.text,
        "full_text": None,  # the server's chat template is not known
        "status": OK,
        "reason": None,
    }


def identity(answered: Answered) -> Row:
    """Return the columns that say what was asked."""
    question = answered.question
    return {
        "uid": question.uid,
        "image": question.image,
        "image_sha256": answered.image_sha256,
        "object": question.object,
        "question": question.question,
        "prompt": question.message,
    }


def table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table under `contracts.RECORDS`."""
    return pa.Table.from_pylist(list(rows), schema=RECORDS)


def describe(
    settings: ApiSettings, answered: Sequence[Answered], vocabulary: Vocabulary, candidates: Sequence[int]
) -> dict[str, Any]:
    """Return the record file's metadata: the same whenever the same replies are read."""
    value = settings.value
    good = [item.reply for item in answered if item.reply is not None]
    lengths = [len(reply.top) for reply in good]
    return {
        "schema": SCHEMA,
        **{key: value[key] for key in ("model", "adapter", "server", "served_model", "revision")},
        "settings_id": settings.settings_id,
        "settings": value,
        "candidate_ids": list(candidates),
        "token_sets": {"single": vocabulary.sets(FORMS), "scan": vocabulary.sets(None)},
        "token_map": {"model": value["model"], "synthetic": True, "pieces": vocabulary.pieces()},
        "logits_dtype": "log-probabilities as the server printed them, stored as float32; log_z is 0",
        "unlisted": UNLISTED,
        "n_top": {
            "asked": value["top_logprobs"],
            "least": min(lengths, default=None),
            "most": max(lengths, default=None),
        },
        "prompt_is": "the user's message; the server puts its own chat template around it",
        "image_reading": HOW_SENT if settings.sends_image else "no picture is sent",
        "server_says": {
            name: counts(getattr(reply, name) for reply in good)
            for name in ("model", "system_fingerprint", "finish_reason")
        },
        "versions": {"python": platform.python_version(), "requests": version("requests")},
        "n_ok": len(good),
        "n_invalid": len(answered) - len(good),
    }


def counts(values: Iterable[str | None]) -> dict[str, int]:
    """Return how often each text was said; what was not said is left out."""
    return dict(sorted(Counter(value for value in values if value is not None).items()))
