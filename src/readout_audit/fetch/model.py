"""Fetch a checkpoint: the files of one locked commit, into a folder of ours; no code, no shared cache.

What a hub repository may hold beside data (Python files, pickled weights) is not fetched. Weights that exist only
pickled are fetched where the model's entry allows it, read with `torch.load(weights_only=True)`, and kept as
safetensors.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from readout_audit.errors import AuditError
from readout_audit.fetch.download import check_room
from readout_audit.fetch.lock import lock_or_refuse, locked
from readout_audit.fetch.mirror import in_mirror, link_file
from readout_audit.fileio import sha256_file

LOGGER = logging.getLogger(__name__)

_COMMIT = re.compile(r"[0-9a-f]{40}")
_DATA = frozenset({".json", ".safetensors", ".model", ".txt", ".jinja"})
_PICKLED = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin")
_PICKLED_INDEX = "pytorch_model.bin.index.json"
_NOT_OURS = frozenset(
    {"training_args.json", "trainer_state.json", "README.txt", "LICENSE.txt", _PICKLED_INDEX}
)
PARTS = "pickled"
"""Subfolder of a checkpoint folder that pickled shards go to; nothing is loaded from it but by the conversion."""


class RemoteFile(NamedTuple):
    """One file of a repository: name, size in bytes, SHA-256 where the hub states one (large files)."""

    name: str
    size: int
    sha256: str | None


def check_revision(model: str, revision: str | None) -> None:
    """Refuse a revision that can move: a branch or a tag, or a short commit.

    Raises:
        AuditError: it is neither None nor 40 hex digits.
    """
    if revision is not None and not _COMMIT.fullmatch(revision):
        raise AuditError(
            f"model {model}: revision {revision!r} can change under the same name; give a full 40-digit commit, "
            f"or null to lock the newest one on the first fetch."
        )


def wanted_files(files: Iterable[RemoteFile], *, pickled: bool) -> list[RemoteFile]:
    """Return the files to fetch, sorted: data of the top folder, and weights in one form only.

    Args:
        files: everything the repository holds at the commit.
        pickled: whether pickled weights may be fetched; they are only where there are no safetensors.

    Raises:
        AuditError: there are no weights in a form that may be fetched.
    """
    top = sorted(file for file in files if "/" not in file.name)
    kept = [file for file in top if Path(file.name).suffix in _DATA and file.name not in _NOT_OURS]
    if any(file.name.endswith(".safetensors") for file in kept):
        return kept
    shards = [file for file in top if _PICKLED.fullmatch(file.name) or file.name == _PICKLED_INDEX]
    if not any(_PICKLED.fullmatch(file.name) for file in shards):
        raise AuditError("the repository has no safetensors weights and no pickled ones; choose another.")
    if not pickled:
        raise AuditError(
            "the repository has pickled weights only; to fetch and convert them set `pickled: true` in its entry."
        )
    return [*kept, *shards]


def fetch_from_hub(
    model: str,
    repository: str,
    revision: str | None,
    folder: Path,
    lock: Path,
    *,
    pickled: bool,
    endpoint: str | None = None,
) -> dict[str, Any]:
    """Fetch a checkpoint from the hub and return its manifest.

    A null revision is resolved once and locked; later fetches stay at that commit. Interrupted downloads go on
    where they stopped. `endpoint` is the hub's address, None for its client's own (which HF_ENDPOINT sets).

    Raises:
        AuditError: the hub cannot be reached or does not give the repository, there is no room, or a file is not
            the one that was locked.
    """
    check_revision(model, revision)
    known = locked(lock, f"models/{model}") or {}
    if known and known["repository"] != repository:
        raise AuditError(
            f"models/{model}: {known['repository']} was fetched first and {repository} is asked for now; "
            f"if the change is meant, remove the entry 'models/{model}' from {lock}."
        )
    commit, listed = list_repository(repository, revision or known.get("revision"), endpoint)
    files = wanted_files(listed, pickled=pickled)
    folder.mkdir(parents=True, exist_ok=True)
    check_room(folder, _still_needed(files, folder))
    hashes = {file.name: _fetch_one(repository, commit, file, folder, endpoint) for file in files}
    return _finish(model, {"repository": repository, "revision": commit}, hashes, folder, lock, source="hub")


def list_repository(
    repository: str, revision: str | None, endpoint: str | None
) -> tuple[str, list[RemoteFile]]:
    """Return the commit that `revision` (None: the newest) stands for, and every file at it."""
    from huggingface_hub import HfApi

    with _hub(repository):
        info = HfApi(endpoint=endpoint).model_info(repository, revision=revision, files_metadata=True)
    files = [
        RemoteFile(sibling.rfilename, sibling.size or 0, sibling.lfs.sha256 if sibling.lfs else None)
        for sibling in info.siblings or []
    ]
    if not info.sha or not _COMMIT.fullmatch(info.sha):
        raise AuditError(f"{repository}: the hub names no commit for it; try again later.")
    return info.sha, files


def _fetch_one(repository: str, commit: str, file: RemoteFile, folder: Path, endpoint: str | None) -> str:
    """Fetch one file at one commit; return its SHA-256, checked against the hub's where it states one."""
    from huggingface_hub import hf_hub_download

    target = folder / PARTS if _is_pickled(file.name) else folder
    with _hub(repository):
        path = Path(
            hf_hub_download(repository, file.name, revision=commit, local_dir=target, endpoint=endpoint)
        )
    found = sha256_file(path)
    if file.sha256 is not None and found != file.sha256:
        path.unlink()
        raise AuditError(
            f"{repository}: {file.name} has sha256 {found}, the hub says {file.sha256}; run the same command again."
        )
    return found


