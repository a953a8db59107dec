"""What a chat completion says, and what cannot be used of it."""

import json
import math
from contextlib import suppress
from typing import Any

import pytest
from api_server import completion
from hypothesis import given
from hypothesis import strategies as st

from readout_audit.api.reply import Mark, Piece, Reply, UnusableError, from_json, read_reply, to_json


def position(top: list[dict[str, Any]], **first: Any) -> dict[str, Any]:
    """A completion whose first position is given entry by entry."""
    value = completion([("Yes", -0.1)], text="Yes.")
    content = value["choices"][0]["logprobs"]["content"]
    content[0] = {**content[0], **first, "top_logprobs": top}
    return value


def entry(token: Any, logprob: Any, data: Any = None) -> dict[str, Any]:
    return {"token": token, "logprob": logprob, "bytes": data}


def test_a_reply_is_its_text_its_tokens_and_the_first_positions_list():
    reply = read_reply(completion([("Yes", -0.2), ("No", -2.5), (" yes", -4.0)]))
    yes, no, spaced = Piece("Yes", b"Yes"), Piece("No", b"No"), Piece(" yes", b" yes")
    assert reply == Reply(
        text="Yes.",
        top=(Mark(yes, -0.2), Mark(no, -2.5), Mark(spaced, -4.0)),
        written=(yes, Piece(".", b".")),
        model="served",
        system_fingerprint="fp_1",
        finish_reason="stop",
        prompt_tokens=21,
    )


def test_a_list_in_any_order_is_sorted_and_equals_keep_the_servers_order_behind_the_written_one():
    top = [entry("No", -2.5), entry("B", -0.9), entry("A", -2.5), entry("Yes", -0.9)]
    reply = read_reply(position(top, token="Yes", logprob=-0.9, bytes=None))
    assert [mark.piece.text for mark in reply.top] == ["Yes", "B", "No", "A"]


def test_a_written_token_that_is_not_listed_is_added():
    reply = read_reply(position([entry("No", -3.0)]))
    assert [(mark.piece.text, mark.logprob) for mark in reply.top] == [("Yes", -0.1), ("No", -3.0)]


def test_namesakes_stay_two_tokens():
    reply = read_reply(position([entry("Yes", -0.1), entry("Yes", -3.0), entry("No", -4.0)], bytes=None))
    assert [mark.logprob for mark in reply.top] == [-0.1, -3.0, -4.0]


def test_bytes_tell_apart_what_text_does_not():
    top = [entry("Yes", -0.1, [89, 101, 115]), entry("\ufffd", -3.0, [0xE2]), entry("\ufffd", -4.0, [0xF0])]
    reply = read_reply(position(top))
    assert [mark.piece.data for mark in reply.top] == [b"Yes", b"\xe2", b"\xf0"]


@pytest.mark.parametrize("data", [[], [300], [-1], ["89"], "Yes", [True], 5])
def test_bytes_that_are_none_are_those_of_the_text(data: Any):
    assert read_reply(position([entry("Yes", -0.1, data)], bytes=data)).top[0].piece == Piece("Yes", b"Yes")


@pytest.mark.parametrize("least", [-9999.0, -9999, -10000.0, -math.inf])
def test_what_a_server_writes_for_very_unlikely_is_no_measurement(least: float):
    reply = read_reply(position([entry("Yes", -0.1), entry("No", -5.0), entry("no", least)]))
    assert [mark.piece.text for mark in reply.top] == ["Yes", "No"]


