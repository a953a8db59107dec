"""The workflow says no in one sentence: status 1, no traceback, nothing run, no lock left."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.dag.conftest import environment, snakemake

pytestmark = pytest.mark.dag


def sentence(result: "subprocess.CompletedProcess[str]") -> str:
    """Return the one line that says no."""
    assert result.returncode == 1, result.stdout + result.stderr
    text = result.stdout + result.stderr
    assert "Traceback" not in text
    [line] = [line for line in text.splitlines() if line.startswith("error: ")]
    return line


@pytest.fixture(scope="module")
def project(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.dag.conftest import copy_project

    return copy_project(root, tmp_path_factory.mktemp("refusals") / "project")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--config", "modells=[a]"], "unknown key 'modells' at the top level"),
        (["--config", "models=[tiny-lava]"], "models names 'tiny-lava'"),
        (["--config", "splits=[random,random]"], "names nothing twice"),
        (["--config", "mirror=/no/such/folder"], "mirror is '/no/such/folder', which is not a folder"),
    ],
)
def test_bad_configuration(arguments: list[str], words: str, project: Path) -> None:
    run = ["all", "--cores", "1", "--configfile", "config/demo.yaml"]
    assert words in sentence(snakemake(project, *run, *arguments))


def test_repeated_key_in_a_file(project: Path) -> None:
    copy = project / "config/twice.yaml"
    copy.write_text((project / "config/demo.yaml").read_text("utf-8") + "\nrun: other\n", encoding="utf-8")
    assert "key 'run' stands twice; keep one" in sentence(
        snakemake(project, "all", "--configfile", str(copy))
    )


def test_refused_also_when_older_results_exist(demo: Path, tmp_path: Path) -> None:
    """Snakemake calls a file up to date that no rule could make any more; the check comes before."""
    copied = shutil.copytree(demo, tmp_path / "project", symlinks=True)
    shutil.rmtree(copied / "resources/demo/models/tiny-llava")
    result = snakemake(copied, "all", "--cores", "1", "--configfile", "config/demo.yaml")
    assert "where there is no config.json" in sentence(result)


def test_real_run_without_gpu_stops_before_any_job(project: Path) -> None:
    """On a machine without a GPU; where there is one, its absence is played."""
    without = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    if shutil.which("nvidia-smi", path=without):
        pytest.skip("nvidia-smi is in a system folder here, so its absence cannot be played")
    result = snakemake(project, "all", "--cores", "1", "--resources", "gpu=1", PATH=without)
    assert "asks its models on a GPU, and nvidia-smi finds none here" in sentence(result)
    assert not (project / "logs/paper").exists()


def test_dry_run_of_the_real_run_works_anywhere(project: Path) -> None:
    result = snakemake(project, "all", "--cores", "1", "-n")
    assert result.returncode == 0, result.stderr
    assert "ask_model" in result.stdout + result.stderr


def test_without_network_and_mirror_the_missing_host_is_named(project: Path) -> None:
    result = snakemake(project, "all", "--cores", "1", "--configfile", "config/paper-published.yaml")
    assert "cannot be reached" in sentence(result)


def test_a_mirror_that_lacks_a_file_is_named_before_any_job(project: Path, tmp_path: Path) -> None:
    result = snakemake(
        project,
        "all",
        "--cores",
        "1",
        "--configfile",
        "config/paper-published.yaml",
        "--config",
        f"mirror={tmp_path}",
    )
    assert f"the mirror {tmp_path} lacks pope/coco-2023-10/" in sentence(result)


def test_a_second_process_on_the_same_run_is_refused_and_the_lock_dies_with_the_first(fresh: Path) -> None:
    run = ["all", "--cores", "1", "--configfile", "config/demo.yaml"]
    command = [sys.executable, "-m", "snakemake", *run]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(
        command, cwd=fresh, env=environment(fresh), start_new_session=True, **quiet
    ) as first:
        lock = fresh / "results/demo/.lock"
        for _ in range(600):
            if lock.is_file() and lock.read_text(encoding="utf-8"):
                break
            time.sleep(0.1)
        assert f"process {first.pid} is already running this run" in sentence(snakemake(fresh, *run))
        first.send_signal(signal.SIGKILL)
    counts = ["all", "--cores", "2", "--configfile", "config/demo.yaml", "--until", "build_questions"]
    assert snakemake(fresh, *counts).returncode == 0
