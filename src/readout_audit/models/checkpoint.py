"""A checkpoint is a local folder: what must lie in it, and a hash of what does."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from readout_audit.errors import AuditError
from readout_audit.fileio import canonical_json, read_json, sha256_file, sha256_text

_CONTENT = ("*.safetensors", "*.json", "*.jinja", "*.model", "merges.txt", "qformer_tokenizer/*")


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Turn whatever a library raises about a checkpoint's files into one sentence that begins with `what`.

    Damaged files make transformers raise nearly anything, from `OSError` to `AttributeError`; what is raised
    stays the cause of the sentence. Running out of memory says nothing about the files and goes on.

    Raises:
        AuditError: the block failed.
    """
    try:
        yield
    except (AuditError, MemoryError):
        raise
    except Exception as error:
        import torch

        if isinstance(error, torch.OutOfMemoryError):
            raise
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise AuditError(f"{what} ({type(error).__name__}: {reason.rstrip('.')}).") from error


def check_folder(folder: Path) -> None:
    """Refuse a folder from which a model cannot be loaded, naming the file that is missing."""
    if not folder.is_dir():
        raise AuditError(f"{folder}: the checkpoint folder is not there; fetch the model first.")
    check_tokenizer_folder(folder)
    if not any((folder / name).is_file() for name in ("preprocessor_config.json", "processor_config.json")):
        raise AuditError(f"{folder}: preprocessor_config.json is missing; fetch the model again.")
    check_weights(folder)


def check_tokenizer_folder(folder: Path) -> None:
    """Refuse a folder whose tokenizer would not load, or would silently load as another class.

    Without `config.json` the tokenizer's class is guessed and the same text gets other ids.
    """
    for name in ("config.json", "tokenizer_config.json"):
        if not (folder / name).is_file():
            raise AuditError(f"{folder}: {name} is missing; without it the tokenizer cannot be relied on.")
    if not any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer.model", "vocab.json")):
        raise AuditError(f"{folder}: tokenizer.json is missing; fetch the tokenizer again.")


def check_weights(folder: Path) -> None:
    """Refuse a folder without safetensors weights or with a shard missing."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        shards = sorted(set(read_json(index, "the weight index")["weight_map"].values()))
        missing = [name for name in shards if not (folder / name).is_file()]
        if missing:
            raise AuditError(f"{folder}: weight files are missing: {', '.join(missing)}.")
    elif not any(folder.glob("*.safetensors")):
        raise AuditError(
            f"{folder}: there are no .safetensors weights; a pickled checkpoint is converted when it is fetched."
        )


def content_hash(folder: Path) -> str:
    """Return the hex SHA-256 of the names and bytes of every file a model is loaded from."""
    files = sorted({path for pattern in _CONTENT for path in folder.glob(pattern)})
    return sha256_text(
        canonical_json({path.relative_to(folder).as_posix(): sha256_file(path) for path in files})
    )


def resolved_revision(folder: Path, declared: str | None) -> str:
    """Return what names a checkpoint's content: the commit it was fetched at, else a hash of its bytes.

    A fetched checkpoint has a manifest beside its folder, `<folder>.json`; hashing its weights again for
    every job would take minutes.
    """
    manifest = folder.with_name(folder.name + ".json")
    fetched = read_json(manifest, "the fetch manifest").get("revision") if manifest.is_file() else None
    if declared and fetched and declared != fetched:
        raise AuditError(
            f"{folder}: it was fetched at {fetched}, but the settings say {declared}; fetch it again."
        )
    return declared or fetched or content_hash(folder)


def model_type(folder: Path) -> str:
    """Return `model_type` of the folder's config.json ("" when it has none)."""
    return str(read_json(folder / "config.json", "the model's config.json").get("model_type", ""))


def output_rows(folder: Path) -> int:
    """Return how many ids have a logit, read from the config without loading the weights."""
    config = read_json(folder / "config.json", "the model's config.json")
    for part in (config.get("text_config") or {}, config):
        if isinstance(part.get("vocab_size"), int):
            return int(part["vocab_size"])
    raise AuditError(f"{folder}: config.json does not say how large the vocabulary is.")
