"""Inference engines by name. An entry is a string, so that naming one does not import the others."""

from importlib import import_module
from typing import TYPE_CHECKING

from readout_audit.errors import AuditError

if TYPE_CHECKING:
    from readout_audit.inference.base import Engine

ENGINES = {
    "shared_prefix": "readout_audit.inference.shared_prefix:SharedPrefix",
    "sequential": "readout_audit.inference.sequential:Sequential",
}
"""Engine name -> "module:class"."""


def module_of(name: str) -> str:
    """Return the module that holds the engine `name` (what a code digest starts from)."""
    if name not in ENGINES:
        raise AuditError(f"engine {name!r} is not known; choose one of {', '.join(sorted(ENGINES))}.")
    return ENGINES[name].partition(":")[0]


def get(name: str) -> "type[Engine]":
    """Import and return the engine class `name`."""
    engine: type[Engine] = getattr(import_module(module_of(name)), ENGINES[name].partition(":")[2])
    return engine
