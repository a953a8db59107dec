"""SIGKILL of everything at random moments, the same command again, and the same results in the end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.dag.conftest import environment, snakemake

pytestmark = [pytest.mark.dag, pytest.mark.slow]
DEMO = ("all", "--cores", "2", "--configfile", "config/demo.yaml")
MOMENTS = np.random.default_rng(7).uniform(4, 25, size=4)
"""Seconds after which a run is killed: while parsing, drawing pictures, asking, scoring, drawing figures."""


def killed_after(project: Path, seconds: float) -> None:
    """Start the demo and kill its whole process group, jobs included."""
    command = [sys.executable, "-m", "snakemake", *DEMO]
    with subprocess.Popen(
        command,
        cwd=project,
        env=environment(project),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        time.sleep(seconds)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_killed_runs_end_in_the_same_files(demo: Path, fresh: Path) -> None:
    for seconds in MOMENTS:
        killed_after(fresh, float(seconds))
    result = snakemake(fresh, *DEMO)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    for kind in ("questions", "records", "decisions", "scores", "gap", "transitions"):
        expected = sorted((demo / "results/demo" / kind).rglob("*.parquet"))
        assert expected
        for path in expected:
            found = pq.read_table(fresh / path.relative_to(demo))
            whole = pq.read_table(path)
            assert found.equals(whole) and found.schema.metadata == whole.schema.metadata, path
    leftovers = [path for path in (fresh / "results").rglob(".*.tmp") if path.is_file()]
    assert [path for path in leftovers if ".parts" not in path.parts] == []
