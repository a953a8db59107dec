"""A mirror is a folder that holds everything a run fetches; with one, the network is not asked at all."""

import shutil
from pathlib import Path, PurePosixPath

from readout_audit.errors import AuditError
from readout_audit.fileio import replacing


def in_mirror(mirror: Path, relative: str) -> Path:
    """Return the path of a file or folder of the mirror.

    Raises:
        AuditError: the mirror does not hold it, or `relative` leads out of the mirror.
    """
    parts = PurePosixPath(relative)
    if parts.is_absolute() or ".." in parts.parts or "\\" in relative or not parts.parts:
        raise AuditError(
            f"{relative!r} is not a path inside a mirror; give it relative to the mirror folder."
        )
    found = mirror / parts
    if not found.exists():
        raise AuditError(
            f"{found}: not in the mirror; put it there, or set mirror to null to fetch it from the network."
        )
    return found


def copy_file(source: Path, output: Path) -> None:
    """Copy a file's bytes, atomically."""
    try:
        with replacing(output) as temporary:
            shutil.copyfile(source, temporary)
    except OSError as error:
        raise AuditError(f"{source}: cannot be copied to {output} ({error.strerror or error}).") from error


def link_file(source: Path, output: Path) -> None:
    """Make `output` a symbolic link to `source`: for files too large or too many to copy."""
    target = source.resolve()
    if output.is_symlink() and output.resolve() == target:
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.link")
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(target)
    temporary.replace(output)
