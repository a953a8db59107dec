"""Ids for tokens that a server names by text."""

import random

import pytest

from readout_audit.api.reply import Mark, Piece
from readout_audit.api.vocabulary import ALWAYS, Token, build, spaced, tokens_of
from readout_audit.tokens.forms import FORMS


def marks(*texts: str) -> tuple[Mark, ...]:
    """Tokens from the likeliest down."""
    return tuple(Mark(Piece(text, text.encode()), -float(rank)) for rank, text in enumerate(texts))


def test_the_twelve_forms_have_the_same_ids_in_every_file():
    assert ALWAYS == ("yes", "Yes", " yes", " Yes", "YES", " YES", "no", "No", " no", " No", "NO", " NO")
    for lists in ([], [marks("No", "maybe", " Yes")]):
        vocabulary = build(lists, [])
        assert [vocabulary.ids[Token(form.encode(), 0)] for form in ALWAYS] == list(range(12))


def test_others_follow_by_their_bytes_whatever_the_order_of_rows():
    lists = [marks("b", "Yes"), marks("a", "a", "No"), marks("c")]
    expected = build(lists, [])
    assert expected.texts[12:] == ("a", "a", "b", "c")
    random.Random(1).shuffle(lists)
    assert build(lists, []) == expected
    assert build(lists[::-1], [Piece("c", b"c")]) == expected


def test_namesakes_are_told_apart_by_their_rank_in_the_list():
    assert tokens_of(marks("Yes", "No", "Yes")) == [Token(b"Yes", 0), Token(b"No", 0), Token(b"Yes", 1)]


def test_one_token_with_two_texts_has_one_id_whatever_the_order():
    first, second = Piece("?", b"\xe2"), Piece("\ufffd", b"\xe2")
    assert build([], [first, second]) == build([], [second, first])
    assert len(build([], [first, second]).texts) == 13


def test_sets_are_by_form_and_by_surface():
    vocabulary = build([marks("Yes", "Yes", "yes.", "No", "**no**", "none", "yesterday", "Nope", "\nNO")], [])
    texts = {
        name: {answer: sorted(vocabulary.texts[i] for i in ids) for answer, ids in sets.items()}
        for name, sets in {"forms": vocabulary.sets(FORMS), "surface": vocabulary.sets(None)}.items()
    }
    assert texts["forms"] == {
        "yes": [" Yes", " yes", "Yes", "Yes", "yes"],
        "no": [" No", " no", "No", "no"],
    }
    assert texts["surface"]["yes"] == sorted([*texts["forms"]["yes"], "YES", " YES", "yes."])
    assert texts["surface"]["no"] == sorted([*texts["forms"]["no"], "NO", " NO", "**no**", "\nNO"])
    ids = vocabulary.sets(None)
    assert vocabulary.candidates() == sorted(ids["yes"] + ids["no"])
    assert not set(ids["yes"]) & set(ids["no"])


@pytest.mark.parametrize("text", ["▁Yes", "ĠYes", " Yes"])
def test_a_servers_sign_for_a_space_is_a_space(text: str):
    assert spaced(text) == " Yes"
    vocabulary = build([marks(text)], [])
    assert vocabulary.ids[Token(text.encode(), 0)] in vocabulary.sets(FORMS)["yes"]
