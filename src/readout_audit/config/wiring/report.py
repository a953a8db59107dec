"""The report page."""

import shlex
from importlib import import_module
from typing import Any

from readout_audit.config.wiring.paths import source_arguments
from readout_audit.config.wiring.products import Products


class Report(Products):
    """Which files the page shows or quotes."""

    @property
    def agreement_files(self) -> list[str]:
        """What splits say to each other's questions, for sources that know their questions."""
        return [] if self.source == "counts" else self.cell_files("results/{run}/agreement/{cell}.parquet")

    @property
    def relabel_files(self) -> list[str]:
        """The gap under the labels of a run, for sources that know their questions."""
        return [] if self.source == "counts" else self.cell_files("results/{run}/relabelled/{cell}.parquet")

    def report_sources(self, wildcards: Any) -> dict[str, list[str]]:
        """Return every file the report page shows or quotes, by the option that names it."""
        joint = bool(self.agreement_files)
        sources = {
            "scores": [f"results/{self.run}/scores.parquet"],
            "tables": [f"paper_tables/{self.run}/{name}.md" for name in self.tables],
            "figures": [f"figures/{self.run}/{name}.png" for name in self.config["figures"]],
            "claims": self.claim_files,
            "decisions": self.cell_files("results/{run}/decisions/{cell}.parquet"),
            "gap": self.cell_files("results/{run}/gap/{cell}.parquet"),
            "self_agreement": self.agreement_files,
            "disagreements": self.cell_files("results/{run}/disagreements/{cell}.parquet") if joint else [],
            "relabel": self.relabel_files,
            "carriers": self.cell_files("results/{run}/flip_carriers/{cell}.parquet") if joint else [],
            "verified": self.verified_files,
            "releases": self._compared,
            "release_changes": [f"results/{self.run}/release_changes.parquet"] if self._compared else [],
            "manifests": self._manifests,
        }
        return {kind: files for kind, files in sources.items() if files}

    def report_arguments(self, wildcards: Any) -> str:
        """Return those files, and the pair of readouts, as arguments of build_report."""
        sources = {kind.replace("_", "-"): files for kind, files in self.report_sources(wildcards).items()}
        return f"{source_arguments(sources)} {shlex.join(['--pair', *self.config['gap_pair']])}"

    def report_template_digest(self, wildcards: Any) -> str:
        """Return the digest of the page's HTML, which no import shows."""
        digest: str = import_module("readout_audit.report.page").template_digest()
        return digest

    @property
    def _manifests(self) -> list[str]:
        """What questions, tokenizers and records say of themselves."""
        tokens = list(self.token_maps.values())
        if self.source == "counts":
            return tokens
        questions = [f"results/{self.run}/questions/{name}.json" for name in self.config["datasets"]]
        labels = [f"results/{self.run}/labels/{name}.json" for name in self.further_labels]
        if self.source == "files":
            return self.cell_files(f"{self.records_folder()}/records/{{cell}}.parquet")
        if self.source == "published":
            return [*questions, *labels, *tokens]
        return [*questions, *labels, *tokens, *self.cell_files("results/{run}/records/{cell}.parquet")]
