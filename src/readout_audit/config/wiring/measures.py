"""Signals, corrections, the probe, and the digests of their code."""

import shlex
from typing import Any

from readout_audit.config.wiring.models import Models
from readout_audit.config.wiring.paths import Wildcards, digest_with
from readout_audit.corrections.registry import CORRECTIONS
from readout_audit.corrections.registry import module_of as correction_module
from readout_audit.models.registry import module_of as adapter_module
from readout_audit.readouts.registry import module_of as readout_module

DIAGNOSED = ("probe", "probe_groups", "probe_comparisons")
"""The kinds of file that a published diagnostic file gives rows for."""

PROBED = (*DIAGNOSED, "probe_windows", "probe_excluded")
MEASURED = ("corrections", "sweeps", "correctness", *PROBED)
"""The kinds of file that the probe writes, and those of corrections and probe together, one folder each."""

SERVED_BY = {"corrections": "answers", **dict.fromkeys(DIAGNOSED, "diagnostic")}
"""Kinds of file that the authors' own files give, too: their predictions, or their diagnostic file."""


class Measures(Models):
    """What is measured inside a model, and what is computed from it."""

    def measured_files(self, kind: str) -> list[str]:
        """Return one file of a kind per cell that is corrected, or probed: by this run, or by the authors."""
        cells = self.probed_cells if kind in PROBED else self.measured_cells
        if SERVED_BY.get(kind) == "answers":
            cells += tuple(cell for cell in self.cells if self.prediction_entries(cell, "answers"))
        return [f"results/{self.run}/{kind}/{cell.path}.parquet" for cell in cells]

    def clip_files(self, wildcards: Any) -> list[str]:
        """Return what stands for the CLIPs of the run in the graph."""
        return [file for name in self._clips.values() for file in self._checkpoint_files(name)]

    def clip_arguments(self, wildcards: Any) -> str:
        """Return the folders of the CLIPs as arguments of compute_signals."""
        return shlex.join(
            [word for option, name in self._clips.items() for word in (option, self.checkpoint(name))]
        )

    @property
    def _clips(self) -> dict[str, str]:
        """The CLIPs of the run by the option that names their folder."""
        options = {"--clip-b": "clip_b32", "--clip-l": "clip_l14_336"}
        named = {option: self.config["signals"][key] for option, key in options.items()}
        return {option: name for option, name in named.items() if name is not None}

    def signals_digest(self, wildcards: Wildcards) -> str:
        """Return the digest of the code that measures signals: the stage and the model's adapter."""
        adapter = adapter_module(self.model(wildcards.model)["adapter"])
        return digest_with("compute_signals", adapter)

    @property
    def correction_digest(self) -> str:
        """The digest of the code that corrects: the stage, the corrections and the corrected readouts."""
        modules = {correction_module(name) for name in CORRECTIONS} | self._corrected_modules
        return digest_with("correct", *sorted(modules))

    @property
    def probe_digest(self) -> str:
        """The digest of the code that probes: the stage and the probed readouts."""
        return digest_with("probe", *sorted(self._corrected_modules))

    @property
    def _corrected_modules(self) -> set[str]:
        """The modules of the readouts that are corrected, and of the one whose ids are excluded."""
        return {
            readout_module(name) for name in [*self.config["signals"]["readouts"], self.config["gap_pair"][1]]
        }

    @property
    def readout_digest(self) -> str:
        """The digest of the code that decides: the stage and the readouts of the run."""
        return digest_with("decide", *sorted({readout_module(name) for name in self.config["readouts"]}))