@contextmanager
def _hub(repository: str) -> Iterator[None]:
    """Turn what the hub's client raises into one sentence; in here the hub is on, unless the user has it off.

    `readout_audit.models` switches it off for its process, and a command may load models and fetch one, too.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import HFValidationError, HTTPError

    before = constants.HF_HUB_OFFLINE
    if os.environ.get("READOUT_AUDIT_SWITCHED_HUB_OFF"):
        constants.HF_HUB_OFFLINE = False
    try:
        yield
    except (HTTPError, HFValidationError, OSError) as error:
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        raise AuditError(
            f"{repository}: cannot be fetched from the hub ({reason}); check the name, the network and, for a "
            f"gated repository, your access. What has arrived is kept."
        ) from error
    finally:
        constants.HF_HUB_OFFLINE = before


def _still_needed(files: Iterable[RemoteFile], folder: Path) -> int:
    """Return the bytes that are not there yet; pickled shards count twice, for their converted copy."""
    needed = 0
    for file in files:
        target = (folder / PARTS if _is_pickled(file.name) else folder) / file.name
        there = target.stat().st_size if target.is_file() else 0
        needed += max(0, file.size - there) + (file.size if _is_pickled(file.name) else 0)
    return needed


def _is_pickled(name: str) -> bool:
    """Tell whether a file is pickled weights or their index."""
    return _PICKLED.fullmatch(name) is not None or name == _PICKLED_INDEX


def fetch_from_mirror(model: str, mirror: Path, folder: Path, lock: Path, *, pickled: bool) -> dict[str, Any]:
    """Link a checkpoint of the mirror (`models/<model>/`) into `folder` and return its manifest.

    Raises:
        AuditError: the mirror lacks it or its weights, or a file is not the one that was locked.
    """
    source = in_mirror(mirror, f"models/{model}")
    if not source.is_dir():
        raise AuditError(f"{source}: a folder is expected, with the files of the checkpoint.")
    there = [RemoteFile(path.name, path.stat().st_size, None) for path in source.iterdir() if path.is_file()]
    try:
        files = wanted_files(there, pickled=pickled)
    except AuditError as error:
        raise AuditError(f"{source}: {error}") from error
    hashes = {}
    for file in files:
        target = folder / PARTS if _is_pickled(file.name) else folder
        link_file(source / file.name, target / file.name)
        hashes[file.name] = sha256_file(source / file.name)
    return _finish(model, {"repository": None, "revision": None}, hashes, folder, lock, source="mirror")


def _finish(
    model: str, origin: Mapping[str, Any], hashes: Mapping[str, str], folder: Path, lock: Path, *, source: str
) -> dict[str, Any]:
    """Lock what was fetched, convert pickled weights, and return the manifest."""
    converted: dict[str, str] = {}
    if any(_is_pickled(name) for name in hashes):
        from readout_audit.models.mplug_owl2.conversion import convert_pickled_checkpoint

        record = convert_pickled_checkpoint(folder / PARTS, folder)
        converted = {entry["safetensors"]: entry["safetensors_sha256"] for entry in record["files"]}
    facts = {**origin, "files": dict(hashes), "converted": converted}
    known = locked(lock, f"models/{model}")
    if known is not None and source == "mirror":
        # A mirror does not say which commit it holds; the files themselves must be the locked ones.
        facts |= {key: known[key] for key in ("repository", "revision")}
    lock_or_refuse(lock, f"models/{model}", facts)
    LOGGER.info("model %s: %d files from the %s", model, len(hashes), source)
    return {"model": model, "source": source, **facts}
