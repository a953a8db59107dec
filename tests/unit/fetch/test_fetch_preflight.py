import shutil
import socket

import pytest

from readout_audit.fetch import preflight
from readout_audit.fetch.preflight import check_disk_space, check_network, check_source


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_sockets")
def test_full_mirror_is_enough(tmp_path):
    (tmp_path / "models/m").mkdir(parents=True)
    (tmp_path / "pope").mkdir()
    (tmp_path / "pope/q.json").touch()
    assert check_source(["pope/q.json", "models/m.json"], tmp_path) is None


@pytest.mark.usefixtures("no_sockets")
def test_mirror_names_the_first_missing_path_and_counts_the_rest(tmp_path):
    sentence = check_source(["pope/b.json", "models/m.json", "pope/a.json"], tmp_path)
    assert sentence == (
        f"the mirror {tmp_path} lacks models/m and 2 more; put what is missing there, or set mirror to null to "
        f"fetch from the network."
    )


def test_each_host_is_asked_once(server, monkeypatch):
    asked = []

    def connect(address, timeout):
        asked.append(address)
        return socket.socket()

    monkeypatch.setattr(preflight.socket, "create_connection", connect)
    assert check_source(["pope/a.json", "published/b.json", "models/m.json"], None) is None
    assert asked == [("huggingface.co", 443), ("raw.githubusercontent.com", 443)]


def test_reachable_and_unreachable_host(server):
    assert check_network([f"{server.url}/x"]) is None
    server.close()
    assert "127.0.0.1 cannot be reached" in (check_network([f"{server.url}/x"]) or "")


def test_host_without_a_name_is_said(monkeypatch):
    def unknown(*_args, **_options):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(preflight.socket, "create_connection", unknown)
    sentence = check_source(["pope/a.json"], None)
    assert sentence is not None
    assert sentence.startswith("raw.githubusercontent.com cannot be reached (Name or service not known)")


def test_proxy_is_what_must_be_reachable(server, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", server.url)
    assert check_network(["https://nowhere.invalid/x"]) is None


def test_nothing_due_needs_nothing():
    assert check_source([], None) is None


def test_disk_space_of_a_folder_that_is_not_there_yet(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    assert check_disk_space(tmp_path / "a/b", needed=0) is None
    sentence = check_disk_space(tmp_path / "a/b", needed=free * 2)
    assert sentence is not None
    assert "make room" in sentence
