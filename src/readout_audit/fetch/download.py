"""Download one file over HTTP: resumed where it stopped, retried when the server falters, whole or not at all."""

import errno
import fcntl
import json
import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from readout_audit.errors import AuditError
from readout_audit.fileio import sha256_file, write_json

LOGGER = logging.getLogger(__name__)

CHUNK = 1 << 14
"""Bytes per step; what a broken connection loses is less than one."""
DISK_MARGIN = 64 << 20
"""Bytes that stay free on the disk after a download."""

_BUSY = frozenset({408, 425, 429, 500, 502, 503, 504})
_HEADERS = {"Accept-Encoding": "identity", "User-Agent": "readout-audit"}


class UnavailableError(AuditError):
    """The server says that it does not have the file, or does not give it; `status` is its answer."""

    def __init__(self, sentence: str, status: int) -> None:
        super().__init__(sentence)
        self.status = status


class _TryAgainError(Exception):
    """Something that may pass: a busy server, a broken connection, a body that ended early."""


@dataclass(frozen=True)
class Patience:
    """How long to try: attempts, seconds before the second one (then doubled), connect and read timeouts."""

    attempts: int = 5
    wait: float = 1.0
    longest_wait: float = 60.0
    timeout: tuple[float, float] = (10.0, 60.0)


def download(url: str, path: Path, *, sha256: str | None = None, patience: Patience | None = None) -> str:
    """Download `url` to `path` and return its SHA-256.

    What arrives is kept beside `path` (`.name.part`) and goes on where it stopped after an interruption, if
    the server can say that the file is still the same one or `sha256` will.

    Args:
        url: http or https.
        path: where the file goes; replaced only by a whole file.
        sha256: hash the file must have; None takes it as it comes.
        patience: attempts and timeouts.

    Raises:
        UnavailableError: the server refuses (404 and the like).
        AuditError: the network fails for good, the disk is full, or the hash is another one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = _Partial(path.with_name(f".{path.name}.part"), url)
    with partial.locked():
        resumed = _fill(partial, url, patience or Patience(), trusted=sha256 is not None)
        found = sha256_file(partial.path)
        if sha256 is not None and found != sha256 and resumed:
            # The part that was there may be of another file; the second try starts from nothing.
            partial.forget()
            _fill(partial, url, patience or Patience(), trusted=True)
            found = sha256_file(partial.path)
        if sha256 is not None and found != sha256:
            partial.forget()
            raise AuditError(
                f"{url}: sha256 {sha256} expected, {found} found; the published file was changed or is damaged."
            )
        partial.path.replace(path)
        partial.forget()
    return found


class _Partial:
    """A download under way: the bytes so far, and what the server said the file is."""

    def __init__(self, path: Path, url: str) -> None:
        self.path = path
        self.note = path.with_name(f"{path.name}.json")
        self.url = url

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second process from writing the same bytes; the lock dies with the process."""
        guard = self.path.with_name(f"{self.path.name}.lock")
        with guard.open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise AuditError(
                    f"{self.path}: another process is downloading this file; wait for it."
                ) from error
            try:
                yield
            finally:
                guard.unlink(missing_ok=True)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self.path.stat().st_size if self.path.is_file() else 0

    def described(self) -> dict[str, str | None] | None:
        """Return the note of a part of this url, None where there is none."""
        try:
            note: dict[str, str | None] = json.loads(self.note.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return note if note.get("url") == self.url else None

    @property
    def validator(self) -> str | None:
        """What `If-Range` needs: a strong ETag or a date."""
        return (self.described() or {}).get("validator")

    def begin(self, response: requests.Response) -> None:
        """Forget earlier bytes and remember what the server says the file is."""
        etag = response.headers.get("ETag", "")
        validator = etag if etag and not etag.startswith("W/") else response.headers.get("Last-Modified")
        self.forget()
        write_json(self.note, {"url": self.url, "validator": validator})

    def forget(self) -> None:
        """Remove the part and its note."""
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)


