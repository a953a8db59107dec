"""What the rules ask the plan: the files, arguments and digests that belong to a job's wildcards.

Every method takes Snakemake's wildcards (any object with the names as attributes), so a rule can name it
as an input or parameter function. Nothing here imports Snakemake.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from readout_audit.claims.evidence import RELEASE
from readout_audit.claims.numbers import read_numbers, select
from readout_audit.config.plan import SERVED, Cell, Plan, prediction_files
from readout_audit.corrections.registry import CORRECTIONS
from readout_audit.corrections.registry import module_of as correction_module
from readout_audit.digest import code_digest
from readout_audit.figures.registry import entry as figure_entry
from readout_audit.fileio import canonical_json
from readout_audit.inference.registry import module_of as engine_module
from readout_audit.models.registry import module_of as adapter_module
from readout_audit.readouts.registry import module_of as readout_module
from readout_audit.tables.registry import entry as table_entry

PACKAGE_PREFIX = "readout_audit."
FETCHED = "resources/fetched"
"""Where fetched files lie, under the same relative paths as in a mirror; shared by all runs."""


DIAGNOSED = ("probe", "probe_groups", "probe_comparisons")
"""The kinds of file that a published diagnostic file gives rows for."""

PROBED = (*DIAGNOSED, "probe_windows", "probe_excluded")
MEASURED = ("corrections", "sweeps", "correctness", *PROBED)
"""The kinds of file that the probe writes, and those of corrections and probe together, one folder each."""

SERVED_BY = {"corrections": "answers", **dict.fromkeys(DIAGNOSED, "diagnostic")}
"""Kinds of file that the authors' own files give, too: their predictions, or their diagnostic file."""

NUMBERS = "resources/paper/numbers.csv"
"""The paper's printed numbers."""


class Wildcards(Protocol):
    """The wildcards of a job; a rule has only some of them."""

    dataset: str
    model: str
    precision: str
    template: str
    labels: str


