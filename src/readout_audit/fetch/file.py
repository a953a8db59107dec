"""Fetch one pinned file: from the mirror, or from its address."""

import logging
from pathlib import Path

from readout_audit.errors import AuditError
from readout_audit.fetch.download import Patience, download
from readout_audit.fetch.lock import lock_or_refuse, locked
from readout_audit.fetch.mirror import copy_file, in_mirror
from readout_audit.fileio import sha256_file

LOGGER = logging.getLogger(__name__)


def fetch_file(
    name: str,
    output: Path,
    lock: Path,
    *,
    url: str | None,
    mirror: Path | None,
    sha256: str | None = None,
    patience: Patience | None = None,
) -> str:
    """Fetch one file and return its SHA-256.

    Args:
        name: its path inside a mirror; also its name in the lock file.
        output: where it goes, written whole.
        lock: lock file; a file without `sha256` is locked there on the first fetch and must not change later.
        url: its address, used where there is no mirror.
        mirror: mirror folder; with one nothing is asked of the network.
        sha256: hash it must have.
        patience: attempts and timeouts of a download.

    Raises:
        AuditError: the mirror lacks it, it cannot be downloaded, or its hash is not the known one.
    """
    first = sha256 is None and locked(lock, name) is None
    expected = (sha256 or (locked(lock, name) or {}).get("sha256") or "").lower() or None
    if mirror is not None:
        found = _from_mirror(name, output, mirror, expected)
    elif url is not None:
        found = download(url, output, sha256=expected, patience=patience)
    else:
        raise AuditError(
            f"{name}: no address is known for it; put it into a mirror and name that in the config."
        )
    if sha256 is None:
        lock_or_refuse(lock, name, {"sha256": found})
    LOGGER.info("%s: sha256 %s%s", name, found, ", locked on this first fetch" if first else "")
    return found


def _from_mirror(name: str, output: Path, mirror: Path, expected: str | None) -> str:
    """Copy a file from the mirror, checking the bytes that were written."""
    source = in_mirror(mirror, name)
    found = sha256_file(source)
    if expected is not None and found != expected:
        raise AuditError(
            f"{source}: sha256 {expected} expected, {found} found; replace the file in the mirror."
        )
    copy_file(source, output)
    if sha256_file(output) != found:
        output.unlink()
        raise AuditError(f"{source}: changed while it was copied; run the same command again.")
    return found
