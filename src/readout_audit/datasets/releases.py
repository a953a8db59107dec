"""Tell releases apart: by the bytes of a file, and by what it asks when the bytes were rewritten.

POPE's COCO files changed at least four times under one name. Answers to one release scored against another
give numbers that mean nothing (17 of 2,910 ids of the May-2023 random split still mean the same question), so
every file is named before it is used.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from readout_audit.datasets.parse import QuestionRow
from readout_audit.errors import AuditError
from readout_audit.fileio import canonical_json, sha256_text


class KnownFile(NamedTuple):
    """One file of a release: what it is, the two hashes it is recognised by, and its images' name space.

    None where not known.
    """

    release: str
    split: str
    sha256: str | None
    content_sha256: str | None
    image_namespace: str | None = None

    @property
    def name(self) -> str:
        """Release and split, for people."""
        return f"{self.release} {self.split}"


def content_sha256(rows: Iterable[QuestionRow]) -> str:
    """Hash what a file asks: id, image, question and label of every row, whatever the format or order.

    A copy with other line ends, another key order, or as an array instead of lines has the same hash; a
    changed spelling, label or id has another.
    """
    asked = sorted([row.question_id, row.image, row.question, row.label] for row in rows)
    return sha256_text(canonical_json(asked))


def known_files(config: Mapping[str, Any]) -> list[KnownFile]:
    """List the files of `known_datasets` and `known_labels` (config/datasets.yaml), sorted."""
    releases = {**(config.get("known_datasets") or {}), **(config.get("known_labels") or {})}
    return [
        KnownFile(
            release,
            split,
            entry.get("sha256"),
            entry.get("content_sha256"),
            releases[release].get("image_namespace"),
        )
        for release in sorted(releases)
        for split, entry in sorted(releases[release]["splits"].items())
    ]


def read_known_files(path: Path) -> list[KnownFile]:
    """Read the known releases from a YAML file such as config/datasets.yaml.

    Raises:
        AuditError: the file cannot be read or has another form.
    """
    try:
        return known_files(yaml.safe_load(Path(path).read_text(encoding="utf-8")))
    except OSError as error:
        raise AuditError(
            f"{path}: the list of known releases cannot be read ({error.strerror or error})."
        ) from error
    except (yaml.YAMLError, AttributeError, KeyError, TypeError) as error:
        raise AuditError(
            f"{path}: not a list of known releases ({type(error).__name__}: {error})."
        ) from error


def recognise_bytes(sha256: str, known: Iterable[KnownFile]) -> list[KnownFile]:
    """Return the known files with exactly these bytes; one file may stand in two releases."""
    return [file for file in known if file.sha256 == sha256]


def recognise_content(rows: Iterable[QuestionRow], known: Iterable[KnownFile]) -> list[KnownFile]:
    """Return the known files that ask exactly this; see `content_sha256`."""
    found = content_sha256(rows)
    return [file for file in known if file.content_sha256 == found]


def describe(found: Iterable[KnownFile]) -> str:
    """Name the releases of a file in one phrase, for messages."""
    return " and ".join(file.name for file in found) or "no known release"
