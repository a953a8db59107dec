"""The shipped SLURM profile against a stand-in for sbatch that writes down what it is asked for."""

import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.dag.conftest import snakemake

pytestmark = [pytest.mark.dag, pytest.mark.slow]
pytest.importorskip("snakemake_executor_plugin_slurm")


def stand_in(folder: Path) -> Path:
    """Write an sbatch that notes its arguments and accepts nothing, and the other commands, which say nothing."""
    folder.mkdir()
    for name in ("sbatch", "squeue", "sacct", "scancel", "sinfo", "scontrol", "sacctmgr"):
        noted = f'printf "%s\\n" "$*" >> "{folder / "asked"}"; exit 1' if name == "sbatch" else "exit 0"
        (folder / name).write_text(f"#!/bin/sh\n{noted}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
    return folder


def gpu_requests(line: str) -> list[str]:
    """Return the options of one sbatch call, left of the wrapped command, that ask for GPUs."""
    return re.findall(r"--(?:gpus\S*|gres\S*|ntasks-per-gpu\S*|cpus-per-gpu\S*)", line.split("--wrap")[0])


def test_one_gpu_for_the_gpu_rule_and_none_for_the_others(fresh: Path, tmp_path: Path) -> None:
    config = yaml.safe_load((fresh / "config/demo.yaml").read_text(encoding="utf-8"))
    config["models"] = ["tiny-llava"]
    config["inference"]["device"] = "auto"
    file = fresh / "config/cluster.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    stubs = stand_in(tmp_path / "stubs")
    path = f"{stubs}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    cluster = ("all", "--workflow-profile", "profiles/slurm", "--configfile", str(file))
    assert snakemake(fresh, *cluster, PATH=path).returncode == 1
    local = ("all", "--cores", "2", "--configfile", str(file), "--until", "build_questions", "map_tokens")
    assert snakemake(fresh, *local).returncode == 0
    assert snakemake(fresh, *cluster, PATH=path).returncode == 1
    asked = (stubs / "asked").read_text(encoding="utf-8").splitlines()
    by_rule = {re.search(r"rule_(\w+?)_wildcards", line)[1]: line for line in asked}
    assert {"make_demo_world", "map_tokens", "ask_model"} <= by_rule.keys()
    for rule, line in by_rule.items():
        assert len(gpu_requests(line)) == (1 if rule == "ask_model" else 0), line
        assert (" -p gpu " if rule == "ask_model" else " -p cpu ") in line, line
