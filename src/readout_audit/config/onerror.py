"""What stopped a run, once more: the last thing on the terminal, below what Snakemake says of the failed jobs."""

import atexit
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

_JOB_LOG = re.compile(r"^ +log: (.+?) \(check log file", re.MULTILINE)
_ERROR = re.compile(r" ERROR readout_audit: (.*)$", re.MULTILINE)
_FAULT = "stopped by a fault"
"""What `logs.logging_to` writes above the traceback of anything but an `AuditError`."""


def repeat_errors(logs: Sequence[str]) -> None:
    """Print the sentence of every failed job when the process ends, after Snakemake's own last words.

    Args:
        logs: the log files that Snakemake wrote.
    """
    sentences = dict.fromkeys(sentence for log in logs for sentence in failures(Path(log)))
    if sentences:
        atexit.register(print, "\n".join(f"error: {sentence}" for sentence in sentences), file=sys.stderr)


def failures(log: Path) -> Iterator[str]:
    """Yield why the jobs failed that a Snakemake log names, as their own logs say it."""
    if not log.is_file():
        return
    for name in _JOB_LOG.findall(log.read_text(encoding="utf-8", errors="replace")):
        path = Path(name)
        said = _ERROR.findall(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else []
        if said:
            yield f"a job {_FAULT}; {path} has its traceback." if said[-1] == _FAULT else said[-1]
