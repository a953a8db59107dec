"""readout-audit: how much of a yes/no hallucination score is the model, and how much is the readout?"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Give `readout`, the recommended readout for other harnesses, without loading anything before it is used."""
    if name == "readout":
        return import_module("readout_audit.readouts.listing1").readout
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
