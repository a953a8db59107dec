"""Yes and no forms and where their ids are from: shared by Tables 5 and 10 and Figure 10."""

from collections.abc import Iterable

FORMS = ("yes", "Yes", " yes", " Yes", "no", "No", " no", " No")
"""The forms of Listing 1, in the paper's order; the one-token rule asks for these alone."""

FROM_VOCABULARY, FROM_PAPER = "vocabulary", "paper"
"""An id looked up in a tokenizer, and one that the paper prints."""


def in_order(forms: Iterable[str]) -> list[str]:
    """Return forms as the paper lists them; others, such as capitals, after those."""
    rank = {form: index for index, form in enumerate(FORMS)}
    return sorted(forms, key=lambda form: (rank.get(form, len(rank)), form.strip(), form))
