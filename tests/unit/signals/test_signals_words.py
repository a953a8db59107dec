"""Nouns of questions, and the tokens that write them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readout_audit.models import tiny
from readout_audit.models.templates import Template
from readout_audit.signals.nouns import DECLARED, MISSPELT, UNKNOWN, find_noun
from readout_audit.signals.words import (
    SPATIAL_WORDS,
    asked_words,
    covering,
    noun_positions,
    pieces_in,
    spell,
    suffix_of,
)


@pytest.mark.parametrize(
    ("question", "noun"),
    [
        ("Is there a dog in the image?", "dog"),
        ("Is there an umbrella in the image?", "umbrella"),
        ("Is there a dining table in the image?", "dining table"),
        ("Is there a hair drier in the image?", "hair drier"),
        ("Are there any cars in the picture?", "cars"),
    ],
)
def test_plain_questions(question: str, noun: str) -> None:
    found = find_noun(question, None)
    assert (found.text, found.reason) == (noun, None)
    assert found.span is not None and question[slice(*found.span)] == noun


def test_the_misspelt_release_is_read_and_named() -> None:
    found = find_noun("Is there an orange in the imange?", None)
    assert (found.text, found.reason) == ("orange", MISSPELT)


def test_the_noun_is_found_after_the_opening() -> None:
    # "there" also stands in the opening, "is" in "is there"
    question = "Is there a there in the image?"
    span = find_noun(question, None).span
    assert span == (11, 16)


def test_a_declared_noun_serves_where_the_text_has_another_form() -> None:
    found = find_noun("Can you see the  fire   hydrant?", "fire hydrant")
    assert (found.text, found.reason, found.span) == ("fire hydrant", DECLARED, (17, 31))
    assert find_noun("What is this?", "dog") == ("dog", DECLARED, None)


@pytest.mark.parametrize("declared", [None, "", "  "])
def test_it_says_so_when_there_is_no_noun(declared: str | None) -> None:
    assert find_noun("What colour is the cat?", declared) == (None, UNKNOWN, None)


def test_part_of_a_word_is_not_the_noun() -> None:
    assert find_noun("Do you see a catalogue or cat here?", "cat").span == (26, 29)


@pytest.fixture(params=["metaspace", "byte_level"], scope="module")
def tokenizer(request: pytest.FixtureRequest) -> object:
    return getattr(tiny, f"{request.param}_tokenizer")()


def spelt(tokenizer: object, text: str, image_id: int) -> tuple[list[int], object]:
    ids = tokenizer.encode(text, add_special_tokens=False)  # type: ignore[attr-defined]
    decode = lambda part: tokenizer.decode(part, clean_up_tokenization_spaces=False)  # type: ignore[attr-defined] # noqa: E731
    return ids, spell(ids, image_id, decode)


def test_the_tokens_of_a_noun_write_it(tokenizer: object) -> None:
    placeholder = tokenizer.image_token  # type: ignore[attr-defined]
    image_id = tokenizer.convert_tokens_to_ids(placeholder)  # type: ignore[attr-defined]
    question = "Is there a wine glass in the image?"
    ids, tail = spelt(tokenizer, f"USER: {placeholder * 3}\n{question} Answer yes or no only.", image_id)
    assert tail.text.endswith(f"{question} Answer yes or no only.")  # type: ignore[attr-defined]
    places = noun_positions(tail, question, find_noun(question, None).span)  # type: ignore[arg-type]
    assert places == list(range(places[0], places[0] + len(places)))
    assert tokenizer.decode([ids[place] for place in places]).strip() == "wine glass"  # type: ignore[attr-defined]


@given(st.text(st.sampled_from("abé 火yesno"), min_size=1, max_size=30))
@settings(max_examples=40)
def test_every_character_is_written_by_some_token(text: str) -> None:
    tokenizer = tiny.byte_level_tokenizer()
    _, tail = spelt(tokenizer, text, -1)
    assert tail.text == text  # type: ignore[attr-defined]
    for place in range(len(text)):
        assert covering(tail, place, place + 1)  # type: ignore[arg-type]


def test_without_question_or_noun_there_are_no_tokens(tokenizer: object) -> None:
    _, tail = spelt(tokenizer, "Is there a dog?", -1)
    assert noun_positions(tail, "another question", (0, 3)) == []  # type: ignore[arg-type]
    assert noun_positions(tail, "Is there a dog?", None) == []  # type: ignore[arg-type]


def test_whole_pieces_only() -> None:
    pieces = ["▁in", "Ġin", "In", "▁inside", "▁wine", None, "in", "▁", "in▁"]
    assert pieces_in(pieces, frozenset({"in"})) == [0, 1, 2, 6]


def test_of_a_pope_question_only_in_is_spatial() -> None:
    prompt = "is there a person in the image answer yes or no only user assistant"
    assert SPATIAL_WORDS & set(prompt.split()) == {"in"}
    assert len(SPATIAL_WORDS) == 50


def test_the_authors_object_words_include_the_suffix() -> None:
    words = asked_words("Is there a dining table in the image?", " Answer yes or no only.")
    assert words == {"dining", "table", "answer", "yes", "or", "no", "only"}
    assert asked_words("Is there an apple in the image?", "") == {"apple"}


@pytest.mark.parametrize(
    ("template", "suffix"),
    [
        ({"text": "USER: <image>\n{question} Answer yes or no only.\nASSISTANT:"}, " Answer yes or no only."),
        ({"text": "USER: <image>\n{question}\nASSISTANT:"}, ""),
        ({"chat": True, "suffix": " Answer yes or no only."}, " Answer yes or no only."),
        ({"text": "USER: {question}\nASSISTANT:", "suffix": " Briefly."}, " Briefly."),
    ],
)
def test_suffix_of_a_template(template: dict[str, object], suffix: str) -> None:
    assert suffix_of(Template.from_dict({"name": "t", **template})) == suffix
