"""Every correction, and every signal asked whether it tells wrong answers, by name.

Adding one is one object in a module and one line here.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from readout_audit.errors import AuditError

if TYPE_CHECKING:
    from readout_audit.corrections.base import Correction
    from readout_audit.corrections.values import Value

_HERE = "readout_audit.corrections"

CORRECTIONS = {
    "clip_b32": f"{_HERE}.paper:CLIP_B32",
    "clip_l": f"{_HERE}.paper:CLIP_L",
    "entropy": f"{_HERE}.paper:ENTROPY",
    "magnitude": f"{_HERE}.paper:MAGNITUDE",
    "cls": f"{_HERE}.paper:CLS",
    "object_noun": f"{_HERE}.paper:OBJECT_NOUN",
    "uniform": f"{_HERE}.paper:UNIFORM",
    "midpoint": f"{_HERE}.paper:MIDPOINT",
    "vcd": f"{_HERE}.paper:VCD",
    "clip_b32_code": f"{_HERE}.code:CLIP_B32_CODE",
    "entropy_code": f"{_HERE}.code:ENTROPY_CODE",
    "magnitude_code": f"{_HERE}.code:MAGNITUDE_CODE",
    "cls_code": f"{_HERE}.code:CLS_CODE",
    "object_code": f"{_HERE}.code:OBJECT_CODE",
    "midpoint_code": f"{_HERE}.code:MIDPOINT_CODE",
    "vcd_uniform_code": f"{_HERE}.code:VCD_UNIFORM_CODE",
}
"""Correction name -> "module:attribute" of its object, in the order of Table 8."""

VALUES = {
    "entropy": f"{_HERE}.values:ENTROPY",
    "magnitude": f"{_HERE}.values:MAGNITUDE",
    "midpoint_gap": f"{_HERE}.values:MIDPOINT_GAP",
    "layers_agreeing": f"{_HERE}.values:LAYERS_AGREEING",
    "clip_b32_patches": f"{_HERE}.values:CLIP_B32_PATCHES",
    "clip_b32_image": f"{_HERE}.values:CLIP_B32_IMAGE",
    "clip_b32_crops": f"{_HERE}.values:CLIP_B32_CROPS",
    "clip_l_patches": f"{_HERE}.values:CLIP_L_PATCHES",
    "clip_l_cls": f"{_HERE}.values:CLIP_L_CLS",
    "vcd_shift": f"{_HERE}.values:VCD_SHIFT",
    "vcd_uniform_shift": f"{_HERE}.values:VCD_UNIFORM_SHIFT",
    "attention_image": f"{_HERE}.values:ATTENTION_IMAGE",
    "attention_window": f"{_HERE}.values:ATTENTION_WINDOW",
    "answer_attention_entropy": f"{_HERE}.values:ANSWER_ATTENTION_ENTROPY",
    "noun_attention_entropy": f"{_HERE}.values:NOUN_ATTENTION_ENTROPY",
    "spatial_attention_entropy": f"{_HERE}.values:SPATIAL_ATTENTION_ENTROPY",
}
"""Signal name -> "module:attribute" of what computes it from the evidence."""


def module_of(name: str) -> str:
    """Return the module that defines a correction, for code digests.

    Raises:
        AuditError: there is no such correction.
    """
    return _entry(CORRECTIONS, name, "correction").partition(":")[0]


def correction(name: str) -> "Correction":
    """Return a correction by name.

    Raises:
        AuditError: there is no such correction.
    """
    found: Correction = _load(_entry(CORRECTIONS, name, "correction"))
    return found


def value(name: str) -> "Value":
    """Return a signal by name.

    Raises:
        AuditError: there is no such signal.
    """
    found: Value = _load(_entry(VALUES, name, "signal"))
    return found


def _entry(entries: dict[str, str], name: str, what: str) -> str:
    """Return the place of a name, or say which names there are."""
    if name not in entries:
        raise AuditError(f"there is no {what} {name!r}; there are {', '.join(entries)}.")
    return entries[name]


@cache
def _load(place: str) -> Any:
    """Import "module:attribute"."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
