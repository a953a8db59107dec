"""What a chat completion says: the answer's text, its tokens, and the likeliest tokens of the first position."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

LEAST = -9999.0
"""What servers write for "very unlikely": no measurement, so such an entry is left out."""
_ROUNDING = 1e-6
"""By how much two prints of one log-probability may differ."""
_SUM = 1e-3
"""By how much printed probabilities may add up to more than one."""


class UnusableError(Exception):
    """A reply from which no row can be made, in one sentence."""


class Piece(NamedTuple):
    """A token as a server writes it.

    Attributes:
        text: decoded text; two tokens may share it (many servers drop the space in front).
        data: its bytes, which tell apart tokens that decode to U+FFFD; those of `text` where none were given.
    """

    text: str
    data: bytes


class Mark(NamedTuple):
    """A token in a list of the likeliest ones.

    Attributes:
        piece: the token.
        logprob: natural logarithm of its probability.
    """

    piece: Piece
    logprob: float


@dataclass(frozen=True)
class Reply:
    """One usable answer.

    Attributes:
        text: the whole answer.
        top: the tokens of the first position that the server listed, likeliest first.
        written: the answer's tokens; the first one is among `top`.
        model: what the server calls the model.
        system_fingerprint: what the server says about its own version.
        finish_reason: why the answer ended.
        prompt_tokens: length of the prompt as the server counts it.
    """

    text: str
    top: tuple[Mark, ...]
    written: tuple[Piece, ...]
    model: str | None = None
    system_fingerprint: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None


def read_reply(value: Any) -> Reply:
    """Return what a chat completion says.

    Args:
        value: its JSON.

    Raises:
        UnusableError: there is no answer, no log-probabilities, impossible ones, or the answer does not
            begin with the likeliest token.
    """
    choice = _first(_get(value, "choices"))
    message = _get(choice, "message")
    if not isinstance(message, dict):
        raise UnusableError("the reply holds no answer (choices[0].message is missing)")
    content = message.get("content")
    positions = _get(_get(choice, "logprobs"), "content")
    if not isinstance(positions, list) or not positions:
        raise UnusableError(
            "the reply holds no log-probabilities (choices[0].logprobs.content is empty or missing)"
        )
    listed = _get(positions[0], "top_logprobs")
    if not isinstance(listed, list) or not listed:
        raise UnusableError("the reply lists no likeliest tokens (top_logprobs is empty or missing)")
    usage = _get(value, "usage")
    return Reply(
        text=_clean(content) if isinstance(content, str) else "",
        top=likeliest([_mark(entry) for entry in listed], _mark(positions[0])),
        written=tuple(_piece(position) for position in positions),
        model=_text(_get(value, "model")),
        system_fingerprint=_text(_get(value, "system_fingerprint")),
        finish_reason=_text(_get(choice, "finish_reason")),
        prompt_tokens=_count(_get(usage, "prompt_tokens")),
    )


def likeliest(listed: list[Mark], written: Mark) -> tuple[Mark, ...]:
    """Return the first position's tokens, likeliest first, the one that was written leading its equals.

    Raises:
        UnusableError: they are no probabilities of one position, or a likelier token was not written.
    """
    for mark in (written, *listed):
        if math.isnan(mark.logprob) or mark.logprob > _ROUNDING:
            raise UnusableError(f"the reply holds {mark.logprob} as a log-probability")
    kept = [mark for mark in listed if mark.logprob > LEAST]
    if written.logprob <= LEAST or not kept:
        raise UnusableError("the reply gives the tokens of its first position no measured probability")
    if all(mark.piece != written.piece for mark in kept):
        kept.append(written)
    top = sorted(kept, key=lambda mark: (-mark.logprob, mark.piece != written.piece))
    if written.logprob < top[0].logprob - _ROUNDING:
        raise UnusableError(
            f"the answer begins with {written.piece.text!r} though {top[0].piece.text!r} is likelier: "
            "it was not decoded greedily"
        )
    if (total := math.fsum(math.exp(mark.logprob) for mark in top)) > 1 + _SUM:
        raise UnusableError(f"the listed probabilities add up to {total:.4f}: they are not of one position")
    return tuple(top)


def _mark(entry: Any) -> Mark:
    """Return one token of a reply with its logarithm."""
    logprob = _get(entry, "logprob")
    if isinstance(logprob, bool) or not isinstance(logprob, int | float):
        raise UnusableError("the reply holds a token without its log-probability")
    return Mark(_piece(entry), float(logprob))


def _piece(entry: Any) -> Piece:
    """Return one token of a reply."""
    token, data = _get(entry, "token"), _get(entry, "bytes")
    if not isinstance(token, str):
        raise UnusableError("the reply holds a token without its text")
    text = _clean(token)
    if isinstance(data, list) and data and all(type(item) is int and 0 <= item < 256 for item in data):
        return Piece(text, bytes(data))
    return Piece(text, text.encode("utf-8"))


def _first(value: Any) -> Any:
    """Return the first item of a list, None of anything else."""
    return value[0] if isinstance(value, list) and value else None


def _get(value: Any, key: str) -> Any:
    """Return an entry of an object, None of anything else."""
    return value.get(key) if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    return _clean(value) if isinstance(value, str) else None


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 31 else None


def _clean(text: str) -> str:
    """Return a text that can be written as UTF-8: a lone half of a character becomes a question mark."""
    return text.encode("utf-8", errors="replace").decode("utf-8")


def to_json(reply: Reply) -> dict[str, Any]:
    """Return a reply as plain JSON values."""
    return {
        **vars(reply),
        "top": [[*_piece_to_json(mark.piece), mark.logprob] for mark in reply.top],
        "written": [_piece_to_json(piece) for piece in reply.written],
    }


def from_json(value: dict[str, Any]) -> Reply:
    """Return the reply that `to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: it did not write this.
    """
    top = tuple(Mark(_piece_from_json(text, data), logprob) for text, data, logprob in value["top"])
    written = tuple(_piece_from_json(text, data) for text, data in value["written"])
    return Reply(**{**value, "top": top, "written": written})


def _piece_to_json(piece: Piece) -> list[str | None]:
    """Return the text, and the bytes in hexadecimal where the text does not tell them."""
    return [piece.text, None if piece.data == piece.text.encode("utf-8") else piece.data.hex()]


def _piece_from_json(text: str, data: str | None) -> Piece:
    return Piece(text, text.encode("utf-8") if data is None else bytes.fromhex(data))
