"""What a yes/no question asks about, read from its text."""

import re

_QUESTION = re.compile(
    r"\s*(?:is|are)\s+there\s+(?:(?:an?|any|some)\s+)?(?P<object>\S(?:.*?\S)?)\s+"
    r"in\s+(?:the|this)\s+(?:image|imange|picture|photo)\s*\??\s*",
    re.IGNORECASE,
)
_MISSPELT = re.compile(r"\bimange\b", re.IGNORECASE)
_ARTICLES = frozenset({"a", "an", "any", "some"})


def extract_object(question: str) -> str | None:
    """Return the noun a POPE-like question asks for, as written (such as "dining table").

    POPE's own misspelling "in the imange?" is understood: the paper's pattern was not ready for it and took
    the last word of the question instead (finding 17). Returns None where the text has another form.
    """
    match = _QUESTION.fullmatch(question)
    if match is None:
        return None
    found = " ".join(match["object"].split())
    return None if found.lower() in _ARTICLES else found


def is_misspelt(question: str) -> bool:
    """Tell whether the question says "imange", as the "an …" questions of some POPE releases do."""
    return _MISSPELT.search(question) is not None
