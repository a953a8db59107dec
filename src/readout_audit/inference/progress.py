"""How far the asking is: a live bar in a terminal, plain lines in a log."""

import logging
import resource
import sys
import time
from types import TracebackType

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from readout_audit.logs import FILE_ONLY

LOGGER = logging.getLogger(__name__)

_LOG_SECONDS = 30.0


class AskingProgress:
    """Counts answered questions.

    In a terminal a bar with questions/s, time left and memory. In the log a plain line every thirty seconds and
    one at the end.
    """

    def __init__(self, total: int, what: str) -> None:
        """Expect `total` questions; `what` names the cell."""
        self.total, self.what, self.done = total, what, 0
        self.started = self._logged = time.monotonic()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "AskingProgress":
        if sys.stderr.isatty():
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[memory]}"),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(self.what, total=self.total, rate="", memory="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        LOGGER.info("%s: %s", self.what, self.line())

    def advance(self, questions: int) -> None:
        """Count `questions` more as answered."""
        self.done += questions
        if self._bar is not None and self._task is not None:
            self._bar.update(
                self._task,
                completed=self.done,
                rate=f"{self.rate():.1f} questions/s",
                memory=f"{peak_memory() / 2**30:.1f} GiB",
            )
        if time.monotonic() - self._logged >= _LOG_SECONDS:
            self._logged = time.monotonic()
            LOGGER.info("%s: %s", self.what, self.line(), extra={FILE_ONLY: self._bar is not None})

    def rate(self) -> float:
        """Return questions per second so far."""
        return self.done / max(time.monotonic() - self.started, 1e-9)

    def line(self) -> str:
        """Return one line of plain text about how far it is."""
        left = (self.total - self.done) / self.rate() if self.done else float("nan")
        remaining = f", about {left:.0f} s left" if self.done and self.done < self.total else ""
        memory = f"{peak_memory() / 2**30:.1f} GiB"
        return f"{self.done} of {self.total} questions, {self.rate():.2f}/s{remaining}, peak {memory}"


def peak_memory() -> int:
    """Return the largest memory use so far in bytes: of the GPU where there is one, else of the process."""
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
