"""Pieces and what they look like."""

import pytest

from readout_audit.tokens.surface import bare_word, byte_alphabet, surface


def test_byte_alphabet_is_a_bijection_onto_the_bytes() -> None:
    alphabet = byte_alphabet()
    assert sorted(alphabet.values()) == list(range(256))
    # The space, the tab and the newline as GPT-2 writes them.
    assert (alphabet["Ġ"], alphabet["ĉ"], alphabet["Ċ"]) == (0x20, 0x09, 0x0A)


@pytest.mark.parametrize(
    ("piece", "byte_level", "text"),
    [
        ("▁Yes", False, " Yes"),
        ("yes</w>", False, "yes"),
        ("ĠYes", True, " Yes"),
        ("âĢľYes", True, "“Yes"),
        ("<|im_end|>", True, "<|im_end|>"),
        ("âĢ", True, "\ufffd"),
    ],
)
def test_surface(piece: str, byte_level: bool, text: str) -> None:
    assert surface(piece, byte_level) == text


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (" Yes", "yes"),
        ("“Yes", "yes"),
        ("=yes", "yes"),
        ("_NO", "no"),
        ("\tno", "no"),
        ("Nope", "nope"),
        ("--", ""),
    ],
)
def test_bare_word(text: str, word: str) -> None:
    assert bare_word(text) == word
