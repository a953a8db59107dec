"""What a signals file depends on beside the model's own settings, in one object with one hash."""

from dataclasses import dataclass
from typing import Any

from readout_audit.errors import AuditError
from readout_audit.settings_text import hash_settings, read_settings

KEYS = (
    "text_prompt",
    "clip_b32",
    "clip_l14_336",
    "clip_patch_norm",
    "vcd",
    "vcd_uniform",
    "authors_window",
    "entropy_layers",
    "batch_size",
)
NOISE_STEPS = 1000
"""Steps of the diffusion whose noise VCD adds; a noise step is one of 0 to 999."""


@dataclass(frozen=True)
class SignalSettings:
    """The settings of one signals file, as they are hashed and recorded.

    Attributes:
        value: the JSON object, exactly the keys `KEYS`:
            text_prompt: what CLIP's text encoder reads, with {noun} once.
            clip_b32, clip_l14_336: {"model", "revision"}; null leaves the columns null.
            clip_patch_norm: whether patch features pass CLIP's final layer norm before the projection.
            vcd: {"noise_step", "seed"}, diffusion noise on the image; null: no such pass.
            vcd_uniform: {"seed", "side"}, a square picture of uniform noise; null: no such pass.
            authors_window: [first, end) positions.
            entropy_layers: [first, end) layers, from 0, of the answer position's attention entropy.
            batch_size: how many prompts go through the model side by side.
    """

    value: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> "SignalSettings":
        """Read settings from JSON.

        Raises:
            AuditError: it is no JSON object, a key is unknown or missing, or a value is not allowed.
        """
        value = read_settings(text, KEYS, "signal settings")
        check_values(value)
        return cls(value)

    @property
    def settings_id(self) -> str:
        """First 16 hex of the SHA-256 of the canonical JSON."""
        return hash_settings(self.value)

    @property
    def window(self) -> tuple[int, int]:
        """`authors_window`, end exclusive."""
        first, end = self.value["authors_window"]
        return int(first), int(end)

    @property
    def entropy_layers(self) -> tuple[int, int]:
        """`entropy_layers`, end exclusive."""
        first, end = self.value["entropy_layers"]
        return int(first), int(end)

    @property
    def batch_size(self) -> int:
        """How many prompts run side by side."""
        return int(self.value["batch_size"])


def check_values(value: dict[str, Any]) -> None:
    """Refuse signal settings whose values cannot be meant."""
    prompt = value["text_prompt"]
    if not isinstance(prompt, str) or prompt.count("{noun}") != 1:
        raise AuditError(f"signal settings: text_prompt is {prompt!r}; it must hold {{noun}} exactly once.")
    if not isinstance(value["clip_patch_norm"], bool):
        raise AuditError("signal settings: clip_patch_norm must be true or false.")
    for name in ("clip_b32", "clip_l14_336"):
        _check_keys(value, name, {"model", "revision"})
    _check_keys(value, "vcd", {"noise_step", "seed"})
    _check_keys(value, "vcd_uniform", {"seed", "side"})
    if value["vcd"] is not None:
        _check_whole("vcd.noise_step", value["vcd"]["noise_step"], 0, NOISE_STEPS - 1)
        _check_whole("vcd.seed", value["vcd"]["seed"], 0)
    if value["vcd_uniform"] is not None:
        _check_whole("vcd_uniform.seed", value["vcd_uniform"]["seed"], 0)
        _check_whole("vcd_uniform.side", value["vcd_uniform"]["side"], 1)
    _check_whole("batch_size", value["batch_size"], 1)
    for name in ("authors_window", "entropy_layers"):
        span = value[name]
        if not isinstance(span, list) or len(span) != 2:
            raise AuditError(f"signal settings: {name} must be [first, end].")
        _check_whole(f"{name}[0]", span[0], 0)
        _check_whole(f"{name}[1]", span[1], span[0] + 1)


def _check_keys(value: dict[str, Any], name: str, keys: set[str]) -> None:
    part = value[name]
    if part is not None and (not isinstance(part, dict) or set(part) != keys):
        raise AuditError(
            f"signal settings: {name} must be null or have exactly the keys {', '.join(sorted(keys))}."
        )


def _check_whole(name: str, number: Any, least: int, most: int | None = None) -> None:
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not whole or number < least or (most is not None and number > most):
        allowed = f"at least {least}" if most is None else f"from {least} to {most}"
        raise AuditError(f"signal settings: {name} is {number!r}, not a whole number {allowed}.")
