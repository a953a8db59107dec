"""The configuration file of mPLUG-Owl2, read as published and checked once (docs/mplug-owl2.md §9.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from huggingface_hub.errors import StrictDataclassError
from transformers import LlamaConfig

from readout_audit.errors import AuditError
from readout_audit.fileio import read_json


@dataclass(frozen=True)
class VisionSettings:
    """`visual_config.visual_model` (docs/mplug-owl2.md §2); sizes in pixels and channels."""

    image_size: int
    patch_size: int
    num_channels: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    layer_norm_eps: float

    @property
    def grid(self) -> int:
        """Patches along one side of the image."""
        return self.image_size // self.patch_size

    @property
    def positions(self) -> int:
        """Vectors per image: the class token and the patches."""
        return 1 + self.grid**2


@dataclass(frozen=True)
class AbstractorSettings:
    """`visual_config.visual_abstractor` (docs/mplug-owl2.md §3)."""

    num_learnable_queries: int
    hidden_size: int
    encoder_hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    layer_norm_eps: float
    grid_size: int


class MplugOwl2Config(LlamaConfig):  # type: ignore[misc]
    """LLaMA's fields at the top level, the two vision parts as the nested dictionaries of the original file."""

    model_type = "mplug_owl2"

    visual_config: dict[str, Any] | None = None

    @property
    def vision(self) -> VisionSettings:
        """The vision encoder's settings.

        Raises:
            AuditError: a field is missing or not of its type.
        """
        part = _part(self.visual_config, "visual_model")
        return VisionSettings(**_fields(part, VisionSettings, "visual_config.visual_model"))

    @property
    def abstractor(self) -> AbstractorSettings:
        """The visual abstractor's settings.

        Raises:
            AuditError: a field is missing or not of its type.
        """
        part = _part(self.visual_config, "visual_abstractor")
        return AbstractorSettings(**_fields(part, AbstractorSettings, "visual_config.visual_abstractor"))

    @property
    def vectors_per_image(self) -> int:
        """Language positions one image takes: its queries and the end-of-image vector (§3.5; 65 in the 7B model)."""
        return self.abstractor.num_learnable_queries + 1

    @property
    def rotary_base(self) -> float:
        """Base of the rotary frequencies; 10000 where the file does not say (§9.1)."""
        return float(self.rope_parameters["rope_theta"])


def _part(visual_config: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """Return one of the two nested dictionaries."""
    part = (visual_config or {}).get(name)
    if not isinstance(part, Mapping):
        raise AuditError(
            f"config.json: visual_config.{name} is missing or not a dictionary; "
            f"use the config.json that was published with the mPLUG-Owl2 weights."
        )
    return part


def _fields(part: Mapping[str, Any], settings: type, where: str) -> dict[str, Any]:
    """Pick the fields of `settings` out of a dictionary that also holds dozens of unrelated ones."""
    picked: dict[str, Any] = {}
    for name, kind in settings.__annotations__.items():
        value = part.get(name)
        kinds = (int, float) if kind is float else (int,)
        if not isinstance(value, kinds) or isinstance(value, bool) or value <= 0:
            raise AuditError(
                f"config.json: {where}.{name} is {value!r}, not a positive {kind.__name__}; "
                f"use the config.json that was published with the mPLUG-Owl2 weights."
            )
        picked[name] = value
    return picked


def check_config(config: MplugOwl2Config) -> None:
    """Refuse a configuration that describes another model than the specified one.

    Flags that an older file may lack count as their stated value (§9.1): use_cls_token and use_post_layernorm true,
    attention_bias false, hidden_act of the vision encoder quick_gelu.

    Raises:
        AuditError: naming the first field that does not fit, and what it should be.
    """
    vision, abstractor = config.vision, config.abstractor
    raw_vision = _part(config.visual_config, "visual_model")
    raw_abstractor = _part(config.visual_config, "visual_abstractor")
    rope_type = config.rope_parameters.get("rope_type", "default")
    required = [
        ("hidden_act", config.hidden_act, "silu"),
        ("num_key_value_heads", config.num_key_value_heads, config.num_attention_heads),
        ("attention_bias", config.attention_bias, False),
        ("mlp_bias", config.mlp_bias, False),
        ("tie_word_embeddings", config.tie_word_embeddings, False),
        ("rope_scaling (its type)", rope_type, "default"),
        ("visual_model.hidden_act", raw_vision.get("hidden_act", "quick_gelu"), "quick_gelu"),
        ("visual_model.use_cls_token", raw_vision.get("use_cls_token", True), True),
        ("visual_model.use_post_layernorm", raw_vision.get("use_post_layernorm", True), True),
        ("visual_model.patch_size × grid", vision.patch_size * vision.grid, vision.image_size),
        ("visual_abstractor.use_cls_token", raw_abstractor.get("use_cls_token", True), True),
        ("visual_abstractor.hidden_size", abstractor.hidden_size, vision.hidden_size),
        ("visual_abstractor.encoder_hidden_size", abstractor.encoder_hidden_size, vision.hidden_size),
        ("visual_abstractor.grid_size", abstractor.grid_size, vision.grid),
        ("visual_abstractor.hidden_size modulo 4", abstractor.hidden_size % 4, 0),
        ("visual_model.hidden_size modulo heads", vision.hidden_size % vision.num_attention_heads, 0),
        (
            "visual_abstractor.hidden_size modulo heads",
            abstractor.hidden_size % abstractor.num_attention_heads,
            0,
        ),
    ]
    for name, found, needed in required:
        if found != needed:
            raise AuditError(
                f"config.json: {name} is {found!r}, but this implementation of mPLUG-Owl2 needs {needed!r}; "
                f"use the config.json that was published with the mPLUG-Owl2 weights."
            )


def read_settings(path: Path, what: str) -> dict[str, Any]:
    """Read a JSON file that must hold an object; `what` names it in the error."""
    settings = read_json(path, what)
    if not isinstance(settings, dict):
        raise AuditError(
            f"{path}: {what} is a {type(settings).__name__} and not an object; fetch the model again."
        )
    return settings


def load_config(folder: Path) -> MplugOwl2Config:
    """Read `config.json` as published and refuse one that describes another model.

    Raises:
        AuditError: the file is missing, unreadable or does not fit.
    """
    path = folder / "config.json"
    settings = read_settings(path, "the model configuration")
    try:
        config = MplugOwl2Config(**settings)
    except (StrictDataclassError, TypeError, ValueError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise AuditError(
            f"{path}: the model configuration is refused ({reason}); fetch the model again."
        ) from error
    check_config(config)
    return config
