"""What the emitted first token says: the surface of the greedy argmax."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from readout_audit.contracts import NO, UNPARSED, YES
from readout_audit.readouts.base import PAPER, Decided, Kind, Metadata, decide_texts, valid_rows
from readout_audit.tokens.surface import SENTENCEPIECE_SPACE, WORD_END, bare_word, byte_alphabet


def _decoded(piece: str) -> str:
    """Return a byte-level piece as text; any other piece as it is.

    Records do not say which alphabet the vocabulary is written in; a piece that has one of the moved
    characters (Ġ and the like) and nothing outside the byte alphabet is taken as byte-level.
    """
    alphabet = byte_alphabet()
    if not any(ord(character) >= 0x100 for character in piece) or not set(piece) <= alphabet.keys():
        return piece
    try:
        return bytes(alphabet[character] for character in piece).decode("utf-8")
    except UnicodeDecodeError:
        return piece


def surface(piece: str | None) -> str:
    """Return what a vocabulary piece says: no spaces or marks of them, no punctuation or signs, case folded.

    `▁Yes`, `ĠYes`, `Yes</w>`, `.Yes` and `"Yes` all give "yes"; `▁Yesterday` gives "yesterday". None (an
    id without a piece) gives the empty string. The same trimming makes the vocabulary scan.
    """
    text = _decoded((piece or "").removesuffix(WORD_END)).replace(SENTENCEPIECE_SPACE, " ")
    return bare_word(text)


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
    column: str = "argmax_text"
    needs_labels: bool = False
    strings: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {"yes": ("yes",), "no": ("no",)})

    def ids(self, meta: Metadata) -> None:
        """Return None: any emitted token is read."""
        return None

    def decide(self, records: pa.Table, meta: Metadata, labels: pa.Array | None = None) -> Decided:
        """Decide every row by the piece of its first token."""
        return Decided(decide_texts(records[self.column], valid_rows(records), read_piece))


FIRST_TOKEN = FirstTokenReadout()
