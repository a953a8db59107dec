"""Model adapters by name. An entry is a string, so that naming one adapter does not import the others."""

from importlib import import_module
from typing import TYPE_CHECKING

from readout_audit.errors import AuditError

if TYPE_CHECKING:
    from readout_audit.models.base import VisionLanguageModel

ADAPTERS = {
    "generic": "readout_audit.models.generic:Generic",
    "instructblip": "readout_audit.models.instructblip:InstructBlip",
    "llava": "readout_audit.models.llava:Llava",
    "llava_next": "readout_audit.models.llava_next:LlavaNext",
    "mplug_owl2": "readout_audit.models.owl:Owl",
    "qwen2_vl": "readout_audit.models.qwen2_vl:Qwen2VL",
}
"""Adapter name -> "module:class"."""


def module_of(name: str) -> str:
    """Return the module that holds the adapter `name` (what a code digest starts from)."""
    if name not in ADAPTERS:
        raise AuditError(f"adapter {name!r} is not known; choose one of {', '.join(sorted(ADAPTERS))}.")
    return ADAPTERS[name].partition(":")[0]


def get(name: str) -> "type[VisionLanguageModel]":
    """Import and return the adapter class `name`."""
    module = import_module(module_of(name))
    adapter: type[VisionLanguageModel] = getattr(module, ADAPTERS[name].partition(":")[2])
    return adapter
