"""Everything that can change an answer, in one object with one hash."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from readout_audit.errors import AuditError
from readout_audit.models.base import ModelSpec
from readout_audit.models.precision import PRECISIONS, compute_dtype
from readout_audit.models.templates import Template
from readout_audit.settings_text import hash_settings, read_settings

KEYS = (
    "model",
    "repository",
    "folder",
    "revision",
    "adapter",
    "precision",
    "compute_dtype",
    "template",
    "image_mode",
    "attention",
    "engine",
    "max_new_tokens",
)


@dataclass(frozen=True)
class Settings:
    """The settings of one cell, as they are hashed and recorded.

    Attributes:
        value: the JSON object, exactly the keys `KEYS`; `repository` or `folder` says where the model is
            from, the other is null.
        template: the prompt template in it.
    """

    value: dict[str, Any]
    template: Template

    @classmethod
    def parse(cls, text: str) -> "Settings":
        """Read settings from JSON.

        Raises:
            AuditError: it is no JSON object, a key is unknown or missing, or a value is not allowed.
        """
        value = read_settings(text, KEYS)
        check_values(value)
        return cls(value, Template.from_dict(value["template"]))

    @property
    def settings_id(self) -> str:
        """First 16 hex of the SHA-256 of the canonical JSON."""
        return hash_settings(self.value)

    @property
    def engine(self) -> str:
        """Name of the inference engine."""
        return str(self.value["engine"]["name"])

    @property
    def batch_size(self) -> int:
        """How many questions run side by side."""
        return int(self.value["engine"]["batch_size"])

    @property
    def max_new_tokens(self) -> int:
        """Longest continuation, in tokens."""
        return int(self.value["max_new_tokens"])

    def spec(self, folder: Path, device: torch.device) -> ModelSpec:
        """Return what the model adapter is to load."""
        return ModelSpec(
            name=self.value["model"],
            folder=folder,
            precision=self.value["precision"],
            compute_dtype=self.value["compute_dtype"],
            image_mode=self.value["image_mode"],
            attention=self.value["attention"],
            device=device,
        )


def check_values(value: dict[str, Any]) -> None:
    """Refuse settings whose values cannot be meant."""
    precision = value["precision"]
    if precision not in PRECISIONS:
        raise AuditError(f"settings: precision {precision!r} is not one of {', '.join(PRECISIONS)}.")
    compute_dtype(precision, value["compute_dtype"])
    engine = value["engine"]
    if not isinstance(engine, dict) or set(engine) != {"name", "batch_size"}:
        raise AuditError("settings: engine must have exactly the keys name and batch_size.")
    for key, number in (
        ("engine.batch_size", engine["batch_size"]),
        ("max_new_tokens", value["max_new_tokens"]),
    ):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise AuditError(f"settings: {key} is {number!r}, not a whole number of at least 1.")
    if value["repository"] and value["folder"]:
        raise AuditError("settings: give the model's repository or its folder, not both.")
    if not (value["repository"] or value["folder"]):
        raise AuditError("settings: give the model's repository or its folder.")
