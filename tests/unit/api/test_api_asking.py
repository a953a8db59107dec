"""The loop: how many at once, when it ends, and what is kept when it does."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from api_server import Answer, Served, asked_text, bad, completion, good, serving
from api_world import World

from readout_audit.api.asking import Answered, Asker, Question, split_kept
from readout_audit.api.client import Client, Patience
from readout_audit.api.credentials import ApiKey
from readout_audit.api.pace import Pace
from readout_audit.api.settings import ApiSettings
from readout_audit.api.store import ReplyStore
from readout_audit.errors import AuditError

FINE = good(completion([("Yes", -0.1), ("No", -2.5)]))
NO_NUMBERS = good({"choices": [{"message": {"content": "Yes"}, "logprobs": None}]})


def questions(count: int, image: str = "picture0.png") -> list[Question]:
    return [Question(f"u{n:02}", image, "dog", f"question {n}?", f"question {n}?") for n in range(count)]


def ask(
    world: World,
    served: Served,
    pending: list[Question],
    parts: Path,
    in_flight: int = 4,
    images: bool = False,
    attempts: int = 2,
) -> list[Answered]:
    """Ask with a store under `parts`."""
    settings = ApiSettings.parse(json.dumps(world.settings(served.url)))
    pace = Pace(None)
    client = Client(served.url, ApiKey(None), pace, Patience(attempts=attempts, wait=0.01))
    with ReplyStore(parts, served.url, settings.fingerprint()) as store:
        return Asker(settings, client, pace, store, world.images if images else None, in_flight).ask(pending)


def kept(parts: Path) -> set[str]:
    """The uids that have a kept reply."""
    return {json.loads(line)["uid"] for file in parts.glob("api-*/replies.jsonl") for line in file.open()}


def by_question(wrong: Callable[[int], bool], answer: Answer) -> Any:
    """Answer well, but `answer` to the questions whose number is `wrong`."""
    return lambda _, body: answer if wrong(int(asked_text(body).split()[1].strip("?"))) else FINE


def test_every_question_is_asked_once_and_so_many_at_a_time(world, tmp_path):
    with serving(lambda number, body: FINE, delay=0.03) as server:
        answered = ask(world, server, questions(20), tmp_path / "parts", in_flight=3)
    assert sorted(item.question.uid for item in answered) == [f"u{n:02}" for n in range(20)]
    assert sorted(map(asked_text, server.bodies)) == sorted(q.message for q in questions(20))
    assert server.busiest == 3
    assert kept(tmp_path / "parts") == {f"u{n:02}" for n in range(20)}


def test_the_first_question_is_asked_alone(world, tmp_path):
    counts = []

    def answer(number: int, body: Any) -> Answer:
        counts.append(server.now)
        return FINE

    with serving(answer, delay=0.03) as server:
        ask(world, server, questions(4), tmp_path / "parts")
    assert counts[0] == 1


def test_a_server_without_numbers_is_asked_three_questions_and_named(world, tmp_path):
    with serving(lambda number, body: NO_NUMBERS) as server:
        with pytest.raises(AuditError, match=r"3 questions in a row .*holds no log-probabilities"):
            ask(world, server, questions(20), tmp_path / "parts")
        assert len(server.bodies) == 3


def test_a_server_without_numbers_is_named_even_for_one_question(world, tmp_path):
    with (
        serving(lambda number, body: NO_NUMBERS) as server,
        pytest.raises(AuditError, match="no question has"),
    ):
        ask(world, server, questions(1), tmp_path / "parts")


def test_single_faults_become_invalid_rows_and_are_asked_again_next_time(world, tmp_path):
    odd = by_question(lambda n: n in (2, 5), bad(400, "policy"))
    with serving(odd) as server:
        answered = ask(world, server, questions(8), tmp_path / "parts", in_flight=1)
    faults = {item.question.uid: item.fault for item in answered if item.reply is None}
    assert faults == {"u02": "the server answers 400 (policy)", "u05": "the server answers 400 (policy)"}
    assert kept(tmp_path / "parts") == {f"u{n:02}" for n in range(8)} - {"u02", "u05"}


def test_refused_ones_alone_do_not_end_a_job_that_has_good_answers_from_before(world, tmp_path):
    odd = by_question(lambda n: n == 2, bad(400, "policy"))
    with serving(odd) as server:
        ask(world, server, questions(2), tmp_path / "parts")
        (answered,) = ask(world, server, questions(3)[2:], tmp_path / "parts")
    assert answered.fault == "the server answers 400 (policy)"


def test_twenty_faults_in_a_row_end_the_job(world, tmp_path):
    broken = by_question(lambda n: n >= 5, bad(500, "out of memory"))
    with serving(broken) as server:
        with pytest.raises(AuditError, match=r"20 questions in a row .*500 \(out of memory\)"):
            ask(world, server, questions(40), tmp_path / "parts", in_flight=1, attempts=1)
        assert len(server.bodies) == 25
    assert kept(tmp_path / "parts") == {f"u{n:02}" for n in range(5)}


def test_when_the_job_ends_early_answers_in_flight_are_kept(world, tmp_path):
    def answer(number: int, body: Any) -> Answer:
        return bad(401) if asked_text(body) == "question 3?" else FINE

    with serving(answer, delay=0.05) as server:
        with pytest.raises(AuditError, match="answers 401"):
            ask(world, server, questions(40), tmp_path / "parts", in_flight=4)
        asked = {asked_text(body) for body in server.bodies} - {"question 3?"}
    assert kept(tmp_path / "parts") == {f"u{int(text.split()[1][:-1]):02}" for text in asked}
    assert len(asked) < 15


def test_a_picture_that_cannot_be_read_is_not_sent(world, tmp_path):
    (world.images / "torn.png").write_bytes((world.images / "picture0.png").read_bytes()[:40])
    pending = [*questions(1), *questions(1, "torn.png"), *questions(1, "gone.png")]
    with serving(lambda number, body: FINE) as server:
        answered = ask(world, server, pending, tmp_path / "parts", images=True)
        assert len(server.bodies) == 1
    faults = {item.question.image: item.fault for item in answered}
    assert faults["picture0.png"] is None
    assert "torn.png: not a readable image" in faults["torn.png"]
    assert faults["gone.png"] == "gone.png: the image file is missing"


def test_a_kept_reply_is_of_one_picture(world, tmp_path):
    pending = questions(1)
    with serving(lambda number, body: FINE) as server:
        ask(world, server, pending, tmp_path / "parts", images=True)
        settings = ApiSettings.parse(json.dumps(world.settings(server.url)))
        with ReplyStore(tmp_path / "parts", server.url, settings.fingerprint()) as store:
            assert split_kept(pending, store, world.images)[1] == []
            (world.images / "picture0.png").write_bytes((world.images / "picture1.png").read_bytes())
            assert split_kept(pending, store, world.images) == ([], pending)
