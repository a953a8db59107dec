"""Replies that a kill cannot take."""

import fcntl
import os
import subprocess
import sys

import pytest
from api_server import completion

from readout_audit.api.reply import Reply, read_reply
from readout_audit.api.store import ReplyStore

SERVER = "http://127.0.0.1:8000/v1"


def reply(text: str = "Yes.") -> Reply:
    return read_reply(completion([("Yes", -0.1), ("No", -2.5)], text=text))


def store(folder, described=None) -> ReplyStore:
    return ReplyStore(folder, SERVER, described or {"request": 1})


def replies_file(folder):
    (path,) = folder.glob("api-*/replies.jsonl")
    return path


def test_kept_replies_are_there_again(tmp_path):
    with store(tmp_path) as first:
        first.add(("u1", "s1"), reply())
        first.add(("u2", None), reply("No."))
        assert first.get(("u1", "s1")) == reply()
    with store(tmp_path) as again:
        assert len(again) == 2
        assert again.get(("u1", "s1")) == reply()
        assert again.get(("u2", None)) == reply("No.")
        assert again.get(("u1", "other image")) is None


def test_other_requests_have_other_replies(tmp_path):
    with store(tmp_path) as first:
        first.add(("u1", "s1"), reply())
    with store(tmp_path, {"request": 2}) as other:
        assert len(other) == 0


def test_a_reply_cut_short_by_a_kill_is_dropped_and_the_file_goes_on(tmp_path):
    with store(tmp_path) as first:
        first.add(("u1", "s1"), reply())
        first.add(("u2", "s2"), reply())
    path = replies_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    with store(tmp_path) as again:
        assert (again.get(("u1", "s1")), again.get(("u2", "s2"))) == (reply(), None)
        again.add(("u3", "s3"), reply())
    with store(tmp_path) as third:
        assert len(third) == 2


@pytest.mark.parametrize(
    "line", [b"{}", b"null", b"[1]", b"\xff", b'{"uid":"u","image_sha256":null,"reply":{"top":1}}']
)
def test_a_damaged_line_is_named_and_skipped(line: bytes, tmp_path, caplog):
    with store(tmp_path) as first:
        first.add(("u1", "s1"), reply())
    path = replies_file(tmp_path)
    path.write_bytes(line + b"\n" + path.read_bytes())
    with caplog.at_level("WARNING", "readout_audit.api.store"), store(tmp_path) as again:
        assert again.get(("u1", "s1")) == reply()
        assert len(again) == 1
    assert "line 1 is damaged" in caplog.text


def test_processes_take_turns_at_a_server(tmp_path):
    with store(tmp_path):
        (turn,) = tmp_path.glob("api-*.lock")
        other = os.open(turn, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(other)
    other = os.open(turn, os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # free again
    os.close(other)


WRITER = """
import os, sys
from pathlib import Path
from readout_audit.api.reply import Mark, Piece, Reply
from readout_audit.api.store import ReplyStore
piece = Piece("Yes", b"Yes")
with ReplyStore(Path(sys.argv[1]), "http://127.0.0.1:8000/v1", {"request": 1}) as store:
    for number in range(3):
        store.add((f"u{number}", "s"), Reply("Yes", (Mark(piece, -0.1),), (piece,)))
    os.kill(os.getpid(), 9)
"""


def test_a_killed_process_leaves_its_replies_and_not_its_turn(tmp_path):
    ended = subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], check=False)
    assert ended.returncode == -9
    with store(tmp_path) as again:
        assert len(again) == 3
