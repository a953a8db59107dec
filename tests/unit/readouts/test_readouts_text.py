"""String readouts and the surface of a first token, on texts with a right answer known beforehand."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readout_tables import metadata, records

from readout_audit.readouts.first_token import read_piece, surface
from readout_audit.readouts.registry import get
from readout_audit.readouts.strings import string_parse, without_special_tokens


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Yes", "yes"),
        ("yes.", "yes"),
        ("NO", "no"),
        ("  No, there is not", "no"),
        ("Yes and no", "yes"),
        ("no yes", "no"),
        ("Yesterday", "unparsed"),
        ("snowboard", "unparsed"),
        ("not", "unparsed"),
        ("", "unparsed"),
        (None, "unparsed"),
        ("\n\t", "unparsed"),
        ("x" * 61 + " no", "no"),  # characters 62 and 63 of 64
        ("x" * 62 + " no", "unparsed"),  # the window ends after "n"
        ("x" * 61 + " nobody", "no"),  # the window leaves "no" of "nobody"
        (" " * 80 + "yes", "yes"),  # stripped before the window is taken
        ("yes_or_no", "unparsed"),  # an underscore is part of a word
        ("Нет, no", "no"),
    ],
)
def test_string_parse(text, answer):
    assert string_parse(text) == answer
    decided = get("string_parse").decide(records(new_text=[text]), metadata([]))
    assert decided.decision.to_pylist() == [answer]
    assert decided.margin is None and decided.tie is None


def second_parse(text):
    """The authors' parser in other words: two searches, positions compared."""
    head = text.strip().lower()[:64]
    yes, no = (re.search(rf"\b{word}\b", head, re.I) for word in ("yes", "no"))
    if yes is None and no is None:
        return "unparsed"
    return "yes" if no is None or (yes is not None and yes.start() < no.start()) else "no"


ALPHABET = st.sampled_from(
    ["yes", "no", "Yes", "NO", "not", "snow", " ", ",", ".", "\n", "_", "ye", "ſ", "İ", "a" * 20]
)


@given(st.lists(ALPHABET, max_size=14).map("".join))
def test_string_parse_equals_a_second_implementation(text):
    assert string_parse(text) == second_parse(text)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("There is a snowboard, yes", "no"),
        ("Yesterday", "yes"),
        ("I cannot tell", "no"),
        ("maybe", "unparsed"),
        ("a" * 63 + "no", "unparsed"),
        (None, "unparsed"),
    ],
)
def test_substring_parse_meets_words_inside_words(text, answer):
    decided = get("string_parse_substring").decide(records(new_text=[text]), metadata([]))
    assert decided.decision.to_pylist() == [answer]


def test_full_text_parse_reads_the_prompt_too():
    # "Question: " 10 + question 28 + " Answer yes" ends at 49: inside the window, so all is yes.
    short = "<s>Question: Is there a dog in the image? Answer yes or no only. Answer: No</s>"
    # Only without the window is this prompt's "yes" met; the image tokens do not count.
    long = (
        "<s>"
        + "<image>" * 32
        + "Look closely at every part of the picture before you decide. Answer yes or no: no"
    )
    # A prompt without the suffix leaves the completion to be found.
    bare = "USER: <|vision_start|><|image_pad|><|vision_end|>\nIs there a dog?\nASSISTANT: No.<|im_end|>"
    table = records(full_text=[short, long, bare, None])
    full = get("string_parse_full").decide(table, metadata([]))
    assert full.decision.to_pylist() == ["yes", "unparsed", "no", "unparsed"]
    unlimited = get("string_parse_full_nowindow").decide(table, metadata([]))
    assert unlimited.decision.to_pylist() == ["yes", "yes", "no", "unparsed"]


def test_listed_special_tokens_are_the_ones_removed():
    text = "[IMG][IMG_END]<s>no[IMG]"
    assert without_special_tokens(text, {"special_tokens": ["[IMG]", "[IMG_END]"]}) == "<s>no"
    assert without_special_tokens("<s><pad>a < b<|im_end|> <|> </s>", {}) == "a < b <|> "


def test_invalid_rows_stay_invalid_whatever_their_text():
    table = records(
        [None, [1.0]], new_text=["Yes", "Yes"], argmax_text=["▁Yes", "▁Yes"], full_text=["yes", "yes"]
    )
    for name in ("string_parse", "string_parse_substring", "string_parse_full", "first_token"):
        assert get(name).decide(table, metadata([1])).decision.to_pylist() == ["invalid", "yes"]


@pytest.mark.parametrize(
    ("piece", "said"),
    [
        ("▁Yes", "yes"),
        ("Yes", "yes"),
        ("ĠYes", "yes"),
        ("yes</w>", "yes"),
        ("NO", "no"),
        ("ĉno", "no"),  # a tab, in the byte alphabet
        ("âĢľYes", "yes"),  # a left quotation mark, in the byte alphabet
        ('"No', "no"),
        ("=yes", "yes"),
        ("_no", "no"),
        (".No", "no"),
        ("▁Yesterday", "yesterday"),
        ("▁", ""),
        ("<0x0A>", "0x0a"),
        ("Ċ", ""),
        (None, ""),
    ],
)
def test_surface(piece, said):
    assert surface(piece) == said
    assert read_piece(piece) == (said if said in ("yes", "no") else "unparsed")


def test_the_scans_of_real_vocabularies_are_read_as_their_word(shared):
    # Part 2 of the tokenizer facts names every id of four vocabularies whose surface is yes or no.
    import json

    expected = {
        "llava-1.5-7b-hf": (6, 6),
        "llava-v1.6-mistral-7b-hf": (4, 6),
        "qwen2-vl-7b-instruct": (16, 26),
    }
    for name, counts in expected.items():
        vocabulary = json.loads((shared / f"mirror/tokenizers/{name}/tokenizer.json").read_text())["model"][
            "vocab"
        ]
        said = [read_piece(piece) for piece in vocabulary]
        assert (said.count("yes"), said.count("no")) == counts


def test_first_token_is_unparsed_without_a_piece():
    table = records(argmax_text=["▁Yes", None, "▁The", "No"])
    assert get("first_token").decide(table, metadata([])).decision.to_pylist() == [
        "yes",
        "unparsed",
        "unparsed",
        "no",
    ]
