"""Loading a checkpoint that holds exactly the model's weights (docs/mplug-owl2.md §8, §9.2, §9.3)."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import SafetensorError, safe_open

from readout_audit.errors import AuditError
from readout_audit.models.mplug_owl2.configuration import MplugOwl2Config, load_config, read_settings
from readout_audit.models.mplug_owl2.model import MplugOwl2ForCausalLM

Shapes = dict[str, tuple[int, ...]]

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
PLAIN_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
"""What a shard may be called: names come from a downloaded index and must stay inside its folder."""


def expected_parameters(config: MplugOwl2Config) -> Shapes:
    """Return name and shape of every parameter, without allocating any (§8)."""
    with torch.device("meta"):
        model = MplugOwl2ForCausalLM(config)
    return {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}


def shard_names(folder: Path, index: str, single: str) -> tuple[list[str], dict[str, str] | None]:
    """Return the weight files of a folder and, where there is an index, which file each weight is said to be in.

    Raises:
        AuditError: neither file is there, or the index names something that is not a plain file name.
    """
    if (folder / single).is_file() and not (folder / index).is_file():
        return [single], None
    if not (folder / index).is_file():
        raise AuditError(f"{folder}: there is neither {single} nor {index}; fetch the model again.")
    weight_map = read_settings(folder / index, "the index of the weights").get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise AuditError(f"{folder / index}: the index has no weight_map; fetch the model again.")
    for name, file in weight_map.items():
        if not isinstance(file, str) or not PLAIN_FILE_NAME.fullmatch(file):
            raise AuditError(
                f"{folder / index}: {name} is said to be in {file!r}, which is not a plain file name."
            )
    return sorted(set(weight_map.values())), weight_map


def stored_parameters(folder: Path) -> Shapes:
    """Return name and shape of every tensor in the folder's safetensors files, reading only their headers.

    Raises:
        AuditError: a file is missing or damaged, or two files hold the same name.
    """
    shapes: Shapes = {}
    for file in shard_names(folder, INDEX, SINGLE)[0]:
        try:
            with safe_open(folder / file, framework="pt") as opened:
                found = {name: tuple(opened.get_slice(name).get_shape()) for name in opened.keys()}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise AuditError(
                f"{folder / file}: the weights cannot be read ({error}); fetch the model again."
            ) from error
        if twice := sorted(shapes.keys() & found.keys()):
            raise AuditError(f"{folder / file}: {_named(twice)} also stands in another file of the model.")
        shapes |= found
    return shapes


def is_ignorable(name: str) -> bool:
    """Tell whether a checkpoint entry is one of the computed buffers that may be there or not (§1.3)."""
    return any(
        re.search(pattern, name) for pattern in MplugOwl2ForCausalLM._keys_to_ignore_on_load_unexpected
    )


def check_checkpoint(folder: Path, config: MplugOwl2Config) -> None:
    """Refuse a checkpoint that lacks a weight, has one too many, or one of another shape; before memory is used.

    Raises:
        AuditError: naming the first such weights.
    """
    expected, stored = expected_parameters(config), stored_parameters(folder)
    missing = [name for name in expected if name not in stored]
    unexpected = [name for name in stored if name not in expected and not is_ignorable(name)]
    reshaped = [
        f"{name} ({list(stored[name])} in place of {list(shape)})"
        for name, shape in expected.items()
        if name in stored and stored[name] != shape
    ]
    for problem, names in (
        ("lacks", missing),
        ("has unknown weights:", unexpected),
        ("has other shapes:", reshaped),
    ):
        if names:
            raise AuditError(
                f"{folder}: the checkpoint {problem} {_named(names)}; it is no whole mPLUG-Owl2 model."
            )


def _named(names: Iterable[str], limit: int = 5) -> str:
    """List names, the first few of many."""
    names = list(names)
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + rest


def load_model(
    folder: Path,
    *,
    dtype: torch.dtype,
    attn_implementation: Literal["sdpa", "eager"] = "sdpa",
    quantization_config: Any = None,
    device_map: Any = None,
) -> MplugOwl2ForCausalLM:
    """Load a checked checkpoint for inference.

    Args:
        folder: `config.json` and safetensors (a pickled checkpoint is converted first).
        dtype: type of the parameters (under quantisation, of those left alone).
        attn_implementation: `sdpa`, or `eager` where attention weights are wanted.
        quantization_config: a `BitsAndBytesConfig`, or None. As for every model of transformers, all linear maps
            but the output head are quantised: both sets of keys and values, and the vision parts.
        device_map: as in `from_pretrained`.

    Raises:
        AuditError: the configuration does not fit, or the checkpoint does not hold exactly the model's weights.
    """
    config = load_config(folder)
    check_checkpoint(folder, config)
    model, info = MplugOwl2ForCausalLM.from_pretrained(
        folder,
        config=config,
        dtype=dtype,
        attn_implementation=attn_implementation,
        quantization_config=quantization_config,
        device_map=device_map,
        use_safetensors=True,
        output_loading_info=True,
    )
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if info[kind]:
            raise AuditError(
                f"{folder}: loading left {kind.replace('_', ' ')}: {_named(map(str, info[kind]))}."
            )
    loaded: MplugOwl2ForCausalLM = model.eval()
    return loaded
