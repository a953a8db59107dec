"""Asking over HTTP: what is tried again, what ends the job, what concerns one question."""

import json
import socket
from datetime import UTC, datetime
from typing import Any

import pytest
from api_server import Answer, bad, completion, good, serving

from readout_audit.api.client import Client, Patience, RefusedError, retry_after
from readout_audit.api.credentials import ApiKey
from readout_audit.api.pace import Pace
from readout_audit.errors import AuditError

QUICK = Patience(attempts=3, wait=0.01, longest_wait=60, timeout=(1, 1))
FINE = completion([("Yes", -0.1), ("No", -2.5)])


def script(*answers: Answer) -> Any:
    """Give the answers in order, the last one for ever."""
    return lambda number, body: answers[min(number, len(answers) - 1)]


def client(url: str, patience: Patience = QUICK, variable: str | None = None) -> Client:
    return Client(url, ApiKey(variable), Pace(None), patience)


def test_the_answer_is_the_servers_json():
    with serving(script(good(FINE))) as server:
        assert client(server.url).ask({"model": "m"}) == FINE
    assert server.bodies == [{"model": "m"}]
    assert server.headers[0]["path"] == "/v1/chat/completions"
    assert "Authorization" not in server.headers[0]


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_a_busy_server_is_asked_again(status: int):
    with serving(script(bad(status), good(FINE))) as server:
        asking = client(server.url)
        assert asking.ask({}) == FINE
    assert (asking.requests, asking.retries) == (2, 1)


@pytest.mark.parametrize(
    "broken",
    [
        (200, {}, b"<html>gateway</html>"),
        (200, {}, b""),
        (200, {}, b'{"choices": ['),
        (200, {}, b"\xff\xfe"),
        (200, {}, b"[" * 200_000),
        (200, {"Content-Length": "10000"}, b"{}"),  # the body ends early
    ],
    ids=["html", "empty", "half", "not utf-8", "nested", "cut"],
)
def test_an_answer_that_is_no_json_is_asked_for_again(broken: Answer):
    with serving(script(broken, good(FINE))) as server:
        assert client(server.url).ask({}) == FINE


def test_a_server_that_says_nothing_is_asked_again_and_then_given_up():
    with serving(script(good(FINE)), delay=0.5) as server:
        asking = client(server.url, Patience(attempts=2, wait=0.01, timeout=(1, 0.05)))
        with pytest.raises(AuditError, match=r"Read timed out.*\(2 attempts\); when the server is well"):
            asking.ask({})
        assert asking.requests == 2


def test_nobody_at_the_address_is_said_after_the_last_attempt():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(AuditError, match=r"Connection refused.*3 attempts.*what was answered is kept"):
            client(url).ask({})


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_stays_busy_ends_the_job(status: int):
    with serving(script(bad(status, "overloaded"))) as server:
        with pytest.raises(AuditError, match=rf"answers {status} \(overloaded\) \(3 attempts\)"):
            client(server.url).ask({})
        assert len(server.bodies) == 3


def test_a_server_that_always_breaks_over_a_question_refuses_that_question():
    with (
        serving(script(bad(500, "boom"))) as server,
        pytest.raises(RefusedError, match=r"500 \(boom\) \(3 att"),
    ):
        client(server.url).ask({})


@pytest.mark.parametrize("status", [400, 413, 415, 422])
def test_a_refused_question_is_not_asked_again(status: int):
    with serving(script(bad(status, "image too large"))) as server:
        with pytest.raises(RefusedError, match=rf"{status} \(image too large\)"):
            client(server.url).ask({})
        assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (401, "not authorised; name the environment variable"),
        (402, r"answers 402 \(who\); check the address"),
        (403, "not authorised"),
        (404, r"answers 404 \(who\); check the address"),
        (302, "answers 302"),
    ],
)
def test_a_server_that_refuses_everything_ends_the_job_at_once(status: int, sentence: str):
    with serving(script(bad(status, "who", Location="http://127.0.0.1:1/"))) as server:
        with pytest.raises(AuditError, match=sentence):
            client(server.url).ask({})
        assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"detail": "Unsupported fields: logprobs"}', r"422 \(Unsupported fields: logprobs\)"),
        (b'{"detail": [{"loc": ["body"]}]}', r'422 \(\[\{"loc": \["body"\]\}\]\)'),
        (b'{"error": "plain"}', r"422 \(plain\)"),
        (b"two\n lines", r"422 \(two lines\)"),
        (b"", "422$"),
        (b"x" * 5000, r"422 \(x{197}\.\.\.\)$"),
    ],
)
def test_the_servers_reason_is_passed_on_in_one_line(body: bytes, said: str):
    with serving(script((422, {}, body))) as server, pytest.raises(RefusedError, match=said):
        client(server.url).ask({})


def test_retry_after_pauses_everyone_for_as_long_as_the_server_asks():
    waited: list[float] = []

    class Recorded(Pace):
        def pause(self, seconds: float) -> None:
            waited.append(seconds)

    with serving(
        script(bad(429, "slow", Retry_After="17"), bad(503, "slow", Retry_After="0.5"), good(FINE))
    ) as server:
        assert Client(server.url, ApiKey(None), Recorded(None), QUICK).ask({}) == FINE
    assert waited == [17.0, 0.5]


def test_a_pause_that_is_too_long_ends_the_job():
    with serving(script(bad(429, "quota", Retry_After="3600"))) as server:
        with pytest.raises(
            AuditError, match=r"429 \(quota\), and asks to wait 3600 s; run the same command again"
        ):
            client(server.url).ask({})
        assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("12", 12.0),
        ("1.5", 1.5),
        ("-3", 0.0),
        ("Mon, 30 Nov 2026 12:00:20 GMT", 20.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("", None),
    ],
)
def test_retry_after_is_a_number_or_a_date(value: str | None, seconds: float | None):
    assert retry_after(value, datetime(2026, 11, 30, 12, tzinfo=UTC)) == seconds


KEY = "sk-secret-0123456789"


def test_a_key_that_the_server_repeats_is_blotted_out(monkeypatch, caplog):
    monkeypatch.setenv("SOME_KEY", KEY)
    echo = json.loads(json.dumps(FINE).replace("fp_1", KEY))
    with serving(script(bad(503, f"key {KEY} is throttled"), good(echo))) as server:
        with caplog.at_level("INFO"):
            value = client(server.url, variable="SOME_KEY").ask({})
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
    assert value["system_fingerprint"] == "[key]"
    assert "key [key] is throttled" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429])
def test_a_refusal_does_not_show_the_key(status: int, monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    quoting = bad(status, f"Incorrect API key provided: {KEY[:6]}*****{KEY[-4:]}, that is {KEY}")
    with serving(script(quoting)) as server, pytest.raises((AuditError, RefusedError)) as caught:
        client(server.url, variable="SOME_KEY").ask({})
    assert KEY not in str(caught.value)
    if status in (401, 403):
        assert str(caught.value).endswith(f"answers {status}, not authorised; check the key in SOME_KEY.")


def test_the_key_does_not_follow_a_redirect(monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    with serving(script(good(FINE))) as other:
        elsewhere = (307, {"Location": f"{other.url}/chat/completions"}, b"")
        with serving(script(elsewhere)) as server, pytest.raises(AuditError, match="answers 307"):
            client(server.url, variable="SOME_KEY").ask({})
        assert other.bodies == []
