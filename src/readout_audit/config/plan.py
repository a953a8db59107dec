"""A checked run configuration, as the rules read it: cells, settings and the names that wildcards may take."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from readout_audit.fileio import canonical_json

SERVED = "served"
"""The precision of every cell that a server answers: it does not tell which one it computes in."""

SERVER_DEFAULTS: Mapping[str, Any] = {
    "revision": None,
    "key_variable": None,
    "requests_per_minute": None,
    "in_flight": 4,
    "attempts": 6,
    "timeout": 120,
    "longest_wait": 300,
    "image": "data_uri",
    "top_logprobs": 20,
    "extra": {},
}
"""What an entry's `server` need not say."""


class Cell(NamedTuple):
    """What one record file is about: a model at a precision under a template, asked one release."""

    dataset: str
    model: str
    precision: str
    template: str

    @property
    def path(self) -> str:
        """The cell as a relative path, as it stands in every results folder."""
        return "/".join(self)

    def described(self, source: str) -> dict[str, str]:
        """Return the cell and its source as the leading columns of the result tables."""
        return {**self._asdict(), "source": source}


@dataclass(frozen=True)
class Plan:
    """One run, checked: every name in it is known and every file it needs can be made or is there."""

    config: Mapping[str, Any]

    @property
    def run(self) -> str:
        """Name of the run."""
        return str(self.config["run"])

    @property
    def source(self) -> str:
        """Where decisions come from: inference, files, published or counts."""
        return str(self.config["records_from"])

    @cached_property
    def asked(self) -> tuple[tuple[str, str, str], ...]:
        """Every (model, precision, template) of the run, in the order of the configuration."""
        crossed = [
            (model, precision, template)
            for model in self.config["models"]
            for precision in self.precisions(model)
            for template in self.config["templates"]
        ]
        extra = [split_cell(text) for text in self.config["extra_cells"]]
        return tuple(dict.fromkeys([*crossed, *extra]))

    def precisions(self, model: str) -> tuple[str, ...]:
        """Return the precisions that a model is asked at."""
        return (SERVED,) if self.is_served(model) else tuple(self.config["precisions"])

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every cell of the run: each release under each (model, precision, template)."""
        return tuple(Cell(dataset, *asked) for dataset in self.config["datasets"] for asked in self.asked)

    @cached_property
    def models(self) -> tuple[str, ...]:
        """Every model that is asked, the reference model included."""
        return tuple(dict.fromkeys([*(model for model, _, _ in self.asked), self.config["reference_model"]]))

    @property
    def local_models(self) -> tuple[str, ...]:
        """The models among them whose weights and tokenizer are at hand."""
        return tuple(model for model in self.models if not self.is_served(model))

    def is_served(self, name: str) -> bool:
        """Tell whether a model is asked over HTTP, behind a server."""
        return bool(self.config["known_models"].get(name, {}).get("server"))

    def server(self, model: str) -> Mapping[str, Any]:
        """Return a served model's server, with what its entry leaves out."""
        return {**SERVER_DEFAULTS, **self.model(model)["server"]}

    @property
    def reference(self) -> str:
        """The model whose ids the legacy readouts copy."""
        return str(self.config["reference_model"])

    @property
    def n_shards(self) -> int:
        """Number of jobs that one cell's inference is divided into."""
        return int(self.config["inference"]["shards"])

    def model(self, name: str) -> Mapping[str, Any]:
        """Return the entry of a model, or of a CLIP, in models.yaml."""
        known = (
            self.config["known_models"] if name in self.config["known_models"] else self.config["known_clips"]
        )
        entry: Mapping[str, Any] = known[name]
        return entry

    def checkpoint(self, model: str) -> str:
        """Return the folder of a model's weights and tokenizer: its own, or where it is made or fetched."""
        entry = self.model(model)
        if entry.get("random"):
            return f"results/random-models/{model}"
        return str(entry["folder"]) if entry["folder"] else f"resources/fetched/models/{model}"

    def templates(self, model: str) -> str:
        """Return the prompts of a model that this run uses, as canonical JSON."""
        known = self.config["known_templates"][model]
        used = {template for name, _, template in self.asked if name == model}
        return canonical_json({name: known[name] for name in sorted(used)})

    def settings(self, model: str, precision: str, template: str) -> str:
        """Return everything that determines a model's answers, as canonical JSON (the code apart)."""
        if self.is_served(model):
            return self._served_settings(model, template)
        inference = dict(self.config["inference"])
        entry = self.model(model)
        own = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
        return canonical_json(
            {
                "model": model,
                "repository": entry["repository"],
                "folder": None if entry["repository"] else self.checkpoint(model),
                "revision": entry["revision"],
                "adapter": entry["adapter"],
                "precision": precision,
                "compute_dtype": own.get(precision, inference["compute_dtype"]),
                "template": {"name": template, **self.config["known_templates"][model][template]},
                "image_mode": inference["image_mode"],
                "attention": inference["attention"],
                "engine": {"name": inference["engine"], "batch_size": inference["batch_size"]},
                "max_new_tokens": inference["max_new_tokens"],
            }
        )

    def _served_settings(self, model: str, template: str) -> str:
        """Return what is asked of a server, as canonical JSON; see api/settings.py."""
        server = self.server(model)
        return canonical_json(
            {
                "model": model,
                "adapter": self.model(model)["adapter"],
                "server": server["url"],
                **{
                    name: server[name]
                    for name in ("served_model", "revision", "image", "top_logprobs", "extra")
                },
                "precision": SERVED,
                "template": {"name": template, **self.config["known_templates"][model][template]},
                "max_tokens": self.config["inference"]["max_new_tokens"],
            }
        )

    def records_folder(self) -> str:
        """Return the folder that records/ and questions/ are read from."""
        return str(self.config["records_folder"]) if self.source == "files" else f"results/{self.run}"

    @property
    def measured_cells(self) -> tuple[Cell, ...]:
        """The cells whose signals are measured: none where signals are off or nothing is asked."""
        signals = self.config["signals"]
        measured = signals["models"] if signals["compute"] and self.source in ("inference", "files") else []
        return tuple(cell for cell in self.cells if cell.model in measured)

    @property
    def diagnosed_cells(self) -> tuple[Cell, ...]:
        """The cells that their authors probed and published question by question, where the run asks for that."""
        if not (self.source == "published" and self.config["diagnostic"]):
            return ()
        return tuple(cell for cell in self.cells if "diagnostic" in (self.published_entry(cell) or {}))

    def published_entry(self, cell: Any) -> Mapping[str, Any] | None:
        """Return the entry of a cell's published decisions in datasets.yaml, None where there is none."""
        about = ("dataset", "model", "precision", "template")
        wanted = [getattr(cell, key) for key in about]
        entries: Mapping[str, Mapping[str, Any]] = self.config["known_published"]
        return next((one for one in entries.values() if [one[key] for key in about] == wanted), None)

    @property
    def probed_cells(self) -> tuple[Cell, ...]:
        """The cells that the probe is about: measured by this run, or published."""
        return (*self.measured_cells, *self.diagnosed_cells)

    @cached_property
    def predictions(self) -> dict[str, Mapping[str, Any]]:
        """The authors' further files that this run reads, by name: those it lists, less those its mirror lacks."""
        return {name: entry for name, entry in self._listed_predictions.items() if not self._lacking(entry)}

    @property
    def left_out(self) -> dict[str, str]:
        """The listed files that the mirror lacks, by name, each with the path that was looked for."""
        lacking = {name: self._lacking(entry) for name, entry in self._listed_predictions.items()}
        return {name: path for name, path in lacking.items() if path}

    @property
    def _listed_predictions(self) -> dict[str, Mapping[str, Any]]:
        """The entries that the run lists; none unless its decisions are the authors'."""
        listed = self.config["predictions"] if self.source == "published" else []
        return {name: self.config["known_predictions"][name] for name in listed}

    def _lacking(self, entry: Mapping[str, Any]) -> str | None:
        """Return the first file of an entry that the mirror lacks; None without a mirror, which asks the network."""
        if self.config["mirror"] is None:
            return None
        paths = [Path(self.config["mirror"]) / file["mirror"] for file in prediction_files(entry)]
        return next((str(path) for path in paths if not path.is_file()), None)

    def prediction_entries(self, cell: Cell, holds: str) -> dict[str, Mapping[str, Any]]:
        """Return the further files about a cell that hold one thing, by name."""
        about = ("dataset", "model", "precision", "template")
        return {
            name: entry
            for name, entry in self.predictions.items()
            if entry["holds"] == holds and tuple(entry[key] for key in about) == tuple(cell)
        }

    @property
    def release_pairs(self) -> tuple[tuple[Cell, Cell], ...]:
        """The cells that differ in their release alone, the one that the run names first on the left.

        Releases share questions where their image names mean the same pictures; printed counts have no questions.
        """
        if self.source == "counts":
            return ()
        known = self.config["known_datasets"]
        return tuple(
            (Cell(first, *asked), Cell(second, *asked))
            for asked in self.asked
            for first, second in combinations(self.config["datasets"], 2)
            if known[first]["image_namespace"] == known[second]["image_namespace"]
        )

    def signal_settings(self, wildcards: Any = None) -> str:
        """Return what signals depend on beside a model's own settings, as canonical JSON."""
        signals = self.config["signals"]

        def clip(key: str) -> dict[str, Any] | None:
            name = signals[key]
            return None if name is None else {"model": name, "revision": self.model(name)["revision"]}

        return canonical_json(
            {
                "text_prompt": signals["text_prompt"],
                "clip_b32": clip("clip_b32"),
                "clip_l14_336": clip("clip_l14_336"),
                "clip_patch_norm": signals["clip_patch_norm"],
                "vcd": {"noise_step": signals["vcd_noise_step"], "seed": signals["seed"]},
                "vcd_uniform": {"seed": signals["seed"], "side": signals["uniform_side"]},
                "authors_window": signals["authors_window"],
                "entropy_layers": signals["entropy_layers"],
                "batch_size": signals["batch_size"],
            }
        )

    @property
    def needs_gpu(self) -> int:
        """GPUs that one inference job takes: none where the run says cpu."""
        return 0 if self.config.get("inference", {}).get("device") == "cpu" else 1


def prediction_files(entry: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the described files of an entry of known_predictions: its rows and, where published, its summary."""
    return [entry[key] for key in ("file", "summary") if key in entry]


def split_cell(text: str) -> tuple[str, str, str]:
    """Return the parts of a "model/precision/template" text (checked to be three before a plan is made)."""
    model, precision, template = text.split("/")
    return model, precision, template
