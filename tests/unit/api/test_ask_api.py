"""The stage: records from a server's answers, resumed after a kill, without a trace of the key."""

import base64
import hashlib
import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from api_server import Answer, asked_text, bad, completion, good, serving

from readout_audit.contracts import QUESTIONS, RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.inference.questions import distinct_questions
from readout_audit.logs import stage_main
from readout_audit.readouts.registry import get
from readout_audit.stages.ask_api import main

ANSWERS = {
    "dog": completion([("Yes", -0.25), ("No", -2.0), ("yes", -4.0)]),
    "cat": completion([("No", -0.25), ("The", -2.0), ("It", -4.0)]),
    "bus": completion([("The", -0.5), ("It", -1.5), ("A", -3.0)], text="The bus is not there."),
}


def by_noun(number: int, body: dict[str, Any]) -> Answer:
    """A yes to dogs, a no to cats, neither about buses."""
    return good(next(value for noun, value in ANSWERS.items() if noun in asked_text(body)))


def test_records_hold_what_was_listed_and_null_for_what_was_not(world, tmp_path):
    with serving(by_noun) as server:
        assert main(world.arguments(tmp_path, server.url)) == 0
    records = read_table(tmp_path / "records.parquet", RECORDS, "the records")
    meta = table_metadata(records)
    asked = distinct_questions(read_table(world.questions, QUESTIONS, "the questions"))
    assert records["uid"].to_pylist() == [row["uid"] for row in asked]
    assert len(server.bodies) == 6  # seven rows, one of them in two splits
    dog, cat, bus = records.to_pylist()[:3]
    ids = {text: int(token_id) for token_id, text in meta["token_map"]["pieces"].items()}
    # The twelve forms have ids 0 to 11, then what else was listed or written, by its bytes.
    assert [ids[text] for text in ("yes", "Yes", "no", "No", ".", "A", "It", "The")] == [
        0,
        1,
        6,
        7,
        12,
        13,
        14,
        15,
    ]
    assert meta["candidate_ids"] == list(range(12))
    assert dog["candidate_logits"] == [-4.0, -0.25, *[None] * 5, -2.0, *[None] * 4]
    assert dog["candidate_ranks"] == [3, 1, *[None] * 5, 2, *[None] * 4]
    assert cat["candidate_logits"] == [*[None] * 7, -0.25, *[None] * 4]
    assert bus["candidate_logits"] == [None] * 12
    assert (bus["top_ids"], bus["top_logits"]) == ([15, 14, 13], [-0.5, -1.5, -3.0])
    assert (dog["argmax_id"], dog["argmax_text"], dog["argmax_logit"]) == (1, "Yes", -0.25)
    assert (dog["new_ids"], dog["new_text"], dog["full_text"]) == ([1, 12], "Yes.", None)
    assert (dog["n_prompt_tokens"], dog["n_image_tokens"], dog["log_z"]) == (21, None, 0.0)
    assert dog["prompt"] == "Is there a dog in the image? Answer yes or no only."
    assert dog["image_sha256"] == hashlib.sha256((world.images / "picture0.png").read_bytes()).hexdigest()
    assert meta["token_sets"]["single"] == {"yes": [0, 1, 2, 3], "no": [6, 7, 8, 9]}
    assert meta["token_sets"]["scan"] == {"yes": [0, 1, 2, 3, 4, 5], "no": [6, 7, 8, 9, 10, 11]}
    assert meta["server_says"]["system_fingerprint"] == {"fp_1": 6}
    assert meta["n_top"] == {"asked": 3, "least": 3, "most": 3}
    assert (meta["n_ok"], meta["n_invalid"]) == (6, 0)