def _fill(partial: _Partial, url: str, patience: Patience, *, trusted: bool) -> bool:
    """Bring the part to its full length; return whether any of it was there before this call."""
    if partial.described() is None:
        partial.forget()
    before = partial.size > 0
    wait = patience.wait
    for attempt in range(1, patience.attempts + 1):
        try:
            _request(partial, url, patience, trusted=trusted)
            return before
        except (
            requests.ConnectionError,
            requests.Timeout,
            requests.exceptions.ChunkedEncodingError,
        ) as error:
            reason = _plain(error)
        except _TryAgainError as error:
            reason = str(error)
        except requests.RequestException as error:
            raise AuditError(f"{url}: cannot be fetched ({_plain(error)}).") from error
        if attempt < patience.attempts:
            LOGGER.info("%s: %s; again in %.1f s", url, reason, wait)
            time.sleep(wait)
            wait = min(2 * wait, patience.longest_wait)
    raise AuditError(
        f"{url}: cannot be fetched after {patience.attempts} attempts ({reason}); check the network or give a "
        f"mirror, then run the same command again: what has arrived is kept."
    )


def _request(partial: _Partial, url: str, patience: Patience, *, trusted: bool) -> None:
    """Ask once for what is missing and write it."""
    have = partial.size
    validator = partial.validator
    headers = dict(_HEADERS)
    if have and (validator or trusted):
        headers["Range"] = f"bytes={have}-"
        if validator:
            headers["If-Range"] = validator
    with requests.get(url, headers=headers, stream=True, timeout=patience.timeout) as response:
        if response.status_code in _BUSY:
            raise _TryAgainError(f"the server answers {response.status_code}")
        if response.status_code == 416:  # nothing is left to send, or the part is longer than the file
            if _total(response) == have:
                return
            partial.forget()
            raise _TryAgainError("the part that was there does not fit the file")
        if response.status_code not in (200, 206):
            raise UnavailableError(f"{url}: the server answers {response.status_code}.", response.status_code)
        if response.status_code == 206 and not _continues(response, have):
            partial.forget()
            raise _TryAgainError("the server sent another part than the one asked for")
        if response.status_code == 200:
            partial.begin(response)
        _write(partial, response)


def _continues(response: requests.Response, have: int) -> bool:
    """Tell whether a partial answer begins where the part ends."""
    return response.headers.get("Content-Range", "").startswith(f"bytes {have}-")


def _total(response: requests.Response) -> int | None:
    """Return the full length that a Content-Range header states, None where it does not."""
    total = response.headers.get("Content-Range", "").rpartition("/")[2]
    return int(total) if total.isdigit() else None


def _write(partial: _Partial, response: requests.Response) -> None:
    """Append the body, checking room before and length after."""
    length = response.headers.get("Content-Length", "")
    expected = int(length) if length.isdigit() else None
    check_room(partial.path.parent, expected or 0)
    written = 0
    try:
        with partial.path.open("ab") as stream:
            for chunk in response.iter_content(CHUNK):
                written += stream.write(chunk)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise AuditError(
                f"{partial.path}: the disk is full; make room, then run the same command again."
            ) from error
        raise
    if expected is not None and written != expected:
        raise _TryAgainError(f"the body ended after {written} of {expected} bytes")


def check_room(folder: Path, needed: int) -> None:
    """Raise an `AuditError` where `needed` bytes and a margin do not fit on the disk of `folder`."""
    free = shutil.disk_usage(folder).free
    if free < needed + DISK_MARGIN:
        raise AuditError(
            f"{folder}: {needed / 1e9:.2f} GB are needed and {free / 1e9:.2f} GB are free; make room on that disk."
        )


def _plain(error: Exception) -> str:
    """Return the innermost reason of a network error in one line."""
    text = str(error.args[0] if error.args else error).split("\n")[0]
    return text if len(text) <= 160 else f"{text[:157]}..."
