"""Llama's SentencePiece vocabulary as the original's slow tokenizer reads it (docs/mplug-owl2.md §6.1).

Published mPLUG-Owl2 folders hold `tokenizer.model` alone. `LlamaTokenizer` of transformers 5 reads it with another
rule for leading spaces (`" leading"` loses its `▁` token) and adds no start token unless told to; reading the file
also needs packages that nothing else here needs. So the vocabulary is read here, and the pipeline is written out.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, processors
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from readout_audit.errors import AuditError

CONTROL_TYPES = (2, 3)
"""SentencePiece's piece types "unknown" and "control": never the result of encoding text."""

Piece = tuple[str, float, int]
"""Surface, score and type of a vocabulary entry."""


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Load the tokenizer of a checkpoint folder: `tokenizer.model`, or else a `tokenizer.json` of the same kind.

    Raises:
        AuditError: neither file is there, or it does not tokenise as the original does.
    """
    model, fast = folder / "tokenizer.model", folder / "tokenizer.json"
    if model.is_file():
        tokenizer = build_tokenizer(read_sentencepiece(model))
    elif fast.is_file():
        tokenizer = Tokenizer.from_file(str(fast))
    else:
        raise AuditError(
            f"{folder}: there is no tokenizer.model and no tokenizer.json; fetch the model again."
        )
    normalizer = tokenizer.normalizer
    if normalizer is None or normalizer.normalize_str(" a") != "▁▁a" or tokenizer.pre_tokenizer is not None:
        raise AuditError(
            f"{fast}: this tokenizer does not put a word-start mark before every text, as mPLUG-Owl2's does; "
            f"use the tokenizer.model published with the weights."
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        clean_up_tokenization_spaces=False,
    )


def build_tokenizer(pieces: list[Piece]) -> Tokenizer:
    """Make a tokenizer that encodes as SentencePiece's byte-pair encoding with a dummy prefix does."""
    vocabulary = {surface: index for index, (surface, _, _) in enumerate(pieces)}
    controls = [surface for surface, _, kind in pieces if kind in CONTROL_TYPES]
    tokenizer = Tokenizer(
        BPE(vocabulary, _merges(pieces, vocabulary), unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(
        [AddedToken(surface, normalized=False, special=True) for surface in controls]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", vocabulary["<s>"])]
    )
    return tokenizer


def _merges(pieces: list[Piece], vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    """Return all ways to join two pieces into a third, the highest score of the result first."""
    merges = []
    for surface, score, kind in pieces:
        if kind in CONTROL_TYPES:
            continue
        halves = ((surface[:cut], surface[cut:]) for cut in range(1, len(surface)))
        known = [pair for pair in halves if pair[0] in vocabulary and pair[1] in vocabulary]
        merges += [(-score, vocabulary[left], vocabulary[right], left, right) for left, right in known]
    return [(left, right) for *_, left, right in sorted(merges)]


def read_sentencepiece(path: Path) -> list[Piece]:
    """Read the vocabulary of a SentencePiece model, a protocol-buffer file, in the order of its ids.

    Raises:
        AuditError: the file is cut short, is no SentencePiece model, or lacks `<unk>`, `<s>` or `</s>`.
    """
    try:
        pieces = [_piece(value) for number, value in _fields(path.read_bytes()) if number == 1]
    except (ValueError, IndexError, struct.error, AttributeError) as error:
        raise AuditError(
            f"{path}: this is not a whole SentencePiece model ({error}); fetch it again."
        ) from error
    if missing := {"<unk>", "<s>", "</s>"} - {surface for surface, _, _ in pieces}:
        raise AuditError(
            f"{path}: the vocabulary of {len(pieces)} pieces lacks {', '.join(sorted(missing))}; "
            f"use the tokenizer.model published with the weights."
        )
    return pieces


def _piece(message: bytes | int) -> Piece:
    """Read one `SentencePiece` message: field 1 surface, field 2 score, field 3 type (1, normal, when absent)."""
    if isinstance(message, int):
        raise ValueError("a piece is a number")
    found = dict(_fields(message))
    surface, score, kind = found.get(1, b""), found.get(2, b"\0\0\0\0"), found.get(3, 1)
    if not isinstance(surface, bytes) or not isinstance(score, bytes) or not isinstance(kind, int):
        raise ValueError("a piece has fields of other types")
    return surface.decode("utf-8"), struct.unpack("<f", score)[0], kind


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yield field number and value of a protocol-buffer message: varints as integers, all else as bytes."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"unknown wire type {wire}")
        length, at = _varint(message, at) if wire == 2 else ((8 if wire == 1 else 4), at)
        if at + length > len(message):
            raise ValueError("a field reaches beyond the end")
        yield number, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Read a variable-length integer at `at`; return it and the place after it."""
    value, shift = 0, 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