class Wiring(Plan):
    """A checked plan with the questions that rules ask of it."""

    @staticmethod
    def choice(names: Iterable[str]) -> str:
        """Return a regular expression for exactly these names, as a wildcard constraint."""
        return "|".join(re.escape(name) for name in names)

    def cell_files(self, pattern: str) -> list[str]:
        """Return one path per cell of the run from a pattern with {run} and {cell}."""
        return [pattern.replace("{run}", self.run).replace("{cell}", cell.path) for cell in self.cells]

    # Questions and label sets

    def split_files(self, entry: Mapping[str, Any]) -> dict[str, str]:
        """Return split -> file of a release or label set, for the splits of this run."""
        return {split: self._file(entry["splits"][split]) for split in self.config["splits"]}

    def _file(self, described: Mapping[str, Any]) -> str:
        """Return where a described file lies: made by this run, or fetched."""
        if "path" in described:
            return str(described["path"]).replace("{run}", self.run)
        return f"{FETCHED}/{described['mirror']}"

    def release(self, dataset: str) -> Mapping[str, Any]:
        """Return a release's entry of datasets.yaml."""
        entry: Mapping[str, Any] = self.config["known_datasets"][dataset]
        return entry

    def label_set(self, name: str) -> Mapping[str, Any]:
        """Return a label set's entry of datasets.yaml."""
        entry: Mapping[str, Any] = self.config["known_labels"][name]
        return entry

    def question_files(self, wildcards: Wildcards) -> list[str]:
        """Return the question files of a release."""
        return list(self.split_files(self.release(wildcards.dataset)).values())

    def question_arguments(self, wildcards: Wildcards) -> str:
        """Return the arguments of build_questions that name a release's splits and their hashes."""
        return self._arguments(self.release(wildcards.dataset))

    def annotations(self, wildcards: Wildcards) -> str:
        """Return the annotation that a dataset's questions are drawn from."""
        return str(self.release(wildcards.dataset)["sampled"]["annotations"])

    def sampling_arguments(self, wildcards: Wildcards) -> str:
        """Return how they are drawn, as arguments of sample_questions."""
        sampled = self.release(wildcards.dataset)["sampled"]
        words = ["--images", sampled["images"], "--per-image", sampled.get("per_image", 3)]
        return shlex.join(map(str, [*words, "--seed", sampled.get("seed", 0)]))

    @property
    def sampled_datasets(self) -> list[str]:
        """The datasets of the run whose questions this pipeline draws from an annotation."""
        return [name for name in self.config["datasets"] if "sampled" in self.release(name)]

    def label_files(self, wildcards: Wildcards) -> list[str]:
        """Return the files of a label set."""
        return list(self.split_files(self.label_set(wildcards.labels)).values())

    def label_arguments(self, wildcards: Wildcards) -> str:
        """Return the arguments of build_questions that name a label set's splits and their hashes."""
        return self._arguments(self.label_set(wildcards.labels))

    def _arguments(self, entry: Mapping[str, Any]) -> str:
        """Return --namespace, --split and --sha256 of a release or label set."""
        files = self.split_files(entry)
        hashes = {split: entry["splits"][split]["sha256"] for split in files}
        words = ["--namespace", entry["image_namespace"], "--split"]
        words += [f"{split}={file}" for split, file in files.items()]
        known = [f"{split}={value}" for split, value in hashes.items() if value]
        return shlex.join([*words, *(["--sha256", *known] if known else [])])

    def label_tables(self, wildcards: Wildcards) -> list[str]:
        """Return the tables of the label sets that a run scores against beside the release's own."""
        return [f"results/{self.run}/labels/{name}.parquet" for name in self.further_labels]

    @property
    def further_labels(self) -> list[str]:
        """The label sets of the run beside the release's own."""
        return [name for name in self.config["labels"] if name != "pope"]

    def published_splits(self, wildcards: Wildcards) -> list[str]:
        """Return the splits of the run that a cell's published decisions have."""
        has = self._published(wildcards)["splits"]
        return [split for split in self.config["splits"] if split in has]

    def published_files(self, wildcards: Wildcards) -> list[str]:
        """Return the published decision files of a cell, in the order of `published_splits`."""
        has = self._published(wildcards)["splits"]
        return [self._file(has[split]) for split in self.published_splits(wildcards)]

    def answer_files(self, wildcards: Wildcards) -> list[str]:
        """Return the authors' files of answers under corrections, and their summaries."""
        return self._prediction_files(wildcards, "answers")

    def answer_sources(self, wildcards: Wildcards) -> str:
        """Return what those files are, as JSON of `stages.corrections_from_published.Source`."""
        entries = self.prediction_entries(self._cell(wildcards), "answers")
        return canonical_json(
            [
                {
                    "name": name,
                    "split": entry["split"],
                    "predictions": self._file(entry["file"]),
                    "summary": self._file(entry["summary"]) if "summary" in entry else None,
                    "correction": entry["correction"],
                    "strength": entry["strength"],
                }
                for name, entry in entries.items()
            ]
        )

    @property
    def dryruns(self) -> dict[str, str]:
        """The authors' tokenizer dry runs by model."""
        held = (entry for entry in self.predictions.values() if entry["holds"] == "tokenizer")
        return {entry["model"]: self._file(entry["file"]) for entry in held}

    def _prediction_files(self, wildcards: Wildcards, holds: str) -> list[str]:
        """Return the files of a cell that hold one thing."""
        entries = self.prediction_entries(self._cell(wildcards), holds)
        return [self._file(file) for entry in entries.values() for file in prediction_files(entry)]

    @staticmethod
    def _cell(wildcards: Wildcards) -> Cell:
        """Return the cell that a job is about."""
        return Cell(wildcards.dataset, wildcards.model, wildcards.precision, wildcards.template)

    def diagnostic_file(self, wildcards: Wildcards) -> str:
        """Return the published diagnostic file of a cell."""
        return self._file(self._published(wildcards)["diagnostic"])

    def _published(self, wildcards: Wildcards) -> Mapping[str, Any]:
        """Return the entry of a cell's published decisions, which was checked to be there."""
        entry = self.published_entry(wildcards)
        assert entry is not None
        return entry

    # Releases

    def release_files(self, side: int) -> list[str]:
        """Return the decision files of one side of every pair of cells that differ in their release alone."""
        cells = [pair[side] for pair in self.release_pairs]
        return [f"results/{self.run}/decisions/{cell.path}.parquet" for cell in cells]

    @property
    def release_records(self) -> dict[str, str]:
        """Decision file -> record file of the compared releases, where records are at hand."""
        if self.source not in ("inference", "files"):
            return {}
        cells = dict.fromkeys(cell for pair in self.release_pairs for cell in pair)
        folder = f"{self.records_folder()}/records"
        return {
            f"results/{self.run}/decisions/{cell.path}.parquet": f"{folder}/{cell.path}.parquet"
            for cell in cells
        }

    @property
    def _compared(self) -> list[str]:
        """The file of compared releases, for a run that asks two of them."""
        return [f"results/{self.run}/releases.parquet"] if self.release_pairs else []

    # Models

    def checkpoint_folder(self, wildcards: Wildcards) -> str:
        """Return the folder of a model's weights and tokenizer."""
        return self.checkpoint(wildcards.model)

    def checkpoint_files(self, wildcards: Wildcards) -> list[str]:
        """Return what stands for a checkpoint in the graph: its files, or the manifest of a fetched one."""
        return self._checkpoint_files(wildcards.model)

    def _checkpoint_files(self, name: str) -> list[str]:
        """Return the files of a model's own folder, or the manifest of a fetched one."""
        if self.model(name).get("random"):
            return [f"{self.checkpoint(name)}/config.json"]
        if self.model(name)["folder"] is None:
            return [f"{FETCHED}/models/{name}.json"]
        folder = Path(self.checkpoint(name))
        return sorted(
            str(file) for file in folder.iterdir() if file.suffix in {".json", ".safetensors", ".jinja"}
        )

    def template_json(self, wildcards: Wildcards) -> str:
        """Return the prompts of a model that this run uses, as canonical JSON."""
        return self.templates(wildcards.model)

    def settings_json(self, wildcards: Wildcards) -> str:
        """Return everything that determines a cell's answers, as canonical JSON."""
        return self.settings(wildcards.model, wildcards.precision, wildcards.template)

    # Servers

    @property
    def served_models(self) -> list[str]:
        """The models of the run that a server answers for."""
        return [model for model in self.models if self.is_served(model)]

    def api_words(self, wildcards: Wildcards) -> list[str]:
        """Return how a server is asked, as arguments of ask_api; the questions and the output apart."""
        server = self.server(wildcards.model)
        words = ["--settings", self.settings(wildcards.model, SERVED, wildcards.template)]
        words += ["--parts", "results/.parts", "--code", code_digest("ask_api")]
        words += ["--images", self.image_folder(wildcards)] if server["image"] != "none" else []
        for name in (
            "key_variable",
            "requests_per_minute",
            "in_flight",
            "attempts",
            "timeout",
            "longest_wait",
        ):
            if server[name] is not None:
                words += [f"--{name.replace('_', '-')}", str(server[name])]
        return words

    def api_arguments(self, wildcards: Wildcards) -> str:
        """Return them as text for a shell."""
        return shlex.join(self.api_words(wildcards))

    def api_images(self, wildcards: Wildcards) -> list[str]:
        """Return what stands for the pictures that go to a server; nothing where none go."""
        sends = self.server(wildcards.model)["image"] != "none"
        return [self.image_marker(wildcards)] if sends else []

    # Images

    def image_folder(self, wildcards: Wildcards) -> str:
        """Return the folder of a release's pictures."""
        images = self.config["known_images"][self.release(wildcards.dataset)["images"]]
        if "path" in images:
            return str(images["path"]).replace("{run}", self.run)
        own = self.config[images["folder_key"]] if images["folder_key"] else None
        return str(own or images["fetched"])

    def image_marker(self, wildcards: Wildcards) -> str:
        """Return what stands for a release's pictures in the graph: their folder or the fetched list."""
        images = self.release(wildcards.dataset)["images"]
        if "path" in self.config["known_images"][images]:
            return self.image_folder(wildcards)
        return f"results/{self.run}/images/{images}.json"

    def image_questions(self, wildcards: Any) -> list[str]:
        """Return the question tables whose pictures belong to an image set."""
        return [
            f"results/{self.run}/questions/{dataset}.parquet"
            for dataset in self.config["datasets"]
            if self.release(dataset)["images"] == wildcards.images
        ]

    # Arguments of the fetch stages

    def fetch_arguments(self, wildcards: Any) -> str:
        """Return where a file of datasets.yaml comes from, as arguments of fetch_file."""
        described = self._by_mirror_path[wildcards.path]
        words = ["--url", described["url"], "--mirror-path", described["mirror"], *self._mirror_words]
        return shlex.join([*words, *(["--sha256", described["sha256"]] if described["sha256"] else [])])

    @cached_property
    def _by_mirror_path(self) -> dict[str, Mapping[str, Any]]:
        """Every file of datasets.yaml by its path inside a mirror."""
        entries = [
            entry
            for key in ("known_datasets", "known_labels", "known_published")
            for entry in self.config[key].values()
        ]
        files = [described for entry in entries for described in entry["splits"].values()]
        files += [entry["diagnostic"] for entry in entries if "diagnostic" in entry]
        files += [
            file for entry in self.config["known_predictions"].values() for file in prediction_files(entry)
        ]
        return {described["mirror"]: described for described in files if "mirror" in described}

    @property
    def _mirror_words(self) -> list[str]:
        """The mirror folder as arguments, if there is one."""
        return ["--mirror", self.config["mirror"]] if self.config["mirror"] else []

    def image_arguments(self, wildcards: Any) -> str:
        """Return where an image set comes from, as arguments of fetch_images."""
        images = self.config["known_images"][wildcards.images]
        own = self.config[images["folder_key"]] if images["folder_key"] else None
        words = ["--mirror-pattern", images["mirror"], "--folder", images["fetched"], *self._mirror_words]
        words += ["--url-pattern", images["url"]] if images["url"] else []
        return shlex.join([*words, *(["--own", own] if own else [])])

    def model_arguments(self, wildcards: Wildcards) -> str:
        """Return where a checkpoint comes from, as arguments of fetch_model."""
        entry = self.model(wildcards.model)
        words = ["--repository", entry["repository"], *self._mirror_words]
        words += ["--revision", entry["revision"]] if entry["revision"] else []
        return shlex.join([*words, *(["--pickled"] if entry["pickled"] else [])])

    def random_arguments(self, wildcards: Wildcards) -> str:
        """Return what a random stand-in is made of, as arguments of make_tiny_model."""
        entry = self.model(wildcards.model)
        name, mirror = entry["random"]["tokenizer"], self.config["mirror"]
        folder = Path(mirror) / "tokenizers" / name if name and mirror else None
        words = ["--family", entry["adapter"]]
        return shlex.join([*words, *(["--tokenizer", str(folder)] if folder and folder.is_dir() else [])])

    # Tables and figures

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
        return _source_arguments(self.table_sources(wildcards))

    def figure_arguments(self, wildcards: Any) -> str:
        """Return a figure's files as arguments of draw_figures."""
        return _source_arguments(self.figure_sources(wildcards))

    def _sources(self, needs: Iterable[str]) -> dict[str, list[str]]:
        """Return the files of each kind that a table or figure needs and that this run has."""
        cellwise = {
            kind: self.cell_files(f"results/{{run}}/{kind}/{{cell}}.parquet")
            for kind in ("transitions", "gap", "decisions", "readout_pairs", "readout_disagreements")
        } | {kind: self.measured_files(kind) for kind in MEASURED}
        tokens = [f"results/{self.run}/tokens/{model}.json" for model in self.local_models]
        every = {
            "scores": [f"results/{self.run}/scores.parquet"],
            **cellwise,
            "tokens": tokens if self.source == "inference" else [],
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
        return code_digest("make_tables", table_entry(wildcards.table).module.removeprefix(PACKAGE_PREFIX))

    def figure_digest(self, wildcards: Any) -> str:
        """Return the digest of the code that draws a figure."""
        return code_digest("draw_figures", figure_entry(wildcards.figure).module.removeprefix(PACKAGE_PREFIX))

    # Claims

    def claim_sources(self, wildcards: Any) -> dict[str, list[str]]:
        """Return every file that published numbers are held against."""
        sources = self._sources(("scores", "transitions", "gap", "decisions", "tokens"))
        measured = self.probed_cells or self.predictions
        return sources | ({"measured": [f"results/{self.run}/measured.json"]} if measured else {})

    def claim_arguments(self, wildcards: Any) -> str:
        """Return those files as arguments of build_claims."""
        return _source_arguments(self.claim_sources(wildcards))

    @property
    def claim_files(self) -> list[str]:
        """The claims table, for runs that are held against the paper."""
        return [f"paper_tables/{self.run}/claims.csv"] if self.config["claims"] else []

    @property
    def agreement_files(self) -> list[str]:
        """What splits say to each other's questions, for sources that know their questions."""
        return [] if self.source == "counts" else self.cell_files("results/{run}/agreement/{cell}.parquet")

    @property
    def relabel_files(self) -> list[str]:
        """The gap under the labels of a run, for sources that know their questions."""
        return [] if self.source == "counts" else self.cell_files("results/{run}/relabelled/{cell}.parquet")

    # Report

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
        return f"{_source_arguments(sources)} {shlex.join(['--pair', *self.config['gap_pair']])}"

    def report_template_digest(self, wildcards: Any) -> str:
        """Return the digest of the page's HTML, which no import shows."""
        digest: str = import_module("readout_audit.report.page").template_digest()
        return digest

    @property
    def _manifests(self) -> list[str]:
        """What questions, tokenizers and records say of themselves."""
        if self.source == "counts":
            return []
        questions = [f"results/{self.run}/questions/{name}.json" for name in self.config["datasets"]]
        labels = [f"results/{self.run}/labels/{name}.json" for name in self.further_labels]
        if self.source == "files":
            return self.cell_files(f"{self.records_folder()}/records/{{cell}}.parquet")
        if self.source == "published":
            return [*questions, *labels]
        tokens = [f"results/{self.run}/tokens/{model}.json" for model in self.local_models]
        return [*questions, *labels, *tokens, *self.cell_files("results/{run}/records/{cell}.parquet")]

    # Signals

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
        return code_digest("compute_signals", adapter.removeprefix(PACKAGE_PREFIX))

    @property
    def correction_digest(self) -> str:
        """The digest of the code that corrects: the stage, the corrections and the corrected readouts."""
        modules = {correction_module(name) for name in CORRECTIONS} | self._corrected_modules
        return code_digest("correct", *sorted(name.removeprefix(PACKAGE_PREFIX) for name in modules))

    @property
    def probe_digest(self) -> str:
        """The digest of the code that probes: the stage and the probed readouts."""
        modules = sorted(name.removeprefix(PACKAGE_PREFIX) for name in self._corrected_modules)
        return code_digest("probe", *modules)

    @property
    def _corrected_modules(self) -> set[str]:
        """The modules of the readouts that are corrected, and of the one whose ids are excluded."""
        return {
            readout_module(name) for name in [*self.config["signals"]["readouts"], self.config["gap_pair"][1]]
        }

    # Digests of code that a registry chooses

    def inference_digest(self, wildcards: Wildcards) -> str:
        """Return the digest of the code that asks a model: the stage, its adapter and the engine."""
        adapter = adapter_module(self.model(wildcards.model)["adapter"])
        engine = engine_module(self.config["inference"]["engine"])
        return code_digest("ask_model", *(name.removeprefix(PACKAGE_PREFIX) for name in (adapter, engine)))

    def verification_digest(self, wildcards: Wildcards) -> str:
        """Return the digest of the code that asks a sample again: the stage and the model's adapter."""
        adapter = adapter_module(self.model(wildcards.model)["adapter"])
        return code_digest("verify_engine", adapter.removeprefix(PACKAGE_PREFIX))

    @property
    def verified_files(self) -> list[str]:
        """The reports of the engine's check on a sample, for runs that ask models and want one."""
        if self.source != "inference" or not self.config["inference"]["verify_sample"]:
            return []
        local = (cell for cell in self.cells if not self.is_served(cell.model))
        return [f"results/{self.run}/verified/{cell.path}.json" for cell in local]

    @property
    def readout_digest(self) -> str:
        """The digest of the code that decides: the stage and the readouts of the run."""
        modules = {readout_module(name).removeprefix(PACKAGE_PREFIX) for name in self.config["readouts"]}
        return code_digest("decide", *sorted(modules))

    def described(self, wildcards: Wildcards) -> dict[str, str]:
        """Return a job's cell and the run's source, as the leading columns of the result tables."""
        return self._cell(wildcards).described(self.source)


def _source_arguments(sources: Mapping[str, list[str]]) -> str:
    """Return files by kind as command-line arguments."""
    return shlex.join([word for kind, files in sources.items() for word in (f"--{kind}", *files)])
