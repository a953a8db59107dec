"""Logging for stages: everything to the stage's log file, one sentence to people, tracebacks never lost."""

import argparse
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from readout_audit.errors import AuditError

LOGGER = logging.getLogger("readout_audit")
FILE_ONLY = "file_only"
"""Attribute of records (`extra={FILE_ONLY: True}`) that people see in another form."""

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class StandardError(logging.StreamHandler[TextIO]):
    """Writes to whatever `sys.stderr` is at the moment, so that lines go above a progress bar and not into it.

    Records marked FILE_ONLY are left to the log file: a terminal shows the same as a bar.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        if not getattr(record, FILE_ONLY, False):
            self.stream = sys.stderr
            super().emit(record)


@contextmanager
def logging_to(path: Path | None) -> Iterator[logging.Logger]:
    """Send the package's log to standard error and, when given, to the file `path`.

    An exception that leaves the block is written to the file with its traceback; an `AuditError` is
    written as its sentence alone. Either goes on to the caller.
    """
    handlers: list[logging.Handler] = [StandardError()]
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handlers.append(logging.FileHandler(path, mode="w", encoding="utf-8"))
    for handler in handlers:
        handler.setFormatter(logging.Formatter(FORMAT))
        LOGGER.addHandler(handler)
    before, LOGGER.propagate = LOGGER.level, False
    LOGGER.setLevel(logging.INFO)
    started = time.monotonic()
    try:
        yield LOGGER
        LOGGER.info("finished in %.1f s", time.monotonic() - started)
    except AuditError as error:
        for handler in handlers[1:]:
            handler.handle(LOGGER.makeRecord(LOGGER.name, logging.ERROR, "", 0, str(error), (), None))
        raise
    except Exception:
        for handler in handlers[1:]:
            record = LOGGER.makeRecord(
                LOGGER.name, logging.ERROR, "", 0, "stopped by a fault", (), sys.exc_info()
            )
            handler.handle(record)
        raise
    finally:
        LOGGER.setLevel(before)
        for handler in handlers:
            LOGGER.removeHandler(handler)
            handler.close()


def stage_main(main: Callable[[Sequence[str]], int], argv: Sequence[str] | None = None) -> int:
    """Run a stage's `main` under its log and return its exit status.

    `--log FILE` is taken from the arguments here; `main` gets the rest. An `AuditError` becomes its
    sentence on standard error and status 1; any other exception keeps its traceback.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--log", type=Path)
    known, rest = parser.parse_known_args(sys.argv[1:] if argv is None else list(argv))
    try:
        with logging_to(known.log):
            return main(rest)
    except AuditError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


@contextmanager
def script_log(log: Sequence[str]) -> Iterator[logging.Logger]:
    """Like `logging_to`, for workflow scripts; `log` is the rule's list, an `AuditError` ends the script."""
    try:
        with logging_to(Path(log[0]) if log else None) as logger:
            yield logger
    except AuditError as error:
        raise SystemExit(f"error: {error}") from error