def test_the_picture_goes_as_its_own_bytes(world, tmp_path):
    with serving(by_noun) as server:
        main(world.arguments(tmp_path, server.url))
    kind, data = server.bodies[0]["messages"][0]["content"][0]["image_url"]["url"].split(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(data) == (world.images / "picture0.png").read_bytes()


def test_text_readouts_read_these_records(world, tmp_path):
    with serving(by_noun) as server:
        main(world.arguments(tmp_path, server.url))
    records = read_table(tmp_path / "records.parquet", RECORDS, "the records")
    meta = table_metadata(records)
    read = {
        name: get(name).decide(records, meta).decision.to_pylist()[:3]
        for name in ("first_token", "string_parse")
    }
    assert read == {"first_token": ["yes", "no", "unparsed"], "string_parse": ["yes", "no", "unparsed"]}


def test_nothing_is_asked_twice_whatever_changes_in_the_question_table(world, tmp_path):
    with serving(by_noun) as server:
        main(world.arguments(tmp_path, server.url))
        before = (tmp_path / "records.parquet").read_bytes()
        table = read_table(world.questions, QUESTIONS, "the questions")
        main(world.arguments(tmp_path, server.url))
        assert (tmp_path / "records.parquet").read_bytes() == before
        pq.write_table(table.take([4, 1, 0]), world.questions)
        main(world.arguments(tmp_path, server.url, model="another-name"))
        assert len(server.bodies) == 6
    assert (
        pq.read_table(tmp_path / "records.parquet")["uid"].to_pylist()
        == table["uid"].take([4, 1, 0]).to_pylist()
    )
    assert json.loads((tmp_path / "records.manifest.json").read_text())["asked"] == 0


def test_the_same_replies_give_the_same_bytes_in_whatever_order_they_came(world, tmp_path):
    with serving(by_noun, delay=0.01) as server:
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            main(world.arguments(tmp_path / name, server.url, "--in-flight", "6" if name == "a" else "1"))
    one, other = ((tmp_path / name / "records.parquet").read_bytes() for name in ("a", "b"))
    assert one == other


def test_without_pictures_none_is_sent_or_named(world, tmp_path):
    with serving(by_noun) as server:
        main(world.arguments(tmp_path, server.url, image="none"))
    assert all(isinstance(body["messages"][0]["content"], str) for body in server.bodies)
    records = read_table(tmp_path / "records.parquet", RECORDS, "the records")
    assert records["image_sha256"].null_count == 6


def test_a_question_without_an_answer_is_an_invalid_row(world, tmp_path):
    def answer(number: int, body: dict[str, Any]) -> Answer:
        return bad(400, "policy") if "bus" in asked_text(body) else by_noun(number, body)

    with serving(answer) as server:
        main(world.arguments(tmp_path, server.url))
    row = read_table(tmp_path / "records.parquet", RECORDS, "the records").to_pylist()[2]
    assert (row["status"], row["reason"]) == ("invalid", "the server answers 400 (policy)")
    assert row["candidate_logits"] is None
    assert table_metadata(pq.read_table(tmp_path / "records.parquet"))["n_invalid"] == 2


def test_a_short_list_and_a_changed_server_are_said(world, tmp_path, caplog):
    def answer(number: int, body: dict[str, Any]) -> Answer:
        return good(completion([("Yes", -0.25)], system_fingerprint=f"fp_{number % 2}"))

    with serving(answer) as server, caplog.at_level(logging.WARNING, "readout_audit"):
        main(world.arguments(tmp_path, server.url))
    assert "lists fewer tokens than asked for: {'asked': 3, 'least': 1, 'most': 1}" in caplog.text
    assert (
        "the server changed while it was asked: system_fingerprint was {'fp_0': 3, 'fp_1': 3}" in caplog.text
    )


def test_a_killed_job_loses_what_was_in_flight_and_nothing_else(world, tmp_path):
    words = world.arguments(tmp_path, "SERVER", "--in-flight", "2")
    with serving(by_noun, delay=0.15) as server:
        words = [word.replace("SERVER", server.url) for word in words]
        job = subprocess.Popen([sys.executable, "-m", "readout_audit.stages.ask_api", *words])
        (deadline, lines) = time.monotonic() + 60, []
        while len(lines) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
            lines = [line for file in tmp_path.glob("parts/api-*/replies.jsonl") for line in file.open()]
        job.kill()
        job.wait()
        assert not (tmp_path / "records.parquet").exists()
        before = len(server.bodies)
        assert main(words) == 0
        kept = 6 - (len(server.bodies) - before)
    assert kept >= 2
    assert before - kept <= 2  # what the kill has lost
    assert pq.read_table(tmp_path / "records.parquet").num_rows == 6


KEY = "sk-secret-0123456789"


def test_the_key_lands_nowhere(world, tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("SOME_KEY", KEY)
    out = tmp_path / "out"

    def answer(number: int, body: dict[str, Any]) -> Answer:
        """A server that repeats the key wherever it can."""
        echo = json.loads(json.dumps(by_noun(number, body)[2].decode()).replace("fp_1", KEY))
        text = echo.replace('"content": "Yes."', f'"content": "Yes {KEY}"').replace('"served"', f'"{KEY}"')
        if number == 1:
            return bad(429, f"key {KEY} is throttled", Retry_After="0")
        if "bus" in asked_text(body):
            return bad(400, f"{KEY} may not ask this")
        return 200, {}, text.encode()

    with serving(answer) as server:
        words = world.arguments(out, server.url, "--key-variable", "SOME_KEY")
        assert stage_main(main, [*words, "--log", str(out / "ask.log")]) == 0
        assert server.headers[0]["Authorization"] == f"Bearer {KEY}"
        server.answer = lambda number, body: bad(403, f"{KEY} is not allowed")
        assert stage_main(main, [*words, "--log", str(out / "refused.log")]) == 1  # buses are asked again
    said = "".join(capfd.readouterr())
    assert "[key] may not ask this" in said
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) >= 6
    rows = repr(pq.read_table(out / "records.parquet").to_pylist())
    for text in (said.encode(), rows.encode(), *(path.read_bytes() for path in files)):
        assert KEY.encode() not in text
    assert "SOME_KEY" not in (out / "records.manifest.json").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--in-flight", "0"], "--in-flight is 0; it must be above 0"),
        (["--requests-per-minute", "-1"], "--requests-per-minute is -1.0"),
        (["--requests-per-minute", "nan"], "--requests-per-minute is nan"),
        (["--key-variable", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused(words, sentence, world, tmp_path):
    with pytest.raises(AuditError, match=sentence):
        main(world.arguments(tmp_path, "http://127.0.0.1:9/v1", *words))


def test_pictures_need_a_folder(world, tmp_path):
    words = world.arguments(tmp_path, "http://127.0.0.1:9/v1")
    place = words.index("--images")
    with pytest.raises(AuditError, match="--images names no folder"):
        main([*words[:place], *words[place + 2 :]])


def test_a_rate_limit_holds_over_all_that_is_in_flight(world, tmp_path):
    times: list[float] = []

    def answer(number: int, body: dict[str, Any]) -> Answer:
        times.append(time.monotonic())
        return by_noun(number, body)

    with serving(answer) as server:
        main(world.arguments(tmp_path, server.url, "--requests-per-minute", "600", "--in-flight", "6"))
    assert len(times) == 6
    assert times[-1] - times[0] >= 5 * 0.1 - 0.05  # starts are a tenth of a second apart; arrivals jitter


def test_neither_torch_nor_transformers_is_loaded():
    code = "import sys, readout_audit.stages.ask_api; sys.exit(int(bool({'torch', 'transformers'} & set(sys.modules))))"
    root = Path(__file__).resolve().parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0
