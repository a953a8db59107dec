"""Replies, kept as they come where a kill cannot take them: they cost time and often money.

A folder per fingerprint (server, revision, the request without its question), and in it one file to which a
line is added per usable reply. What the server said is kept, not what was made of it, so that records can be
made again by other code without asking again. What is reused is decided by (uid, image hash) alone.
"""

import fcntl
import json
import logging
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from readout_audit.api.reply import Reply, from_json, to_json
from readout_audit.fileio import canonical_json, sha256_text, write_json

LOGGER = logging.getLogger(__name__)

Key = tuple[str, str | None]
"""uid and the hash of the image that was sent; None where none was."""


class ReplyStore:
    """The kept replies of one fingerprint.

    Used as a context manager: inside, no other process on this machine asks the same server, so a limit on
    requests holds for all of them together. The lock dies with the process, however it dies.
    """

    def __init__(self, root: Path, server: str, described: dict[str, Any]) -> None:
        """Name the folder for `described` under `root`; `server` is what processes take turns at."""
        self.folder = root / f"api-{sha256_text(canonical_json(described))[:24]}"
        self._described = described
        self._turn = root / f"api-{sha256_text(server)[:16]}.lock"
        self._open: list[int] = []

    def __enter__(self) -> "ReplyStore":
        self.folder.mkdir(parents=True, exist_ok=True)
        self._take_turn()
        if not (self.folder / "about.json").is_file():
            write_json(self.folder / "about.json", self._described)
        self._replies = self._read()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._open:
            os.close(self._open.pop())

    def _take_turn(self) -> None:
        """Wait until no other process asks this server."""
        lock = os.open(self._turn, os.O_RDWR | os.O_CREAT, 0o666)
        self._open.append(lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            LOGGER.info("another process is asking this server; waiting for it to end")
            fcntl.flock(lock, fcntl.LOCK_EX)

    def _read(self) -> dict[Key, Reply]:
        """Return what is kept, and open the file for more; half a line, left by a kill, is cut off."""
        path = self.folder / "replies.jsonl"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        self._open.append(file)
        self._file = file
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            LOGGER.info("%s: the last reply was cut short and is asked for again", path)
            os.ftruncate(file, whole)
        replies: dict[Key, Reply] = {}
        for number, line in enumerate(data[:whole].split(b"\n")[:-1], start=1):
            try:
                value = json.loads(line)
                replies[value["uid"], value["image_sha256"]] = from_json(value["reply"])
            except (KeyError, TypeError, ValueError) as error:
                LOGGER.warning("%s, line %d is damaged and asked for again (%s)", path, number, error)
        return replies

    def get(self, key: Key) -> Reply | None:
        """Return the kept reply to a question about an image, if there is one."""
        return self._replies.get(key)

    def __len__(self) -> int:
        return len(self._replies)

    def add(self, key: Key, reply: Reply) -> None:
        """Keep a reply; it is on the disk when this returns."""
        uid, sha256 = key
        line = canonical_json({"uid": uid, "image_sha256": sha256, "reply": to_json(reply)}) + "\n"
        left = line.encode("utf-8")
        while left:
            left = left[os.write(self._file, left) :]
        os.fsync(self._file)
        self._replies[key] = reply
