"""Ids for tokens that a server names by their text alone, and which of them say yes and no.

A server's list has texts, not ids, and two different tokens may have one text: LLaMA's `▁Yes` and `Yes` both
come as "Yes". So a token is known here by its bytes and by which of its namesakes it is in its list: 0 the
likeliest. Which of two namesakes a number means may change from row to row; what they say does not, and
that is all that readouts ask of a set.

The ids are of one record file. Those of the twelve forms are always the same; the others follow in the
order of their bytes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from readout_audit.api.reply import Mark, Piece
from readout_audit.readouts.first_token import surface
from readout_audit.tokens.forms import CAPITALS, FORMS
from readout_audit.tokens.surface import BYTE_LEVEL_SPACE, SENTENCEPIECE_SPACE

ALWAYS = tuple(form for answer in FORMS for form in (*FORMS[answer], *CAPITALS[answer]))
"""Forms that have an id whether a server ever listed them or not; their places are their ids."""


class Token(NamedTuple):
    """A token's bytes, and how many likelier namesakes stand in the same list."""

    data: bytes
    namesake: int


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of one record file.

    Attributes:
        ids: id of each token.
        texts: text of each id.
    """

    ids: dict[Token, int]
    texts: tuple[str, ...]

    def sets(self, forms: Mapping[str, tuple[str, ...]] | None) -> dict[str, list[int]]:
        """Return the ids that say yes and no: those of `forms`, or of every surface where it is None."""
        return {
            answer: [
                token_id
                for token_id, text in enumerate(self.texts)
                if (surface(text) == answer if forms is None else spaced(text) in forms[answer])
            ]
            for answer in ("yes", "no")
        }

    def candidates(self) -> list[int]:
        """Return every id that says yes or no by its surface, ascending."""
        return sorted(token_id for ids in self.sets(None).values() for token_id in ids)

    def pieces(self) -> dict[str, str]:
        """Return the text of each id, keyed by the id as text."""
        return {str(token_id): text for token_id, text in enumerate(self.texts)}


def spaced(text: str) -> str:
    """Return a token's text with its leading space as a space, where a server writes the vocabulary's sign."""
    return f" {text[1:]}" if text[:1] in (SENTENCEPIECE_SPACE, BYTE_LEVEL_SPACE) else text


def tokens_of(marks: Sequence[Mark]) -> list[Token]:
    """Return the tokens of one list, in its order (likeliest first)."""
    seen: Counter[bytes] = Counter()
    tokens = []
    for mark in marks:
        tokens.append(Token(mark.piece.data, seen[mark.piece.data]))
        seen[mark.piece.data] += 1
    return tokens


def build(lists: Iterable[Sequence[Mark]], written: Iterable[Piece]) -> Vocabulary:
    """Return the vocabulary of a record file, whatever the order of its rows.

    Args:
        lists: the first position's tokens of each reply, likeliest first.
        written: every token of every answer.
    """
    found = [pair for marks in lists for pair in zip(tokens_of(marks), marks, strict=True)]
    named = [(token, mark.piece.text) for token, mark in found]
    named += [(Token(piece.data, 0), piece.text) for piece in written]
    # Bytes that are half a character may come with one text or another; the least is as good as any.
    texts = dict(sorted(set(named), reverse=True))
    known = [Token(form.encode(), 0) for form in ALWAYS]
    others = sorted(set(texts) - set(known))
    return Vocabulary(
        {token: place for place, token in enumerate([*known, *others])},
        (*ALWAYS, *(texts[token] for token in others)),
    )
