"""Which tokens of a prompt are the noun, spatial words, or the words the authors' code looks at."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from readout_audit.models.templates import Template

_SPATIAL = (
    "above across adjacent ahead along among around at atop attached away back behind below beneath beside "
    "between beyond bottom center connected contains corner edge facing far front hanging in inside left "
    "middle near next on opposite outside over overlapping parallel part past right side surrounding through "
    "top touching under within"
)

SPATIAL_WORDS = frozenset(_SPATIAL.split())
"""The spatial words of the published code (`src/ugaa_hook.py`). Of a POPE question only "in" is one."""

STOP_WORDS = frozenset({"is", "there", "a", "an", "in", "the", "image"})
"""What the published code leaves out when it looks for the object (`src/run_ablation_a.py`)."""

_PIECE_MARKS = "▁Ġ "


class Tail(NamedTuple):
    """The text of a prompt after its image, token by token.

    Attributes:
        first: position of its first token in the prompt.
        text: the text.
        ends: for each token, the length of the text up to and with it.
    """

    first: int
    text: str
    ends: tuple[int, ...]


def spell(ids: Sequence[int], image_token_id: int, decode: Callable[[list[int]], str]) -> Tail:
    """Return the text after the last placeholder, with the characters that each token writes.

    Growing runs of tokens are decoded, because a token's text can depend on those before it (a leading
    space that the first one loses, a character of several bytes).
    """
    placeholders = [place for place, token_id in enumerate(ids) if token_id == image_token_id]
    first = placeholders[-1] + 1 if placeholders else 0
    texts = [decode(list(ids[first:end])) for end in range(first + 1, len(ids) + 1)]
    return Tail(first, texts[-1] if texts else "", tuple(len(text) for text in texts))


def covering(tail: Tail, start: int, end: int) -> list[int]:
    """Return the prompt positions of the tokens that write any of the characters [start, end)."""
    begins = (0, *tail.ends)
    return [
        tail.first + place
        for place, (begin, stop) in enumerate(zip(begins, tail.ends, strict=False))
        if begin < end and stop > start
    ]


def noun_positions(tail: Tail, question: str, span: tuple[int, int] | None) -> list[int]:
    """Return the positions of the noun's tokens; none where the noun or the question is not in the tail.

    Args:
        tail: what `spell` returned.
        question: the question's text.
        span: where the noun stands in it.
    """
    start = tail.text.find(question)
    if span is None or start < 0:
        return []
    return covering(tail, start + span[0], start + span[1])


def pieces_in(pieces: Sequence[str | None], words: frozenset[str]) -> list[int]:
    """Return the positions of tokens whose whole piece, without its space mark, is one of `words`.

    Args:
        pieces: vocabulary piece of every position; None for one that is no text.
        words: lower-case words. A word of several pieces is not found, as in the published code.
    """
    return [
        place
        for place, piece in enumerate(pieces)
        if piece is not None and piece.lstrip(_PIECE_MARKS).lower() in words
    ]


def asked_words(question: str, suffix: str) -> frozenset[str]:
    """Return the words of question and suffix outside `STOP_WORDS`, as the published "object" variant does.

    The suffix "Answer yes or no only." was part of the question there, so its words are among them.
    """
    words = (question + suffix).lower().rstrip("?").split()
    return frozenset(word.strip(".,!?;:") for word in words) - STOP_WORDS - {""}


def suffix_of(template: Template) -> str:
    """Return what a template appends to the question on its line."""
    if template.chat:
        return template.suffix
    _, _, after = template.text.partition("{question}")
    return template.suffix + after.partition("\n")[0]
