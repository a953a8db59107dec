"""Tokenizers that transformers would load wrong, by the `model_type` of their config.json."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

LOADERS = {"mplug_owl2": "readout_audit.models.mplug_owl2.tokenizer:load_tokenizer"}
"""`model_type` -> "module:function"."""


def get(model_type: str) -> Callable[[Path], Any] | None:
    """Return the loader for a model type, or None where transformers' own is right."""
    if model_type not in LOADERS:
        return None
    module, _, name = LOADERS[model_type].partition(":")
    loader: Callable[[Path], Any] = getattr(import_module(module), name)
    return loader
