"""What is looked for before the first job runs, and the lock that dies with its process."""

import socket
from pathlib import Path

import pytest

from readout_audit.config import onstart
from readout_audit.config.wiring import Wiring

IMAGES = {"coco-val2014": {"mirror": "images/coco/{image}", "folder_key": "coco_val2014"}}


def plan(own: str | None) -> Wiring:
    return Wiring({"known_images": IMAGES, "coco_val2014": own, "mirror": None})


@pytest.mark.parametrize(
    ("rule", "output", "own", "expected"),
    [
        ("fetch_file", "resources/fetched/pope/r/f.json", None, ["pope/r/f.json"]),
        ("fetch_model", "resources/fetched/models/m.json", None, ["models/m.json"]),
        ("fetch_images", "results/x/images/coco-val2014.json", None, ["images/coco"]),
        ("fetch_images", "results/x/images/coco-val2014.json", "mine", []),
    ],
)
def test_what_a_fetch_job_looks_for(rule: str, output: str, own: str | None, expected: list[str]) -> None:
    assert onstart.fetched_paths(plan(own), rule, output) == expected


def test_a_held_lock_names_its_process(tmp_path: Path) -> None:
    lock = tmp_path / "run/.lock"
    assert onstart.hold_lock(lock) is None
    # A second open file of the same process is another holder to the kernel.
    sentence = onstart.hold_lock(lock)
    assert sentence is not None and "is already running this run" in sentence
    onstart._HELD.pop().close()
    assert onstart.hold_lock(lock) is None
    onstart._HELD.pop().close()


def test_no_nvidia_smi_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert onstart.has_gpu() is False


@pytest.mark.parametrize(("says", "expected"), [("GPU 0: a card", True), ("No devices were found", False)])
def test_gpu_is_what_nvidia_smi_lists(
    says: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\necho '{says}'\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert onstart.has_gpu() is expected


def served(url: str, key_variable: str | None = None) -> Wiring:
    server = {"url": url, "served_model": "m", "key_variable": key_variable}
    return Wiring({"known_models": {"far": {"server": server}}, "known_clips": {}})


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def test_a_server_that_does_not_listen_and_a_key_that_is_not_set(
    no_proxy: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAR_KEY", raising=False)
    plan = served(f"http://127.0.0.1:{closed_port()}/v1", "FAR_KEY")
    key, place = onstart.server_faults(plan, "far")
    assert key.startswith("model far: the environment variable FAR_KEY is not set")
    assert "nothing answers at http://127.0.0.1:" in place and "known_models.far.server.url" in place
    with socket.create_server(("127.0.0.1", 0)) as listening:
        plan = served(f"http://127.0.0.1:{listening.getsockname()[1]}/v1")
        assert list(onstart.server_faults(plan, "far")) == []


def test_behind_a_proxy_only_the_proxy_can_tell(no_proxy: None, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = served(f"http://127.0.0.1:{closed_port()}/v1")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert list(onstart.server_faults(plan, "far")) == []
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert len(list(onstart.server_faults(plan, "far"))) == 1
