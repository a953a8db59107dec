import hashlib
import json
import subprocess
import sys
import threading

import pytest

from readout_audit.errors import AuditError
from readout_audit.fetch.file import fetch_file
from readout_audit.fetch.lock import lock_or_refuse, locked
from readout_audit.fetch.mirror import in_mirror
from readout_audit.stages import fetch_file as stage

NAME = "pope/r1/q.json"
BODY = b"questions\n"
DIGEST = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def mirror(tmp_path):
    path = tmp_path / "mirror" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(BODY)
    return tmp_path / "mirror"


@pytest.fixture
def lock(tmp_path):
    return tmp_path / "fetched" / "lock.json"


@pytest.mark.usefixtures("no_sockets")
def test_with_a_mirror_no_socket_is_opened(tmp_path, mirror, lock):
    arguments = ["--mirror", str(mirror), "--mirror-path", NAME, "--url", "http://127.0.0.1:9/q.json"]
    arguments += ["--sha256", DIGEST, "--lock", str(lock), "--output", str(tmp_path / "out.json")]
    assert stage.main(arguments) == 0
    assert (tmp_path / "out.json").read_bytes() == BODY
    assert not lock.exists()


@pytest.mark.usefixtures("no_sockets")
def test_mirror_that_lacks_the_file_is_said_without_asking_the_network(tmp_path, mirror, lock):
    with pytest.raises(AuditError, match=r"other\.json: not in the mirror"):
        fetch_file("pope/r1/other.json", tmp_path / "o", lock, url="http://127.0.0.1:9/", mirror=mirror)


def test_whole_stage_runs_where_the_machine_has_no_network(tmp_path, mirror, lock):
    """Not a patched socket: the kernel gives the process a network name space of its own, with nothing in it."""
    command = [
        sys.executable,
        "-m",
        "readout_audit.stages.fetch_file",
        "--mirror",
        str(mirror),
        "--mirror-path",
        NAME,
    ]
    command += ["--url", "https://example.org/q", "--lock", str(lock), "--output", str(tmp_path / "out")]
    probe = subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("network name spaces are not allowed here")
    done = subprocess.run(["unshare", "-rn", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_bytes() == BODY


def test_wrong_bytes_in_the_mirror_are_named(tmp_path, mirror, lock):
    with pytest.raises(AuditError, match=rf"q\.json: sha256 {'0' * 64} expected, {DIGEST} found"):
        fetch_file(NAME, tmp_path / "o", lock, url=None, mirror=mirror, sha256="0" * 64)
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/../../b", "a\\b", ""])
def test_path_out_of_the_mirror_is_refused(mirror, name):
    with pytest.raises(AuditError, match="is not a path inside a mirror"):
        in_mirror(mirror, name)


def test_unknown_hash_is_locked_on_first_use_and_a_change_refused(tmp_path, mirror, lock):
    assert fetch_file(NAME, tmp_path / "o", lock, url=None, mirror=mirror) == DIGEST
    assert json.loads(lock.read_text()) == {NAME: {"sha256": DIGEST}}
    fetch_file(NAME, tmp_path / "o", lock, url=None, mirror=mirror)
    (mirror / NAME).write_bytes(b"other\n")
    with pytest.raises(AuditError, match=f"sha256 {DIGEST} expected"):
        fetch_file(NAME, tmp_path / "o2", lock, url=None, mirror=mirror)
    assert not (tmp_path / "o2").exists()


def test_file_locked_from_the_mirror_must_be_the_same_from_the_network(
    tmp_path, mirror, lock, server, patience
):
    fetch_file(NAME, tmp_path / "o", lock, url=None, mirror=mirror)
    server.files["/q"] = b"changed upstream"
    with pytest.raises(AuditError, match=f"sha256 {DIGEST} expected"):
        fetch_file(NAME, tmp_path / "o2", lock, url=f"{server.url}/q", mirror=None, patience=patience)
    server.files["/q"] = BODY
    assert (
        fetch_file(NAME, tmp_path / "o2", lock, url=f"{server.url}/q", mirror=None, patience=patience)
        == DIGEST
    )


def test_without_mirror_and_address_the_remedy_is_named(tmp_path, lock):
    with pytest.raises(AuditError, match="no address is known for it; put it into a mirror"):
        fetch_file(NAME, tmp_path / "o", lock, url=None, mirror=None)


def test_lock_names_the_fact_that_changed(lock):
    lock_or_refuse(lock, "models/m", {"revision": "a", "files": {"x": "1"}})
    with pytest.raises(AuditError, match=r"models/m: files was .*remove the entry 'models/m' from"):
        lock_or_refuse(lock, "models/m", {"revision": "a", "files": {"x": "2"}})
    assert locked(lock, "models/m") == {"revision": "a", "files": {"x": "1"}}
    assert locked(lock, "models/other") is None


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', "{"])
def test_damaged_lock_is_never_overwritten(lock, text):
    lock.parent.mkdir(parents=True)
    lock.write_text(text)
    with pytest.raises(AuditError, match=r"lock\.json"):
        lock_or_refuse(lock, "n", {"sha256": "a"})
    assert lock.read_text() == text


def test_parallel_jobs_lose_no_lock_entry(lock):
    threads = [
        threading.Thread(target=lock_or_refuse, args=(lock, f"n{n}", {"sha256": str(n)})) for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(json.loads(lock.read_text())) == {f"n{n}" for n in range(12)}
