"""Every figure by name: where it is drawn and which files of a run it reads."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from readout_audit.errors import AuditError
from readout_audit.tables.registry import Entry

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from readout_audit.tables.inputs import RunTables

_HERE = "readout_audit.figures"

FIGURES: dict[str, Entry] = {
    "figure_01_decision_path": Entry(f"{_HERE}.figure_01_decision_path", ("decisions", "claims")),
    "figure_02_confusion": Entry(f"{_HERE}.figure_02_confusion", ("scores",)),
    "figure_03_running_adversarial": Entry(f"{_HERE}.figure_03_running_adversarial", ("decisions", "order")),
    "figure_04_running_splits": Entry(f"{_HERE}.figure_04_running_splits", ("decisions", "order")),
    "figure_05_first_tokens": Entry(f"{_HERE}.figure_05_first_tokens", ("decisions", "claims")),
    "figure_06_samples": Entry(f"{_HERE}.figure_06_samples", ("decisions", "images")),
    "figure_07_corrections": Entry(f"{_HERE}.figure_07_corrections", ("corrections",)),
    "figure_07_published": Entry(f"{_HERE}.figure_07_published", ("claims",)),
    "figure_08_attention": Entry(f"{_HERE}.figure_08_attention", ("probe",)),
    "figure_09_logit_gap": Entry(f"{_HERE}.figure_09_logit_gap", ("probe",)),
    "figure_10_encodings": Entry(f"{_HERE}.figure_10_encodings", ("tokens", "claims")),
    "figure_beta_sweep": Entry(f"{_HERE}.figure_beta_sweep", ("sweeps",)),
    "figure_layer_windows": Entry(f"{_HERE}.figure_layer_windows", ("probe_windows",)),
    "figure_excluded_logits": Entry(f"{_HERE}.figure_excluded_logits", ("probe",)),
    "figure_readout_matrix": Entry(f"{_HERE}.figure_readout_matrix", ("scores", "readout_pairs")),
    "figure_ranking": Entry(f"{_HERE}.figure_ranking", ("scores", "settings_audit", "decisions")),
    "figure_variance": Entry(f"{_HERE}.figure_variance", ("variance",)),
}
"""The module's `draw(RunTables) -> Figure` draws it."""


def entry(name: str) -> Entry:
    """Return the entry of a figure.

    Raises:
        AuditError: there is no such figure.
    """
    if name not in FIGURES:
        raise AuditError(f"There is no figure {name!r}; the figures are {', '.join(FIGURES)}.")
    return FIGURES[name]


def get(name: str) -> "Callable[[RunTables], Figure]":
    """Return the function that draws a figure; its module is imported now."""
    draw: Callable[[RunTables], Figure] = importlib.import_module(entry(name).module).draw
    return draw
