"""Loading a tokenizer from a local folder, always the same way, with hashes of the files it came from."""

from pathlib import Path
from typing import Any

import readout_audit.models  # noqa: F401  (switches the hub off before transformers is imported)
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json, sha256_file
from readout_audit.models.checkpoint import check_tokenizer_folder, model_type, reading
from readout_audit.tokens import registry

_FILES = (
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
)


def load_tokenizer(folder: Path) -> Any:
    """Return the tokenizer in `folder`: by our own loader for its model type, else as transformers chooses.

    Raises:
        AuditError: a file is missing or cannot be read.
    """
    from transformers import AutoTokenizer

    check_tokenizer_folder(folder)
    own = registry.get(model_type(folder))
    if own is not None:
        return own(folder)
    with reading(f"{folder}: the tokenizer cannot be loaded"):
        return AutoTokenizer.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


def tokenizer_hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every tokenizer file that lies in `folder`."""
    return {name: sha256_file(folder / name) for name in _FILES if (folder / name).is_file()}


def read_token_map(path: Path, folder: Path) -> dict[str, Any]:
    """Return the token map in `path`, which must be of the tokenizer in `folder`.

    Raises:
        AuditError: it was made from other tokenizer files.
    """
    token_map: dict[str, Any] = read_json(path, "the token map")
    if token_map["tokenizer_sha256"] != tokenizer_hashes(folder):
        raise AuditError(
            f"{path}: the token map was made from other tokenizer files than those in {folder}; make it again."
        )
    return token_map
