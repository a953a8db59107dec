"""The parts store: what is kept, what is ignored, who waits for whom."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from readout_audit.contracts import RECORDS
from readout_audit.inference.base import Question
from readout_audit.inference.parts import PartsStore, fingerprint
from readout_audit.inference.records import Row, invalid_row

ABOUT = {"model": "tiny", "code": "c0de"}


def row(uid: str, sha256: str = "s") -> Row:
    return invalid_row(Question(uid, "a.jpg", None, "q", "p"), sha256, "because")


def test_rows_come_back_by_uid_and_image_hash(tmp_path: Path) -> None:
    with PartsStore(tmp_path, ABOUT, RECORDS) as store:
        store.add([row("1"), row("2")])
        store.add([row("3")])
        store.add([row("4", "other")])
    with PartsStore(tmp_path, ABOUT, RECORDS) as again:
        assert set(again.finished()) == {("1", "s"), ("2", "s"), ("3", "s"), ("4", "other")}
        assert again.finished()["1", "s"] == row("1")


def test_anything_that_changes_an_answer_has_a_folder_of_its_own(tmp_path: Path) -> None:
    with PartsStore(tmp_path, ABOUT, RECORDS) as store:
        store.add([row("1")])
    with PartsStore(tmp_path, {**ABOUT, "code": "0ther"}, RECORDS) as other:
        assert other.finished() == {}
    assert fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1})


def test_parts_of_other_processes_are_seen_while_this_one_runs(tmp_path: Path) -> None:
    with PartsStore(tmp_path, ABOUT, RECORDS) as one, PartsStore(tmp_path, ABOUT, RECORDS) as two:
        one.add([row("1")])
        assert set(two.finished()) == {("1", "s")}
        one.add([row("2")])
        assert set(two.finished()) == {("1", "s"), ("2", "s")}


def test_damaged_parts_and_leftovers_are_ignored(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with PartsStore(tmp_path, ABOUT, RECORDS) as store:
        good, bad = store.add([row("1")]), store.add([row("2")])
        bad.write_bytes(bad.read_bytes()[:100])
        old, new = store.folder / f".{good.name}.x.tmp", store.folder / f".{good.name}.y.tmp"
        old.write_bytes(b"PAR1")
        new.write_bytes(b"PAR1")
        hours_ago = time.time() - 7200
        os.utime(old, (hours_ago, hours_ago))
    with PartsStore(tmp_path, ABOUT, RECORDS) as again:
        assert set(again.finished()) == {("1", "s")}
    assert bad.name in caplog.text and "asked again" in caplog.text
    assert not old.exists() and new.exists()


def hold(root: Path, image: str, ready: "multiprocessing.synchronize.Event") -> None:
    store = PartsStore(root, ABOUT, RECORDS)
    assert store.lock(image, wait=False)
    ready.set()
    time.sleep(60)


def test_a_lock_keeps_others_out_and_dies_with_its_holder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    holder = context.Process(target=hold, args=(tmp_path, "a.jpg", ready))
    holder.start()
    assert ready.wait(20)
    with PartsStore(tmp_path, ABOUT, RECORDS) as store:
        assert not store.lock("a.jpg", wait=False)
        assert store.lock("b.jpg", wait=False)
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGKILL)
        holder.join()
        assert store.lock("a.jpg", wait=False)


def test_facts_are_kept_and_damaged_ones_made_again(tmp_path: Path) -> None:
    with PartsStore(tmp_path, ABOUT, RECORDS) as store:
        assert store.facts() is None
        store.set_facts({"parameter_dtypes": {"float32": 3}})
        assert store.facts() == {"parameter_dtypes": {"float32": 3}}
        (store.folder / "facts.json").write_text("{")
        assert store.facts() is None
