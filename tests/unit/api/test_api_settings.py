"""Settings of a cell that a server answers, and the request they make."""

import json

import pytest

from readout_audit.api.settings import ApiSettings, checked_server
from readout_audit.errors import AuditError

AUTHORS = {
    "name": "authors",
    "text": None,
    "chat": True,
    "suffix": " Answer yes or no only.",
    "answer_boundary": "clean",
}
VALUE = {
    "model": "gpt",
    "adapter": "openai",
    "server": "http://127.0.0.1:8000/v1",
    "served_model": "org/gpt",
    "revision": None,
    "precision": "served",
    "template": AUTHORS,
    "image": "data_uri",
    "max_tokens": 6,
    "top_logprobs": 20,
    "extra": {},
}


def settings(**changes: object) -> ApiSettings:
    return ApiSettings.parse(json.dumps({**VALUE, **changes}))


def test_the_request_is_greedy_short_and_shows_the_picture_before_the_question():
    made = settings(extra={"seed": 1})
    text = made.message("Is there a dog in the image?")
    assert text == "Is there a dog in the image? Answer yes or no only."
    assert made.body(text, "data:image/png;base64,AAAA") == {
        "model": "org/gpt",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                    {"type": "text", "text": "Is there a dog in the image? Answer yes or no only."},
                ],
            }
        ],
        "temperature": 0,
        "max_tokens": 6,
        "logprobs": True,
        "top_logprobs": 20,
        "seed": 1,
    }


def test_without_a_picture_the_message_is_a_plain_text():
    assert settings(image="none").body("x", None)["messages"] == [{"role": "user", "content": "x"}]


def test_a_text_template_is_the_message_itself():
    own = {"name": "own", "text": "Look. {question} One word.", "answer_boundary": "clean"}
    assert settings(template=own).message("Is it?") == "Look. Is it? One word."


def test_kept_replies_belong_to_what_is_sent_and_to_nothing_else():
    print_of = settings().fingerprint()
    assert print_of == settings(model="another-name", precision="bf16").fingerprint()
    renamed = {**AUTHORS, "name": "other"}
    assert print_of == settings(template=renamed).fingerprint()
    for change in (
        {"server": "http://127.0.0.1:8001/v1"},
        {"served_model": "org/other"},
        {"revision": "2"},
        {"template": {**AUTHORS, "suffix": ""}},
        {"image": "none"},
        {"max_tokens": 7},
        {"top_logprobs": 5},
        {"extra": {"seed": 1}},
    ):
        assert settings(**change).fingerprint() != print_of, change


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"image": "path"}, "image is 'path', not data_uri or none"),
        ({"max_tokens": 0}, "max_tokens is 0, not a whole number"),
        ({"top_logprobs": True}, "top_logprobs is True, not a whole number"),
        ({"served_model": ""}, "served_model is '', not a name"),
        ({"revision": 3}, "revision is 3, not a text or null"),
        ({"extra": {"temperature": 1}}, "extra must not set temperature"),
        ({"extra": []}, "extra must be a JSON object"),
        ({"server": "localhost:8000"}, "not an address such as"),
        ({"server": None}, "server must be an address"),
        ({"surprise": 1}, "unknown keys \\['surprise'\\]"),
        (
            {
                "template": {
                    "name": "authors",
                    "text": "USER: <image>\n{question}",
                    "answer_boundary": "clean",
                }
            },
            "template authors: its text holds <image>",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(changes: dict[str, object], sentence: str):
    with pytest.raises(AuditError, match=sentence):
        settings(**changes)


@pytest.mark.parametrize("text", ["{", "[]", "null"])
def test_settings_must_be_one_json_object(text: str):
    with pytest.raises(AuditError, match="JSON"):
        ApiSettings.parse(text)


@pytest.mark.parametrize(
    "server",
    ["https://me:s3cret-key@host/v1", "https://s3cret-key@host/v1", "https://host/v1?key=s3cret-key"],
)
def test_an_address_with_a_secret_in_it_is_refused_and_not_printed(server: str):
    with pytest.raises(AuditError) as caught:
        checked_server(server)
    assert "s3cret" not in str(caught.value)


def test_the_slash_at_the_end_of_an_address_does_not_matter():
    assert settings(server="http://h/v1/").settings_id == settings(server="http://h/v1").settings_id


@pytest.mark.parametrize(
    ("server", "is_open"),
    [
        ("http://h:1/v1", True),
        ("https://h/v1", False),
        ("http://127.0.0.1:1/v1", False),
        ("http://[::1]/v1", False),
    ],
)
def test_a_server_elsewhere_without_encryption_is_known(server: str, is_open: bool):
    assert settings(server=server).is_open is is_open
