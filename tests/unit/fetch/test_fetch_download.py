import errno
import fcntl
import hashlib
import shutil

import pytest
from fetch_server import answer, busy, cut

from readout_audit.errors import AuditError
from readout_audit.fetch import download as module
from readout_audit.fetch.download import CHUNK, Patience, UnavailableError, check_room, download

BODY = bytes(range(256)) * 400  # 102,400 bytes
SENT = 3 * CHUNK
DIGEST = hashlib.sha256(BODY).hexdigest()


def hidden(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def interrupted(server, tmp_path, *, sent=SENT, etag=None, body=BODY):
    """Leave a part of `sent` bytes, as a run that was ended would."""
    server.files["/f"] = body
    if etag:
        server.etags["/f"] = etag
    server.faults = [cut(body, sent, etag)]
    with pytest.raises(AuditError, match="what has arrived is kept"):
        download(f"{server.url}/f", tmp_path / "f", patience=Patience(attempts=1))
    server.requests.clear()
    assert (tmp_path / ".f.part").stat().st_size == sent
    assert not (tmp_path / "f").exists()


def test_file_arrives_whole_and_leaves_nothing_else(server, tmp_path, patience):
    server.files["/f"] = BODY
    assert download(f"{server.url}/f", tmp_path / "new" / "f", sha256=DIGEST, patience=patience) == DIGEST
    assert (tmp_path / "new" / "f").read_bytes() == BODY
    assert hidden(tmp_path / "new") == []


def test_empty_file_is_a_file(server, tmp_path, patience):
    server.files["/f"] = b""
    assert download(f"{server.url}/f", tmp_path / "f", patience=patience) == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_busy_server_is_asked_again(server, tmp_path, patience, status):
    server.files["/f"] = BODY
    server.faults = [busy(status), busy(status)]
    download(f"{server.url}/f", tmp_path / "f", patience=patience)
    assert len(server.requests) == 3


def test_server_that_stays_busy_ends_in_one_sentence(server, tmp_path, patience):
    server.faults = [busy()] * 9
    with pytest.raises(AuditError, match=r"after 4 attempts \(the server answers 503\)"):
        download(f"{server.url}/f", tmp_path / "f", patience=patience)
    assert len(server.requests) == 4


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_refusal_is_not_tried_again_and_keeps_the_old_file(server, tmp_path, patience, status):
    (tmp_path / "f").write_bytes(b"old")
    server.faults = [busy(status)]
    with pytest.raises(UnavailableError, match=f"the server answers {status}") as caught:
        download(f"{server.url}/f", tmp_path / "f", patience=patience)
    assert caught.value.status == status
    assert len(server.requests) == 1
    assert (tmp_path / "f").read_bytes() == b"old"


def test_body_that_ends_early_goes_on_where_it_stopped(server, tmp_path, patience):
    server.files["/f"], server.etags["/f"] = BODY, '"v1"'
    server.faults = [cut(BODY, SENT, '"v1"')]
    assert download(f"{server.url}/f", tmp_path / "f", patience=patience) == DIGEST
    assert server.requests == [("/f", None), ("/f", f"bytes={SENT}-")]


def test_next_run_goes_on_where_the_last_one_was_ended(server, tmp_path, patience):
    interrupted(server, tmp_path, etag='"v1"')
    assert download(f"{server.url}/f", tmp_path / "f", patience=patience) == DIGEST
    assert server.requests == [("/f", f"bytes={SENT}-")]
    assert hidden(tmp_path) == []


def test_file_that_changed_meanwhile_is_not_mixed(server, tmp_path, patience):
    interrupted(server, tmp_path, etag='"v1"')
    server.files["/f"], server.etags["/f"] = BODY[::-1], '"v2"'
    assert (
        download(f"{server.url}/f", tmp_path / "f", patience=patience)
        == hashlib.sha256(BODY[::-1]).hexdigest()
    )
    assert (tmp_path / "f").read_bytes() == BODY[::-1]


def test_without_validator_or_hash_nothing_is_resumed(server, tmp_path, patience):
    interrupted(server, tmp_path)
    server.files["/f"] = BODY[::-1]
    download(f"{server.url}/f", tmp_path / "f", patience=patience)
    assert server.requests == [("/f", None)]
    assert (tmp_path / "f").read_bytes() == BODY[::-1]


def test_known_hash_is_validator_enough(server, tmp_path, patience):
    interrupted(server, tmp_path)
    download(f"{server.url}/f", tmp_path / "f", sha256=DIGEST, patience=patience)
    assert server.requests == [("/f", f"bytes={SENT}-")]


def test_stale_part_under_a_known_hash_starts_again(server, tmp_path, patience):
    interrupted(server, tmp_path, body=BODY[::-1])
    server.files["/f"] = BODY
    assert download(f"{server.url}/f", tmp_path / "f", sha256=DIGEST, patience=patience) == DIGEST
    assert server.requests == [("/f", f"bytes={SENT}-"), ("/f", None)]


def test_server_without_ranges_sends_all_again(server, tmp_path, patience):
    interrupted(server, tmp_path, etag='"v1"')
    server.ranges = False
    assert download(f"{server.url}/f", tmp_path / "f", patience=patience) == DIGEST


def test_part_that_is_already_whole(server, tmp_path, patience):
    interrupted(server, tmp_path, etag='"v1"')
    (tmp_path / ".f.part").write_bytes(BODY)
    assert download(f"{server.url}/f", tmp_path / "f", patience=patience) == DIGEST


def test_part_longer_than_the_file_is_dropped(server, tmp_path, patience):
    interrupted(server, tmp_path, etag='"v1"')
    (tmp_path / ".f.part").write_bytes(BODY + b"more")
    assert download(f"{server.url}/f", tmp_path / "f", patience=patience) == DIGEST


def test_another_part_than_the_one_asked_for_is_not_appended(server, tmp_path, patience):
    interrupted(server, tmp_path, etag='"v1"')
    wrong = {"Content-Range": f"bytes 0-{len(BODY) - 1}/{len(BODY)}"}
    server.faults = [lambda handler: answer(handler, 206, BODY, wrong)]
    assert download(f"{server.url}/f", tmp_path / "f", patience=patience) == DIGEST


def test_part_of_another_address_is_not_used(server, tmp_path, patience):
    interrupted(server, tmp_path, etag='"v1"')
    server.files["/g"] = BODY[::-1]
    download(f"{server.url}/g", tmp_path / "f", patience=patience)
    assert server.requests == [("/g", None)]
    assert (tmp_path / "f").read_bytes() == BODY[::-1]


def test_wrong_hash_names_both_and_keeps_nothing(server, tmp_path, patience):
    server.files["/f"] = BODY
    with pytest.raises(AuditError, match=f"sha256 {'0' * 64} expected, {DIGEST} found"):
        download(f"{server.url}/f", tmp_path / "f", sha256="0" * 64, patience=patience)
    assert list(tmp_path.iterdir()) == []
    assert len(server.requests) == 1


def test_unreachable_host_is_one_sentence(tmp_path, server, patience):
    server.close()
    with pytest.raises(AuditError, match="cannot be fetched after 4 attempts"):
        download(f"{server.url}/f", tmp_path / "f", patience=patience)


@pytest.mark.parametrize("url", ["file:///etc/passwd", "no-address", "ftp://127.0.0.1/f", "http://"])
def test_address_of_another_kind_is_refused(tmp_path, patience, url):
    with pytest.raises(AuditError, match="cannot be fetched"):
        download(url, tmp_path / "f", patience=patience)


def test_two_processes_do_not_write_the_same_part(server, tmp_path, patience):
    server.files["/f"] = BODY
    with (tmp_path / ".f.part.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(AuditError, match="another process is downloading this file"):
            download(f"{server.url}/f", tmp_path / "f", patience=patience)


def test_full_disk_is_said_before_anything_is_written(server, tmp_path, patience, monkeypatch):
    server.files["/f"] = BODY
    free = module.DISK_MARGIN + len(BODY) - 1
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(module.shutil, "disk_usage", lambda _: usage)
    with pytest.raises(AuditError, match=r"0\.00 GB are needed and 0\.07 GB are free"):
        download(f"{server.url}/f", tmp_path / "f", patience=patience)
    assert not (tmp_path / "f").exists()
    check_room(tmp_path, len(BODY) - 1)


def test_disk_that_fills_up_is_one_sentence(server, tmp_path, patience, monkeypatch):
    server.files["/f"] = BODY

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.requests.Response, "iter_content", full)
    with pytest.raises(AuditError, match="the disk is full"):
        download(f"{server.url}/f", tmp_path / "f", patience=patience)


def test_waits_double_up_to_a_limit(server, tmp_path, monkeypatch):
    waited = []
    monkeypatch.setattr(module.time, "sleep", waited.append)
    server.faults = [busy()] * 5
    with pytest.raises(AuditError):
        download(f"{server.url}/f", tmp_path / "f", patience=Patience(attempts=5, wait=1.0, longest_wait=3.0))
    assert waited == [1.0, 2.0, 3.0, 3.0]
