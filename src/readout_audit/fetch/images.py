"""The pictures that a run asks about: found, linked or downloaded one by one; a missing one is named, no stop."""

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from readout_audit.contracts import QUESTIONS
from readout_audit.datasets.parse import check_image_name
from readout_audit.errors import AuditError
from readout_audit.fetch.download import Patience, UnavailableError, download
from readout_audit.fetch.mirror import link_file
from readout_audit.fileio import read_table, sha256_file

LOGGER = logging.getLogger(__name__)

PLACEHOLDER = "{image}"
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"RIFF", b"BM", b"II*\x00", b"MM\x00*")
"""How JPEG, PNG, GIF, WebP, BMP and TIFF files begin."""


class Fetched(NamedTuple):
    """Which pictures are there: name -> SHA-256; and which are not: name -> reason."""

    found: dict[str, str]
    missing: dict[str, str]


def images_asked(questions: Iterable[Path]) -> list[str]:
    """Return the image names of question tables, sorted, each once."""
    names: set[str] = set()
    for path in questions:
        table = read_table(path, QUESTIONS, "the question table")
        names |= {check_image_name(name, str(path)) for name in table["image"].to_pylist()}
    return sorted(names)


def from_own_folder(names: Iterable[str], own: Path) -> Fetched:
    """Look the pictures up in a folder of one's own; nothing is copied."""
    return _collect(names, lambda name: own / name, f"not in {own}")


def from_mirror(names: Iterable[str], mirror: Path, pattern: str, folder: Path) -> Fetched:
    """Link the pictures of a mirror into `folder`."""
    check_pattern(pattern)

    def place(name: str) -> Path:
        source = mirror / pattern.replace(PLACEHOLDER, name)
        if source.is_file():
            link_file(source, folder / name)
        return source

    return _collect(names, place, "not in the mirror")


def from_network(
    names: Iterable[str], pattern: str, folder: Path, patience: Patience | None = None
) -> Iterator[tuple[str, str | None]]:
    """Download the pictures that `folder` does not have yet; yield each name with None or why it is missing.

    Raises:
        AuditError: the network fails for good. What was downloaded stays, so a second run goes on from there.
    """
    check_pattern(pattern)
    for name in names:
        if not (folder / name).is_file():
            try:
                download(pattern.replace(PLACEHOLDER, name), folder / name, patience=patience)
            except UnavailableError as error:
                yield name, f"the server answers {error.status}"
                continue
            if not _is_picture(folder / name):
                (folder / name).unlink()
                yield name, "what the server sends is no picture"
                continue
        yield name, None


def downloaded(names: Iterable[str], pattern: str, folder: Path, patience: Patience | None = None) -> Fetched:
    """Download the pictures and hash them; see `from_network`."""
    reasons = dict(from_network(names, pattern, folder, patience))
    there = _collect([name for name, reason in reasons.items() if reason is None], lambda n: folder / n, "")
    missing = {name: reason for name, reason in reasons.items() if reason is not None}
    return Fetched(there.found, missing | there.missing)


def check_pattern(pattern: str) -> None:
    """Refuse an address or path that does not name the picture exactly once."""
    if pattern.count(PLACEHOLDER) != 1:
        raise AuditError(
            f"{pattern!r} must hold {PLACEHOLDER} exactly once, where the image's file name goes."
        )


def _collect(names: Iterable[str], place: Callable[[str], Path], absent: str) -> Fetched:
    """Hash the pictures that are there and say why the others are not."""
    found: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name in names:
        path = place(name)
        try:
            found[name] = sha256_file(path)
        except FileNotFoundError:
            missing[name] = absent
        except OSError as error:
            missing[name] = f"cannot be read ({error.strerror or error})"
    return Fetched(found, missing)


def _is_picture(path: Path) -> bool:
    """Tell whether a file begins as a picture does: servers send pages that say "not found" as files."""
    with path.open("rb") as stream:
        return stream.read(8).startswith(_MAGIC)


def manifest(fetched: Fetched, source: str) -> dict[str, Any]:
    """Return what the manifest of an image set says.

    Raises:
        AuditError: not one of the pictures is there; that is a wrong folder, not a missing picture.
    """
    asked = len(fetched.found) + len(fetched.missing)
    if asked and not fetched.found:
        name, reason = next(iter(sorted(fetched.missing.items())))
        raise AuditError(
            f"none of the {asked} pictures is there ({name}: {reason}); check where they come from."
        )
    for name, reason in sorted(fetched.missing.items()):
        LOGGER.warning("%s: %s; its questions will be invalid", name, reason)
    return {
        "source": source,
        "asked": asked,
        "found": len(fetched.found),
        "missing": [{"image": name, "reason": fetched.missing[name]} for name in sorted(fetched.missing)],
        "sha256": fetched.found,
    }
