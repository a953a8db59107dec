"""What stopped a run is said once more, as the last line."""

import subprocess
import sys
from pathlib import Path

import pytest

from readout_audit.config.onerror import failures
from readout_audit.errors import AuditError
from readout_audit.logs import logging_to

NAMED = """[Mon Nov 30 04:28:34 2026]
Error in rule build_questions:
    jobid: 17
    output: results/mine/questions.parquet
    log: {log} (check log file(s) for error details)
    shell:
        python -m readout_audit.stages.build_questions
        (command exited with non-zero exit code)
"""
SENTENCE = "own/questions.csv, row 3: label 'maybe' is neither yes nor no; mend it."


def stopped(folder: Path, error: Exception) -> Path:
    """The log of a job that an error stopped, and Snakemake's log that names it twice."""
    job, log = folder / "job.log", folder / "snakemake.log"
    with pytest.raises(type(error)), logging_to(job):
        raise error
    log.write_text(2 * NAMED.format(log=job), encoding="utf-8")
    return log


def test_the_sentence_of_a_job_is_repeated_last(tmp_path: Path) -> None:
    log = stopped(tmp_path, AuditError(SENTENCE))
    program = (
        "import sys; from readout_audit.config.onerror import repeat_errors;"
        f"repeat_errors([{str(log)!r}]); print('WorkflowError', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == ["WorkflowError", f"error: {SENTENCE}"]


def test_a_fault_names_the_log_with_its_traceback(tmp_path: Path) -> None:
    log = stopped(tmp_path, ValueError("no"))
    assert set(failures(log)) == {f"a job stopped by a fault; {tmp_path / 'job.log'} has its traceback."}


def test_jobs_that_said_nothing_and_logs_that_are_gone(tmp_path: Path) -> None:
    log = tmp_path / "snakemake.log"
    assert list(failures(log)) == []
    log.write_text(NAMED.format(log=tmp_path / "gone.log"), encoding="utf-8")
    assert list(failures(log)) == []
