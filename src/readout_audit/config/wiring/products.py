"""Tables, figures and claims."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from readout_audit.claims.evidence import RELEASE
from readout_audit.claims.numbers import read_numbers, select
from readout_audit.config.wiring.measures import MEASURED, Measures
from readout_audit.config.wiring.paths import digest_with, source_arguments
from readout_audit.figures.registry import entry as figure_entry
from readout_audit.fileio import canonical_json
from readout_audit.tables.registry import entry as table_entry

NUMBERS = "resources/paper/numbers.csv"
"""The paper's printed numbers."""


class Products(Measures):
    """Which files a table, a figure or the claims are made from, and what they show."""

    @property
    def tables(self) -> list[str]:
        """The tables of the run, less those of published rows where it is not held against the paper."""
        return [name for name in self.config["tables"] if name not in self.paper_only_tables]

    @property
    def is_strange_to_paper(self) -> bool:
        """Whether the run is held against the paper without a model of the paper on the paper's release."""
        known = ((RELEASE, model) for model in self.paper_models)
        return bool(self.config["claims"]) and not {cell[:2] for cell in self.cells} & set(known)

    @property
    def paper_only_tables(self) -> list[str]:
        """The listed tables that are left out because the run is not held against the paper."""
        listed = [] if self.config["claims"] else self.config["tables"]
        return [name for name in listed if table_entry(name).paper_only]

    def table_sources(self, wildcards: Any) -> dict[str, list[str]]:
        """Return the files of the run that a table reads, by kind."""
        entry = table_entry(wildcards.table)
        return self._sources([*entry.needs, *entry.uses])

    def figure_sources(self, wildcards: Any) -> dict[str, list[str]]:
        """Return the files of the run that a figure reads, by kind."""
        entry = figure_entry(wildcards.figure)
        return self._sources([*entry.needs, *entry.uses])

    def table_arguments(self, wildcards: Any) -> str:
        """Return a table's files as arguments of make_tables."""
        return source_arguments(self.table_sources(wildcards))

    def figure_arguments(self, wildcards: Any) -> str:
        """Return a figure's files as arguments of draw_figures."""
        return source_arguments(self.figure_sources(wildcards))

    def _sources(self, needs: Iterable[str]) -> dict[str, list[str]]:
        """Return the files of each kind that a table or figure needs and that this run has."""
        cellwise = {
            kind: self.cell_files(f"results/{{run}}/{kind}/{{cell}}.parquet")
            for kind in ("transitions", "gap", "decisions", "readout_pairs", "readout_disagreements")
        } | {kind: self.measured_files(kind) for kind in MEASURED}
        every = {
            "scores": [f"results/{self.run}/scores.parquet"],
            **cellwise,
            "tokens": list(self.token_maps.values()),
            "claims": [NUMBERS] if self.config["claims"] else [],
            "images": self._shown_images,
            "settings_audit": [f"results/{self.run}/settings_audit.parquet"],
            "variance": [f"results/{self.run}/variance.parquet"],
            "releases": self._compared,
        }
        return {kind: every[kind] for kind in needs if every.get(kind)}

    @cached_property
    def paper_models(self) -> list[str]:
        """The models of the paper's Table 4."""
        numbers = select(read_numbers(Path(NUMBERS)), section="Table 4")
        return list(dict.fromkeys(number.model for number in numbers))

    @property
    def _shown_images(self) -> list[str]:
        """The folder of the pictures that may be shown: those this run makes, or the user's own.

        Fetched ones are under the terms of whoever took them, and stay out of figures.
        """
        sets = (self.config["known_images"][self.release(name)["images"]] for name in self.config["datasets"])
        folders = []
        for images in sets:
            if "{run}" in images.get("path", "") and self.source == "inference":
                folders.append(str(images["path"]).replace("{run}", self.run))
            elif images.get("folder_key") and self.config[images["folder_key"]]:
                folders.append(str(self.config[images["folder_key"]]))
        return folders[:1]

    @cached_property
    def paper_samples(self) -> list[str]:
        """The questions of the paper's Figure 6, by id."""
        return [number.quantity for number in select(read_numbers(Path(NUMBERS)), kind="outcome")]

    def table_options(self, wildcards: Any) -> str:
        """Return what of the run a table shows and in which order, as canonical JSON."""
        readout_from, readout_to = self.config["gap_pair"]
        asked = (cell.model for cell in self.cells)
        return canonical_json(
            {
                "splits": self.config["splits"],
                # A run that is held against the paper shows the paper's models that it did not ask, too.
                "models": list(
                    dict.fromkeys([*asked, *(self.paper_models if self.config["claims"] else [])])
                ),
                "labels": self.config["labels"],
                "readout_from": readout_from,
                "readout_to": readout_to,
                "reference_model": self.config["reference_model"],
                "samples": self.paper_samples if self.config["claims"] else [],
            }
        )

    def table_digest(self, wildcards: Any) -> str:
        """Return the digest of the code that makes a table."""
        return digest_with("make_tables", table_entry(wildcards.table).module)

    def figure_digest(self, wildcards: Any) -> str:
        """Return the digest of the code that draws a figure."""
        return digest_with("draw_figures", figure_entry(wildcards.figure).module)

    def claim_sources(self, wildcards: Any) -> dict[str, list[str]]:
        """Return every file that published numbers are held against."""
        sources = self._sources(("scores", "transitions", "gap", "decisions", "tokens"))
        measured = self.probed_cells or self.predictions
        return sources | ({"measured": [f"results/{self.run}/measured.json"]} if measured else {})

    def claim_arguments(self, wildcards: Any) -> str:
        """Return those files as arguments of build_claims."""
        return source_arguments(self.claim_sources(wildcards))

    @property
    def claim_files(self) -> list[str]:
        """The claims table, for runs that are held against the paper."""
        return [f"paper_tables/{self.run}/claims.csv"] if self.config["claims"] else []
