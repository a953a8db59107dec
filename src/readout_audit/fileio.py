"""Files are written whole or not at all, and read with one clear sentence when they cannot be.

A rename within one directory is atomic, so a reader sees the old file, the new file, or none.
The bytes depend on the content alone: no time, host, path or commit goes into them.
"""

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from readout_audit.errors import AuditError

METADATA_KEY = b"readout_audit"
"""Key of the Arrow schema metadata under which a file keeps its JSON description."""

_NAMED_COLUMNS = 8
"""So many differing columns are named; another kind of file has dozens."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success flush it to disk and rename it onto `path`.

    On any exception the temporary file is removed and `path` is left as it was.

    Raises:
        AuditError: the folder cannot be made or written to, or the disk is full.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise AuditError(f"{path}: cannot be written ({error.strerror}); name another place.") from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        if error.errno in _CANNOT_HOLD:
            raise AuditError(
                f"{path}: cannot be written ({error.strerror}); make room, or name another place."
            ) from error
        raise
    finally:
        temporary.unlink(missing_ok=True)


_CANNOT_HOLD = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EISDIR, errno.ENOTEMPTY}
"""Errors that speak of the place, not of what is written: a full disk, a folder where the file should go."""


def _umask() -> int:
    """Return the process's umask (it can only be read by setting it)."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, line ends as they are, atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON with sorted keys, atomically; NaN and infinity are refused."""
    write_text(path, json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: Path, what: str) -> Any:
    """Read a JSON file; `what` names it in the error ("the token map")."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise AuditError(f"{path}: {what} cannot be read ({error.strerror or error}).") from error
    except RecursionError as error:
        raise AuditError(f"{path}: {what} is not usable JSON (nested too deeply).") from error
    except ValueError as error:  # no JSON, no UTF-8, or a number of thousands of digits
        raise AuditError(f"{path}: {what} is not valid JSON ({error}).") from error


def canonical_json(value: Any) -> str:
    """Return the one JSON text of `value` that hashes are taken of: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256_file(path: Path) -> str:
    """Return the hex SHA-256 of a file's bytes."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sha256_text(text: str) -> str:
    """Return the hex SHA-256 of a text's UTF-8 bytes."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def write_table(
    path: Path, table: pa.Table, schema: pa.Schema, metadata: dict[str, Any] | None = None
) -> None:
    """Write `table` as Parquet under exactly `schema`, with `metadata` as JSON beside it, atomically.

    Raises:
        AuditError: a column is missing, surplus or of a type that does not cast without loss.
    """
    if sorted(table.column_names) != sorted(schema.names):
        missing = sorted(set(schema.names) - set(table.column_names))
        surplus = sorted(set(table.column_names) - set(schema.names))
        raise AuditError(f"{path}: not written, missing columns {missing}, surplus columns {surplus}.")
    cast = table.select(schema.names).cast(schema)
    described = {METADATA_KEY: canonical_json(metadata).encode()} if metadata is not None else {}
    with replacing(path) as temporary:
        pq.write_table(cast.replace_schema_metadata(described), temporary, compression="zstd")


def read_table(path: Path, schema: pa.Schema, what: str) -> pa.Table:
    """Read a Parquet file that must have exactly the columns and types of `schema`.

    Raises:
        AuditError: the file is missing, is no Parquet file, or has other columns.
    """
    try:
        table = pq.read_table(path)
    except FileNotFoundError as error:
        raise AuditError(f"{path}: {what} is not there.") from error
    except (OSError, pa.ArrowInvalid) as error:
        raise AuditError(
            f"{path}: {what} is not a readable Parquet file ({str(error).rstrip('.')}); copy it or make it again."
        ) from error
    if table.schema.remove_metadata() != schema.remove_metadata():
        differing = sorted(
            name
            for name in {*table.schema.names, *schema.names}
            if name not in table.schema.names
            or name not in schema.names
            or table.schema.field(name) != schema.field(name)
        )
        named = ", ".join(differing[:_NAMED_COLUMNS]) or "their order"
        more = f" and {len(differing) - _NAMED_COLUMNS} more" if len(differing) > _NAMED_COLUMNS else ""
        raise AuditError(
            f"{path}: {what} has other columns than this version writes ({named}{more}); make it again."
        )
    return table


def table_metadata(table: pa.Table) -> dict[str, Any]:
    """Return the JSON description that `write_table` put beside the rows (empty where there is none)."""
    raw = (table.schema.metadata or {}).get(METADATA_KEY)
    return json.loads(raw) if raw else {}
