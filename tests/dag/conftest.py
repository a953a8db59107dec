"""A copy of the project in which Snakemake really runs, finished once and then shared by the tests."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

Run = Callable[..., "subprocess.CompletedProcess[str]"]
TARGETS = frozenset({"total", "all", "tables", "figures", "scores", "claims", "page", "verified"})
COPIED = ("Snakefile", "config", "workflow", "src", "resources", "profiles", "envs", "pyproject.toml")


def copy_project(root: Path, target: Path) -> Path:
    """Copy what Snakemake needs; what runs left behind stays where it is."""
    target.mkdir(parents=True, exist_ok=True)
    ignored = shutil.ignore_patterns("__pycache__", "fetched", "*.egg-info")
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=ignored)
        else:
            shutil.copy2(source, target / name)
    return target


def environment(project: Path, **more: str) -> dict[str, str]:
    """The environment of a run: the copy's package, the interpreter that runs the tests, and no network."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    blocked = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
    return {
        **os.environ,
        **blocked,
        "PYTHONPATH": str(project / "src"),
        "PATH": path,
        "HF_HUB_OFFLINE": "1",
        **more,
    }


def snakemake(project: Path, *arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run Snakemake in a copy of the project."""
    command = [sys.executable, "-m", "snakemake", *arguments]
    return subprocess.run(
        command, cwd=project, env=environment(project, **more), capture_output=True, text=True, check=False
    )


def planned(result: "subprocess.CompletedProcess[str]") -> dict[str, int]:
    """Return the jobs that a dry run would do, by rule; the target rules are left out."""
    assert result.returncode == 0, result.stdout + result.stderr
    text = result.stdout + result.stderr
    if "Nothing to be done" in text:
        return {}
    table = re.search(r"^job +count\n-+ +-+\n(.*?)\n\n", text, re.DOTALL | re.MULTILINE)
    assert table, text
    counts = {name: int(n) for name, n in re.findall(r"^(\w+) +(\d+)$", table[1], re.MULTILINE)}
    return {
        name: n for name, n in counts.items() if name not in {"total", "all", "tables", "figures", "scores"}
    }


SMALL: dict[str, object] = {
    "models": ["tiny-llava", "tiny-mistral"],
    "extra_cells": [],
    "readouts": ["legacy_2tok", "legacy_8tok", "dynamic_single", "string_parse", "first_token"],
    "tables": ["table_02_protocols", "table_04_readouts", "table_08_corrections", "table_13_confusion"],
    "figures": ["figure_02_confusion", "figure_07_corrections"],
}
"""The demo with two of its models and a few of its tables, so that a run takes seconds; `make demo` runs all of it."""


def change(project: Path, **values: object) -> None:
    """Change keys of the demo's configuration."""
    path = project / "config/demo.yaml"
    changed = yaml.safe_load(path.read_text(encoding="utf-8")) | values
    path.write_text(yaml.safe_dump(changed, sort_keys=False), encoding="utf-8")


def small_project(root: Path, target: Path) -> Path:
    """Copy the project with the small demo."""
    project = copy_project(root, target)
    change(project, **SMALL)
    return project


@pytest.fixture(scope="session")
def demo(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which the demo has run to its end."""
    project = small_project(root, tmp_path_factory.mktemp("demo") / "project")
    result = snakemake(project, "all", "--cores", "2", "--configfile", "config/demo.yaml")
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return project


@pytest.fixture
def fresh(root: Path, tmp_path: Path) -> Path:
    """A copy in which nothing has run."""
    return small_project(root, tmp_path / "project")
