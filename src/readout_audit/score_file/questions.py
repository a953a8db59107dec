"""Question files given on the command line: which release and split each is, by its bytes or what it asks."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from readout_audit.contracts import QUESTIONS
from readout_audit.datasets.parse import QuestionRow, read_questions
from readout_audit.datasets.questions import question_uid
from readout_audit.datasets.releases import (
    KnownFile,
    content_sha256,
    read_known_files,
    recognise_bytes,
    recognise_content,
)
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, sha256_file
from readout_audit.score_file.columns import SPLIT_KEYS, plain_name

KNOWN_RELEASES = Path(__file__).resolve().parents[3] / "config" / "datasets.yaml"
"""The list of releases, where the package runs from its repository."""

ENDINGS = (".json", ".jsonl", ".csv", ".parquet")
USUAL_SPLITS = ("adversarial", "popular", "random")

MOST_FOLDERS = 8
"""Folders that a sentence names."""

NAMESPACE = "given"
"""Stands for the images that all files of one call are about."""

Key = tuple[str, str]
"""(image, question)"""


class SplitFile(NamedTuple):
    """The questions of one split of one release.

    Attributes:
        path: the file.
        split: its split, from the known releases, else from its name.
        releases: the releases it is a file of; a folder's name where it is of none.
        recognised: whether `releases` come from the list of known releases.
        rows: its questions.
        keys: (image, question) of each row.
        namespace: name space of its images, where it is known: the same names mean other questions elsewhere.
    """

    path: Path
    split: str
    releases: frozenset[str]
    recognised: bool
    rows: tuple[QuestionRow, ...]
    keys: tuple[Key, ...]
    namespace: str | None = None

    @property
    def name(self) -> str:
        """Release and split, for people."""
        return f"{self.split} of {release_name(self.releases)}"


class Asked(NamedTuple):
    """What was asked: split files, and (image, question, split) of each id of a key file, if one was given."""

    files: list[SplitFile]
    ids: Mapping[str, tuple[str, str, str | None]]


def release_name(releases: frozenset[str]) -> str:
    """Return the releases in one phrase: a file may be the same in several."""
    return " = ".join(sorted(releases)) or "several releases"


def known_releases(path: Path | None = None) -> list[KnownFile]:
    """Return the known files; none where the package runs without its repository and no list is given."""
    if path is None and not KNOWN_RELEASES.is_file():
        return []
    return read_known_files(path or KNOWN_RELEASES)


def read_asked(paths: Sequence[Path], known: Sequence[KnownFile]) -> Asked:
    """Read every question file among `paths` (a folder stands for the question files in it).

    Two files that ask the same are taken once, as files of both their releases.

    Raises:
        AuditError: a path has no question files, or one cannot be read.
    """
    files: dict[str, SplitFile] = {}
    ids: dict[str, tuple[str, str, str | None]] = {}
    for path in [file for given in paths for file in _question_files(given)]:
        if key_rows := _key_file(path):
            ids |= key_rows
            continue
        for file in _split_files(path, known):
            content = content_sha256(file.rows) + file.split
            if content in files:
                file = file._replace(releases=file.releases | files[content].releases)
            files[content] = file
    if not files:
        raise AuditError(
            f"{', '.join(map(str, paths)) or '--questions'}: no question file with labels is there."
        )
    return Asked(list(files.values()), ids)


def _question_files(path: Path) -> list[Path]:
    """Return the file, or the question files of a folder, sorted."""
    if not path.exists():
        raise AuditError(
            f"{path}: no such file or folder; name a question file, or the folder that holds them."
        )
    if not path.is_dir():
        return [path]
    found = _in_folder(path)
    if not found:
        within = sorted(folder.name for folder in path.iterdir() if folder.is_dir() and _in_folder(folder))
        remedy = (
            f"give the one of the release that was asked: {_listed(within)}"
            if within
            else "give the one that does"
        )
        raise AuditError(
            f"{path}: the folder itself holds no question file ({', '.join(ENDINGS)}); {remedy}."
        )
    return found


def _in_folder(path: Path) -> list[Path]:
    """Return the files of a folder that end as question files do, sorted."""
    return sorted(file for file in path.iterdir() if file.is_file() and file.suffix.lower() in ENDINGS)


def _listed(folders: Sequence[str]) -> str:
    """Return the first few names of a list in one phrase."""
    more = len(folders) - MOST_FOLDERS
    return ", ".join(folders[:MOST_FOLDERS]) + (f" or one of {more} more" if more > 0 else "")


def _split_files(path: Path, known: Sequence[KnownFile]) -> list[SplitFile]:
    """Read one question file; our own question table may hold several splits."""
    if path.suffix.lower() == ".parquet":
        return _from_table(path)
    rows = read_questions(path).rows
    found = recognise_bytes(sha256_file(path), known) or recognise_content(rows, known)
    splits = {file.split for file in found}
    split = splits.pop() if len(splits) == 1 else split_of_name(path)
    releases = frozenset(file.release for file in found) or frozenset({path.resolve().parent.name})
    spaces = {file.image_namespace for file in found}
    namespace = spaces.pop() if len(spaces) == 1 else None
    return [_split_file(path, split, releases, bool(found), rows)._replace(namespace=namespace)]


def _split_file(
    path: Path, split: str, releases: frozenset[str], recognised: bool, rows: tuple[QuestionRow, ...]
) -> SplitFile:
    """Return a split file with its keys."""
    keys = tuple((row.image, row.question) for row in rows)
    return SplitFile(path, split, releases, recognised, rows, keys)


def split_of_name(path: Path) -> str:
    """Return the usual split that a file name ends in, else the whole name without its ending."""
    stem = path.stem.lower()
    return next((split for split in USUAL_SPLITS if stem.endswith(split)), path.stem)


def _from_table(path: Path) -> list[SplitFile]:
    """Return the splits of one of our own question tables."""
    table = read_table(path, QUESTIONS, "the question table")
    by_split: dict[tuple[str, str], list[QuestionRow]] = {}
    for row in table.to_pylist():
        fields = {name: row[name] for name in QuestionRow._fields}
        by_split.setdefault((row["dataset"], row["split"]), []).append(QuestionRow(**fields))
    return [
        _split_file(path, split, frozenset({dataset}), True, tuple(rows))
        for (dataset, split), rows in sorted(by_split.items())
    ]


def _key_file(path: Path) -> dict[str, tuple[str, str, str | None]]:
    """Return id -> (image, question, split) of a file without labels, such as LLaVA's; empty for any other."""
    try:
        with path.open(encoding="utf-8-sig") as stream:
            first = json.loads(stream.readline())
            if (
                not isinstance(first, dict)
                or "label" in first
                or not {"question_id", "image", "text"} <= first.keys()
            ):
                return {}
            rows = [first, *(json.loads(line) for line in stream if line.strip())]
    except (OSError, ValueError):
        return {}  # read_questions says what is wrong with the file
    ids: dict[str, tuple[str, str, str | None]] = {}
    for number, row in enumerate(rows, start=1):
        where = f"{path}, line {number}"
        question_id, entry = _key_row(row, where)
        if ids.setdefault(question_id, entry) != entry:
            raise AuditError(f"{where}: question_id {question_id} stands twice, with different questions.")
    return ids


