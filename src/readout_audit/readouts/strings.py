"""Readouts of text: the words yes and no in the continuation, or in prompt and continuation together."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa

from readout_audit.contracts import NO, UNPARSED, YES
from readout_audit.readouts.base import (
    AUTHORS,
    PAPER,
    Decided,
    Kind,
    Metadata,
    NotAvailableError,
    decide_texts,
    is_listed,
    valid_rows,
)

WINDOW = 64
"""Characters of the stripped text that the authors look at."""

_WORD = re.compile(r"\b(?:(yes)|(no))\b", re.IGNORECASE)
_SUBSTRING = re.compile(r"(yes)|(no)", re.IGNORECASE)

_SPECIAL = re.compile(r"<s>|</s>|<unk>|<pad>|<image>|<\|[^<>|]*\|>")
"""Special tokens by their shape, for records whose metadata does not list the tokenizer's own."""

WORDS: Mapping[str, tuple[str, ...]] = {"yes": ("yes",), "no": ("no",)}


def first_match(text: str | None, pattern: re.Pattern[str], window: int | None) -> str:
    """Return the first match of `pattern` in the stripped, lower-cased text, or unparsed.

    The order is the authors': strip, lower-case, cut to the window, search. So a word that the window
    cuts ("nobody" after its second letter) counts as the word that is left.
    """
    head = (text or "").strip().lower()[:window]
    found = pattern.search(head)
    return (YES if found.lastindex == 1 else NO) if found else UNPARSED


def string_parse(text: str | None) -> str:
    """Read one answer as the authors do: the first whole word yes or no in its first 64 characters."""
    return first_match(text, _WORD, WINDOW)


def without_special_tokens(text: str | None, meta: Metadata) -> str:
    """Return the text with every special token removed.

    `meta["special_tokens"]` lists the tokenizer's own, as text; where it is missing they are known by shape.
    """
    listed = meta.get("special_tokens")
    if listed:
        longest_first = sorted(listed, key=len, reverse=True)
        return re.sub("|".join(map(re.escape, longest_first)), "", text or "")
    return _SPECIAL.sub("", text or "")


@dataclass(frozen=True)
class TextReadout:
    """First match of a pattern in one text column of the records."""

    name: str
    rule: str
    source: str
    pattern: re.Pattern[str]
    window: int | None
    column: str = "new_text"
    kind: Kind = "string"
    needs_labels: bool = False
    strings: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: WORDS)

    def ids(self, meta: Metadata) -> None:
        """Return None: a text readout reads no ids."""
        return None

    def decide(self, records: pa.Table, meta: Metadata, labels: pa.Array | None = None) -> Decided:
        """Decide every row by its text; a row without text is unparsed.

        Raises:
            NotAvailableError: no row has the text, because a server does not tell its prompt.
        """
        if is_listed(meta) and records[self.column].null_count == len(records):
            raise NotAvailableError(
                f"{self.name}: the records do not hold prompt and continuation together; a server does not tell "
                "what it puts around a question."
            )
        read = partial(self.read, meta=meta)
        return Decided(decide_texts(records[self.column], valid_rows(records), read))

    def read(self, text: str | None, meta: Metadata) -> str:
        """Return yes, no or unparsed for one text."""
        if self.column == "full_text":
            text = without_special_tokens(text, meta)
        return first_match(text, self.pattern, self.window)


STRING_PARSE = TextReadout(
    name="string_parse",
    rule="first whole word yes or no, any case, in the first 64 characters of the stripped continuation",
    source=f"{AUTHORS}, src/run_multi_model_audit.py",
    pattern=_WORD,
    window=WINDOW,
)
STRING_PARSE_SUBSTRING = TextReadout(
    name="string_parse_substring",
    rule="first yes or no, inside a word too, any case, in the first 64 characters of the continuation",
    source=f"{PAPER}: its wording of the string parse",
    pattern=_SUBSTRING,
    window=WINDOW,
)
STRING_PARSE_FULL = TextReadout(
    name="string_parse_full",
    rule="first whole word yes or no in the first 64 characters of prompt and continuation together, "
    "special tokens removed",
    source=f"{PAPER}: its account of InstructBLIP's floor; {AUTHORS}, src/run_multi_model_audit.py",
    pattern=_WORD,
    window=WINDOW,
    column="full_text",
)
STRING_PARSE_FULL_NOWINDOW = TextReadout(
    name="string_parse_full_nowindow",
    rule="first whole word yes or no anywhere in prompt and continuation together, special tokens removed",
    source="readout-audit: string_parse_full without its window",
    pattern=_WORD,
    window=None,
    column="full_text",
)
