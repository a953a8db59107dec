"""Prompts, vocabulary files and pictures of mPLUG-Owl2, without real ones."""

import json
import struct

import pytest

pytest.importorskip("transformers")

from PIL import Image
from tokenizers import Tokenizer, pre_tokenizers

from readout_audit.errors import AuditError
from readout_audit.models.mplug_owl2.preprocessing import (
    load_image_processor,
    preprocess_images,
    square,
)
from readout_audit.models.mplug_owl2.prompts import encode_prompt
from readout_audit.models.mplug_owl2.tokenizer import load_tokenizer, read_sentencepiece

# --- prompts (§6.1)


class OneIdPerCharacter:
    """A tokenizer with start token 1 and the code point of each character."""

    bos_token_id = 1

    def encode(self, text, *, add_special_tokens):
        assert not add_special_tokens
        return [ord(character) for character in text]


@pytest.mark.parametrize(
    ("prompt", "ids"),
    [
        ("ab", [1, 97, 98]),
        ("a<|image|>b", [1, 97, -200, 98]),
        ("a<|image|><|image|>b", [1, 97, -200, -200, 98]),
        ("a<|image|>", [1, 97, -200]),
        ("<|image|>b", [-200, 1, 98]),  # the original's quirk: the start token stands after the image
        ("<|image|>a<|image|>b", [-200, 1, 97, -200, 1, 98]),
        ("<|image|>", [-200]),
        ("", []),
        ("a <|image|>", [1, 97, 32, -200]),
    ],
)
def test_the_start_token_stands_once_at_the_front_unless_an_image_does(prompt, ids):
    assert encode_prompt(OneIdPerCharacter(), prompt) == ids


# --- the vocabulary file

PIECES = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)]
PIECES += [(f"<0x{byte:02X}>", 0.0, 6) for byte in range(256)]
PIECES += [("▁a", -1.0, 1), ("ab", -2.0, 1), ("▁ab", -3.0, 1), ("▁", -4.0, 1), ("a", -5.0, 1), ("b", -6.0, 1)]
FIRST = 3 + 256  # id of "▁a"


def sentencepiece_model(pieces) -> bytes:
    """Write a SentencePiece model: field 1 of the outer message, once per piece; here all lengths fit one byte."""
    content = b""
    for surface, score, kind in pieces:
        encoded = surface.encode()
        piece = (
            b"\x0a"
            + bytes([len(encoded)])
            + encoded
            + b"\x15"
            + struct.pack("<f", score)
            + b"\x18"
            + bytes([kind])
        )
        content += b"\x0a" + bytes([len(piece)]) + piece
    # an unknown varint field (300, two bytes) and an unknown 64-bit field, which a reader must step over
    return content + b"\x50\xac\x02" + b"\x59" + b"\0" * 8


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(sentencepiece_model(PIECES))
    return tmp_path


def test_a_vocabulary_file_is_read_in_the_order_of_its_ids(folder):
    assert read_sentencepiece(folder / "tokenizer.model") == PIECES


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        # "▁ab" is reached by ▁+a (-1 beats -2), then ▁a+b
        ("ab", [FIRST + 2]),
        # a leading space is a piece of its own: "▁▁ab"
        (" ab", [FIRST + 3, FIRST + 2]),
        ("a a", [FIRST, FIRST]),
        # no piece for "c": its byte, 0x63 = 99, stands at id 3 + 99
        ("ac", [FIRST, 3 + 99]),
        ("bab", [FIRST + 3, FIRST + 5, FIRST + 1]),
        ("</s>", [2]),
    ],
)
def test_encoding_is_that_of_sentencepiece(folder, text, ids):
    tokenizer = load_tokenizer(folder)
    assert tokenizer.encode(text, add_special_tokens=False) == ids
    assert tokenizer.encode(text) == [1, *ids]


def test_decoding_drops_the_mark_at_the_front_only(folder):
    tokenizer = load_tokenizer(folder)
    assert tokenizer.decode([FIRST + 2, FIRST, 3 + 0xC3, 3 + 0xA9]) == "ab aé"
    assert tokenizer.decode([1, FIRST, 2], skip_special_tokens=True) == "a"