@pytest.mark.parametrize(
    ("top", "first", "sentence"),
    [
        ([entry("Yes", -0.1), entry("No", math.nan)], {}, "holds nan as a log-probability"),
        ([entry("Yes", 0.3)], {}, "holds 0.3 as a log-probability"),
        ([entry("Yes", math.inf)], {}, "holds inf as a log-probability"),
        ([entry("Yes", -0.1), entry("No", "-2")], {}, "a token without its log-probability"),
        ([entry("Yes", True)], {}, "a token without its log-probability"),
        ([entry("Yes", None)], {}, "a token without its log-probability"),
        ([entry(None, -0.1)], {}, "a token without its text"),
        (["Yes"], {}, "a token without its log-probability"),
        ([entry("Yes", -9999.0)], {"logprob": -9999.0}, "no measured probability"),
        (
            [entry("No", -0.3), entry("Yes", -1.5)],
            {"logprob": -1.5},
            "begins with 'Yes' though 'No' is likelier",
        ),
        ([entry("No", -0.3)], {"logprob": -1.5}, "though 'No' is likelier: it was not decoded greedily"),
        ([entry("Yes", -0.1), entry("No", -0.2)], {}, r"add up to 1\.7236"),  # e^-0.1 + e^-0.2
        ([], {}, "lists no likeliest tokens"),
        (None, {}, "lists no likeliest tokens"),
        ({"Yes": -0.1}, {}, "lists no likeliest tokens"),
    ],
)
def test_a_first_position_that_cannot_be_is_refused(top: Any, first: dict[str, Any], sentence: str):
    with pytest.raises(UnusableError, match=sentence):
        read_reply(position(top, **first))


def without(path: list[Any]) -> dict[str, Any]:
    """A completion with one thing taken out."""
    value = completion([("Yes", -0.1)])
    inner: Any = value
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = None
    return value


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({}, "holds no answer"),
        ([], "holds no answer"),
        (None, "holds no answer"),
        ("text", "holds no answer"),
        ({"choices": []}, "holds no answer"),
        ({"choices": [{}]}, "holds no answer"),
        ({"error": {"message": "overloaded"}}, "holds no answer"),
        (without(["choices", 0, "message"]), "holds no answer"),
        (without(["choices", 0, "logprobs"]), "holds no log-probabilities"),
        (without(["choices", 0, "logprobs", "content"]), "holds no log-probabilities"),
        (without(["choices", 0, "logprobs", "content", 0]), "a token without its log-probability|lists no"),
        (without(["choices", 0, "logprobs", "content", 1]), "a token without its text"),
    ],
)
def test_a_reply_without_an_answer_or_its_numbers_is_refused(value: Any, sentence: str):
    with pytest.raises(UnusableError, match=sentence):
        read_reply(value)


@pytest.mark.parametrize(
    "path", [["usage"], ["model"], ["system_fingerprint"], ["choices", 0, "finish_reason"]]
)
def test_what_nobody_reads_may_be_missing(path: list[Any]):
    assert read_reply(without(path)).text == "Yes."


def test_an_answer_without_text_is_empty():
    assert read_reply(without(["choices", 0, "message", "content"])).text == ""


def test_later_tokens_need_no_numbers():
    value = completion([("Yes", -0.1)])
    value["choices"][0]["logprobs"]["content"][1].update(logprob=math.nan, top_logprobs=None)
    assert read_reply(value).written[1].text == "."


def test_half_a_character_can_still_be_written():
    value = json.loads('"\\ud83d"')
    reply = read_reply(completion([("Yes", -0.1)], text=f"Yes {value}"))
    assert reply.text == "Yes ?"


PIECES = st.builds(Piece, st.text(), st.binary(max_size=4))
REPLIES = st.builds(
    Reply,
    text=st.text(),
    top=st.lists(st.builds(Mark, PIECES, st.floats(-100, 0)), min_size=1, max_size=4).map(tuple),
    written=st.lists(PIECES, max_size=3).map(tuple),
    model=st.none() | st.text(),
    system_fingerprint=st.none() | st.text(),
    finish_reason=st.none() | st.text(),
    prompt_tokens=st.none() | st.integers(0, 10),
)


@given(REPLIES)
def test_a_kept_reply_comes_back_as_it_was(reply: Reply):
    assert from_json(json.loads(json.dumps(to_json(reply)))) == reply


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "logprobs", "content", "top_logprobs", "token", "logprob", "bytes"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_reply_or_is_refused(value: Any):
    with suppress(UnusableError):  # anything else that is raised fails
        assert read_reply(value).top
