"""What the emitted first token says: the surface of the greedy argmax."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa

from readout_audit.contracts import NO, UNPARSED, YES
from readout_audit.readouts.base import PAPER, Decided, Kind, Metadata, decide_texts, valid_rows

WORD_END = "</w>"
"""CLIP's mark for the end of a word."""


@cache
def _byte_alphabet() -> dict[str, int]:
    """Return the byte that each character of a byte-level vocabulary stands for (GPT-2's table).

    Printable Latin-1 characters stand for themselves; the other 68 bytes, in order, for U+0100 and on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {
        **{chr(byte): byte for byte in printable},
        **{chr(0x100 + n): byte for n, byte in enumerate(others)},
    }


def _decoded(piece: str) -> str:
    """Return a byte-level piece as text; any other piece as it is."""
    alphabet = _byte_alphabet()
    if not any(ord(character) >= 0x100 for character in piece) or not set(piece) <= alphabet.keys():
        return piece
    try:
        return bytes(alphabet[character] for character in piece).decode("utf-8")
    except UnicodeDecodeError:
        return piece


def surface(piece: str | None) -> str:
    """Return what a vocabulary piece says: no spaces or marks of them, no punctuation or signs, case folded.

    `▁Yes`, `ĠYes`, `Yes</w>`, `.Yes` and `"Yes` all give "yes"; `▁Yesterday` gives "yesterday". None (an
    id without a piece) gives the empty string.
    """
    text = _decoded((piece or "").removesuffix(WORD_END)).replace("▁", " ")
    return text.strip("".join({c for c in text if _is_dressing(c)})).casefold()


def _is_dressing(character: str) -> bool:
    """Tell whether a character is a space, a control, punctuation or a symbol."""
    return unicodedata.category(character)[0] in "ZCPS"


def read_piece(piece: str | None) -> str:
    """Return yes or no where the piece's surface is that word, else unparsed."""
    word = surface(piece)
    return word if word in (YES, NO) else UNPARSED


@dataclass(frozen=True)
class FirstTokenReadout:
    """The decoded first token, as a reader of the output sees it."""

    name: str = "first_token"
    rule: str = "surface of the greedy argmax (lowest id on a tie): yes, no, or unparsed"
    source: str = f"{PAPER}, Theorem 1: the readout of the decoded token"
    kind: Kind = "string"
    needs_labels: bool = False
    strings: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"yes": ("yes",), "no": ("no",)})

    def ids(self, meta: Metadata) -> None:
        """Return None: any emitted token is read."""
        return None

    def decide(self, records: pa.Table, meta: Metadata, labels: pa.Array | None = None) -> Decided:
        """Decide every row by the piece of its first token."""
        return Decided(decide_texts(records["argmax_text"], valid_rows(records), read_piece))


FIRST_TOKEN = FirstTokenReadout()
