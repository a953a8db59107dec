"""Finished work, kept where a kill cannot take it: one small file per call of the engine.

A folder per fingerprint (model, revision, settings, code, candidate ids, software). A part file is written
whole. What is reused is decided by (uid, image hash) alone, so the split, the shard count, the question
file or its order may change without anything being asked twice.

Processes that share the folder take turns by image: a lock on one byte of a lock file, which the operating
system drops when its holder dies, however it dies.
"""

import fcntl
import logging
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from readout_audit.errors import AuditError
from readout_audit.fileio import canonical_json, read_json, read_table, sha256_text, write_json, write_table
from readout_audit.inference.records import Row

LOGGER = logging.getLogger(__name__)

_STALE_SECONDS = 600
"""A temporary file older than this was left by a process that died: a part takes milliseconds to write."""

_LOCK_RANGE = 1 << 40
"""Bytes of the lock file that images are hashed onto; none of them exists."""


def fingerprint(described: dict[str, Any]) -> str:
    """Return the name of the folder for work done under `described`: 24 hex of its hash."""
    return sha256_text(canonical_json(described))[:24]


class PartsStore:
    """The parts of one fingerprint.

    Used as a context manager; leaving it drops its locks.
    """

    def __init__(self, root: Path, described: dict[str, Any], schema: pa.Schema) -> None:
        """Open, or make, the folder for `described` under `root`; its rows are under `schema`."""
        self.schema = schema
        self.folder = root / fingerprint(described)
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / "about.json").is_file():
            write_json(self.folder / "about.json", described)
        self._lock_file = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o666)
        self._seen: set[str] = set()
        self._rows: dict[tuple[str, str], Row] = {}
        self._remove_stale()

    def __enter__(self) -> "PartsStore":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._lock_file)

    def finished(self) -> dict[tuple[str, str], Row]:
        """Return the finished rows by (uid, image hash), those of other processes up to now included.

        A file that cannot be read is named in the log and left out, so that its questions are asked again.
        """
        for path in sorted(self.folder.glob("[!.]*.parquet")):
            if path.name in self._seen:
                continue
            self._seen.add(path.name)
            try:
                part = read_table(path, self.schema, "the part file")
            except AuditError as error:
                LOGGER.warning("%s It is ignored and its questions are asked again.", error)
                continue
            for row in part.to_pylist():
                self._rows[row["uid"], row["image_sha256"]] = row
        return self._rows

    def add(self, rows: Iterable[Row]) -> Path:
        """Write rows as one part, whole or not at all."""
        kept = sorted(rows, key=lambda row: str(row["uid"]))
        content = canonical_json([[row["uid"], row["image_sha256"]] for row in kept])
        path = self.folder / f"{sha256_text(content)[:32]}.parquet"
        write_table(path, pa.Table.from_pylist(kept, schema=self.schema), self.schema)
        return path

    def lock(self, image: str, wait: bool) -> bool:
        """Take the lock of an image; without `wait`, return False where another process holds it."""
        how = fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB)
        try:
            fcntl.lockf(self._lock_file, how, 1, _lock_byte(image))
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno in (11, 13):  # EAGAIN, EACCES: POSIX allows either for a held lock
                return False
            raise
        return True

    def unlock(self, image: str) -> None:
        """Drop the lock of an image."""
        fcntl.lockf(self._lock_file, fcntl.LOCK_UN, 1, _lock_byte(image))

    def facts(self) -> dict[str, Any] | None:
        """Return what the first process that loaded the model found out about it, or None."""
        path = self.folder / "facts.json"
        try:
            value: dict[str, Any] | None = read_json(path, "the model facts") if path.is_file() else None
        except AuditError as error:
            LOGGER.warning("%s It is made again.", error)
            return None
        return value

    def set_facts(self, facts: dict[str, Any]) -> None:
        """Keep what is known about the loaded model, for processes that need not load it."""
        write_json(self.folder / "facts.json", facts)

    def _remove_stale(self) -> None:
        for path in self.folder.glob(".*.tmp"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                    path.unlink()


def _lock_byte(image: str) -> int:
    """Return the byte of the lock file that stands for an image (its name is never made a path)."""
    return int(sha256_text(image)[:16], 16) % _LOCK_RANGE
