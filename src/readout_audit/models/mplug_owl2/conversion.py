"""Pickled weights to safetensors, once, at fetch (docs/mplug-owl2.md §9.2).

The published checkpoint exists only as pickled shards. They are read with `weights_only=True`, which builds tensors
and plain containers and runs no code, and only tensors are let through.
"""

import pickle
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from readout_audit.errors import AuditError
from readout_audit.fileio import replacing, sha256_file, write_json
from readout_audit.models.mplug_owl2.checkpoint import INDEX, SINGLE, shard_names

PICKLED_INDEX = "pytorch_model.bin.index.json"
PICKLED_SINGLE = "pytorch_model.bin"
RECORD = "conversion.json"
"""Written last: where it is, the conversion is whole."""


def convert_pickled_checkpoint(folder: Path, output: Path) -> dict[str, Any]:
    """Convert `pytorch_model*.bin` in `folder` to safetensors in `output`, tensor by tensor unchanged.

    One output file per shard, so that memory holds one shard; an index; and `conversion.json` with the SHA-256 of
    every file read and written.

    Returns:
        The content of `conversion.json`.

    Raises:
        AuditError: a shard is missing, damaged, holds anything but dense tensors, or disagrees with the index.
    """
    shards, weight_map = shard_names(folder, PICKLED_INDEX, PICKLED_SINGLE)
    (output / RECORD).unlink(missing_ok=True)
    converted: dict[str, str] = {}
    files, size = [], 0
    for number, shard in enumerate(shards, start=1):
        source = folder / shard
        tensors = read_tensors(source)
        _check_against_index(source, tensors, shard, weight_map, converted)
        name = SINGLE if weight_map is None else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        with replacing(output / name) as temporary:
            save_file(tensors, temporary, metadata={"format": "pt"})
        size += sum(tensor.nbytes for tensor in tensors.values())
        converted |= dict.fromkeys(tensors, name)
        written = {"safetensors": name, "safetensors_sha256": sha256_file(output / name)}
        files.append(
            {"pickled": shard, "pickled_sha256": sha256_file(source), "tensors": len(tensors), **written}
        )
    if weight_map is not None:
        write_json(output / INDEX, {"metadata": {"total_size": size}, "weight_map": converted})
    record = {"files": files, "tensors": len(converted), "torch": torch.__version__}
    write_json(output / RECORD, record)
    return record


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read one pickled shard, a dictionary of tensors, without running code from it.

    Each tensor gets memory of its own: shards may share memory between names, which safetensors do not allow.

    Raises:
        AuditError: the file is missing or damaged, or holds anything but named dense tensors.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise AuditError(
            f"{path}: a file that the index names is not there; fetch the model again."
        ) from error
    except (
        pickle.UnpicklingError,
        RuntimeError,
        EOFError,
        OSError,
        ValueError,
        KeyError,
        AttributeError,
    ) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise AuditError(
            f"{path}: not a file of tensors alone, or damaged ({reason}); it is not opened."
        ) from error
    if not isinstance(content, dict):
        raise AuditError(f"{path}: holds a {type(content).__name__} and not a dictionary of tensors.")
    for name, value in content.items():
        if not isinstance(name, str) or type(value) not in (torch.Tensor, torch.nn.Parameter):
            raise AuditError(
                f"{path}: entry {name!r} is a {type(value).__name__} and not a tensor; it is refused."
            )
        if value.layout != torch.strided or value.is_quantized:
            raise AuditError(f"{path}: entry {name!r} is a sparse or quantised tensor; it is refused.")
    return {
        name: value.detach().clone(memory_format=torch.contiguous_format) for name, value in content.items()
    }


def _check_against_index(
    source: Path,
    tensors: dict[str, torch.Tensor],
    shard: str,
    weight_map: dict[str, str] | None,
    converted: dict[str, str],
) -> None:
    """Refuse a shard whose names are not those the index gives it, or that were in an earlier shard."""
    named = (
        set(tensors) if weight_map is None else {name for name, file in weight_map.items() if file == shard}
    )
    if differing := sorted(named ^ set(tensors)):
        raise AuditError(
            f"{source}: {differing[0]} is in the file or in the index but not in both; fetch it again."
        )
    if twice := sorted(set(tensors) & set(converted)):
        raise AuditError(f"{source}: {twice[0]} also stands in another file of the model.")
