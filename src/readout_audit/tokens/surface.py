"""What a vocabulary piece looks like on the page.

`decode([id])` is no help: it drops the leading space, so that two different pieces look the same
(LLaMA's 3869 and 8241 both decode to "Yes"). Pieces are compared instead.
"""

import json
import unicodedata
from functools import cache
from typing import Any

SENTENCEPIECE_SPACE, BYTE_LEVEL_SPACE, WORD_END = "▁", "Ġ", "</w>"


@cache
def byte_alphabet() -> dict[str, int]:
    """Return the byte behind each of the 256 characters in which byte-level vocabularies are written.

    Printable Latin-1 bytes stand for themselves; the others are moved, in order, to U+0100 and up.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in printable]
    shifted = {chr(0x100 + rank): byte for rank, byte in enumerate(moved)}
    return {**{chr(byte): byte for byte in printable}, **shifted}


def is_byte_level(tokenizer: Any) -> bool:
    """Tell whether the vocabulary is written in the byte alphabet (GPT-2, Qwen2) and not in Unicode."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return False
    decoder = json.loads(backend.to_str()).get("decoder") or {}
    parts = [decoder, *decoder.get("decoders", [])]
    return any(part.get("type") == "ByteLevel" for part in parts)


def surface(piece: str, byte_level: bool) -> str:
    """Return the text a piece stands for, spaces as spaces; bytes that are no UTF-8 become U+FFFD."""
    if byte_level:
        alphabet = byte_alphabet()
        if all(character in alphabet for character in piece):
            piece = bytes(alphabet[character] for character in piece).decode("utf-8", errors="replace")
    return piece.removesuffix(WORD_END).replace(SENTENCEPIECE_SPACE, " ")


def bare_word(text: str) -> str:
    """Return `text` casefolded, without white space, punctuation and symbols at its ends."""
    start, stop = 0, len(text)
    while start < stop and _is_trim(text[start]):
        start += 1
    while stop > start and _is_trim(text[stop - 1]):
        stop -= 1
    return text[start:stop].casefold()


def _is_trim(character: str) -> bool:
    return character.isspace() or unicodedata.category(character)[0] in "PSZC"