def _key_row(row: Any, where: str) -> tuple[str, tuple[str, str, str | None]]:
    """Return id and (image, question, split) of one row of a key file."""
    if not isinstance(row, dict) or not isinstance(row.get("text"), str) or "question_id" not in row:
        raise AuditError(f"{where}: question_id, image and text are expected.")
    split = next((row[key] for key in SPLIT_KEYS if isinstance(row.get(key), str)), None)
    return str(row["question_id"]), (plain_name(row.get("image"), where), row["text"], split)


def question_table(files: Sequence[SplitFile], rows: Sequence[Sequence[int]], dataset: str) -> pa.Table:
    """Return the given rows of the split files under `contracts.QUESTIONS`, file after file."""
    columns: dict[str, list[Any]] = {name: [] for name in QUESTIONS.names}
    for file, chosen in zip(files, rows, strict=True):
        for row in (file.rows[index] for index in chosen):
            for name in QuestionRow._fields:
                columns[name].append(getattr(row, name))
            columns["uid"].append(question_uid(NAMESPACE, row.image, row.question))
            columns["split"].append(file.split)
    n = len(columns["uid"])
    columns |= {"dataset": [dataset] * n, "image_namespace": [NAMESPACE] * n}
    return pa.table(columns, schema=QUESTIONS)