@pytest.mark.parametrize("cut", [1, 5, 9, 700, -1])
def test_a_vocabulary_file_cut_short_is_refused(folder, cut):
    path = folder / "tokenizer.model"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(AuditError, match="not a whole SentencePiece model"):
        read_sentencepiece(path)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "lacks </s>, <s>, <unk>"),
        (sentencepiece_model(PIECES[1:]), "lacks <unk>"),
        (b"\x08\x01", "a piece is a number"),
        (b"\x0a\x02\x08\x01", "fields of other types"),
        (b"\x0b", "unknown wire type 3"),
        (b"version https://git-lfs.github.com/spec/v1\n", "not a whole SentencePiece model"),
    ],
)
def test_another_file_is_refused(folder, content, named):
    (folder / "tokenizer.model").write_bytes(content)
    with pytest.raises(AuditError) as error:
        load_tokenizer(folder)
    assert named in str(error.value)


def test_the_fast_file_does_as_well(folder, tmp_path):
    tokenizer = load_tokenizer(folder)
    other = tmp_path / "fast"
    other.mkdir()
    tokenizer.backend_tokenizer.save(str(other / "tokenizer.json"))
    assert load_tokenizer(other).encode(" ab a") == tokenizer.encode(" ab a")


def test_a_fast_file_that_loses_leading_spaces_is_refused(folder, tmp_path):
    backend = Tokenizer.from_str(load_tokenizer(folder).backend_tokenizer.to_str())
    backend.normalizer = None
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    other = tmp_path / "metaspace"
    other.mkdir()
    backend.save(str(other / "tokenizer.json"))
    with pytest.raises(AuditError, match="does not put a word-start mark before every text"):
        load_tokenizer(other)


def test_a_folder_without_vocabulary_is_refused(tmp_path):
    with pytest.raises(AuditError, match=r"no tokenizer\.model and no tokenizer\.json"):
        load_tokenizer(tmp_path)


# --- pictures (§7)

SETTINGS = {
    "size": 28,
    "crop_size": 28,
    "do_center_crop": True,
    "do_resize": True,
    "do_normalize": True,
    "resample": 3,
}
SETTINGS |= {"image_mean": [0.5, 0.25, 0.0], "image_std": [0.5, 0.5, 0.25]}


def write_settings(folder, **changes):
    (folder / "preprocessor_config.json").write_text(json.dumps(SETTINGS | changes))
    return folder


@pytest.mark.parametrize("size", [(5, 3), (3, 5), (4, 4), (1, 1)])
def test_a_picture_becomes_a_square_of_its_longer_side(size):
    assert square(Image.new("L", size)).size == (max(size),) * 2
    assert square(Image.new("L", size)).mode == "RGB"


def test_one_colour_becomes_its_normalised_value(tmp_path):
    processor = load_image_processor(write_settings(tmp_path), image_size=28)
    pixels = preprocess_images([Image.new("RGB", (40, 30), (255, 0, 51))] * 2, processor)
    assert pixels.shape == (2, 3, 28, 28)
    # (1 - 0.5) / 0.5, (0 - 0.25) / 0.5, (51/255 - 0) / 0.25
    for channel, value in enumerate([1.0, -0.5, 0.8]):
        assert (pixels[:, channel] - value).abs().max() < 1e-6


@pytest.mark.parametrize("changes", [{"size": 56}, {"crop_size": 56}, {"size": {"height": 28, "width": 28}}])
def test_pictures_of_another_size_are_refused(tmp_path, changes):
    with pytest.raises(AuditError, match="do not make pictures of 28 × 28"):
        load_image_processor(write_settings(tmp_path, **changes), image_size=28)


@pytest.mark.parametrize("content", ["[]", "{", None])
def test_unusable_processor_settings_are_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "preprocessor_config.json").write_text(content)
    with pytest.raises(AuditError, match=r"preprocessor_config\.json"):
        load_image_processor(tmp_path, image_size=28)
