"""The noun a question asks about, and where it stands in the question's text."""

import re
from typing import NamedTuple

from readout_audit.datasets.objects import extract_object, is_misspelt

MISSPELT = "the question says 'imange'; the noun was read all the same (the authors' code took its last word)"
DECLARED = "the question has another form than 'Is there a … in the image?'; the noun is the question table's"
UNKNOWN = "the question has another form than 'Is there a … in the image?' and the table gives no noun"

_OPENING = re.compile(r"\s*(?:is|are)\s+there\b", re.IGNORECASE)


class Noun(NamedTuple):
    """A noun found in a question.

    Attributes:
        text: the noun, words separated by one space; None where it cannot be told.
        reason: what was unusual, or why there is none; None for the plain case.
        span: [start, end) characters of the question; None where the noun does not stand in it.
    """

    text: str | None
    reason: str | None
    span: tuple[int, int] | None


def find_noun(question: str, declared: str | None) -> Noun:
    """Return the noun of a question.

    Args:
        question: its text.
        declared: the `object` of the question table, used where the text has another form than POPE's.
    """
    text = extract_object(question)
    if text is not None:
        return Noun(text, MISSPELT if is_misspelt(question) else None, _span(question, text))
    if declared is not None and declared.strip():
        noun = " ".join(declared.split())
        return Noun(noun, DECLARED, _span(question, noun))
    return Noun(None, UNKNOWN, None)


def _span(question: str, noun: str) -> tuple[int, int] | None:
    """Return where `noun` first stands as whole words, however they are spaced, after a leading "is there"."""
    opening = _OPENING.match(question)
    words = r"\s+".join(re.escape(word) for word in noun.split())
    pattern = re.compile(rf"(?<!\w){words}(?!\w)", re.IGNORECASE)
    found = pattern.search(question, opening.end() if opening else 0)
    return found.span() if found else None
