"""Model adapters by name. An entry is a string, so that naming one adapter does not import the others."""

from importlib import import_module
from typing import TYPE_CHECKING

from readout_audit.errors import AuditError

if TYPE_CHECKING:
    from readout_audit.models.base import VisionLanguageModel

ADAPTERS = {
    "llava": "readout_audit.models.llava:Llava",
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
