"""Trust on first use: what was fetched without a known hash is written down, and a later change is refused."""

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from readout_audit.errors import AuditError
from readout_audit.fileio import read_json, write_json


@contextmanager
def _guarded(lock: Path) -> Iterator[None]:
    """Let one process at a time read and write the lock file."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.with_name(f".{lock.name}.guard").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def read_lock(lock: Path) -> dict[str, dict[str, Any]]:
    """Return name -> facts; empty where nothing was locked yet.

    Raises:
        AuditError: the file is not a lock file.
    """
    if not lock.is_file():
        return {}
    entries = read_json(lock, "the lock file")
    if not isinstance(entries, dict) or not all(isinstance(facts, dict) for facts in entries.values()):
        raise AuditError(f"{lock}: not a lock file; restore it, or remove it to trust what is fetched next.")
    return entries


def locked(lock: Path, name: str) -> dict[str, Any] | None:
    """Return the locked facts of `name`, None where it was never fetched."""
    return read_lock(lock).get(name)


def lock_or_refuse(lock: Path, name: str, facts: Mapping[str, Any]) -> None:
    """Write down `facts` of `name`, or check that they are the ones written down before.

    Raises:
        AuditError: they differ; the sentence names the fact, both values and the way to accept the new one.
    """
    wanted = json.loads(json.dumps(facts))  # as it comes back from the file
    with _guarded(lock):
        entries = read_lock(lock)
        known = entries.get(name)
        if known is None:
            write_json(lock, {**entries, name: wanted})
            return
    if known != wanted:
        key = next(key for key in sorted({*known, *wanted}) if known.get(key) != wanted.get(key))
        raise AuditError(
            f"{name}: {key} was {_shown(known.get(key))} when first fetched and is {_shown(wanted.get(key))} now; "
            f"if the change is meant, remove the entry {name!r} from {lock}."
        )


def _shown(value: Any) -> str:
    """Return a fact as it stands in the sentence, shortened."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= 80 else f"{text[:77]}..."
