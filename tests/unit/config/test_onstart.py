"""What is looked for before the first job runs, and the lock that dies with its process."""

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
