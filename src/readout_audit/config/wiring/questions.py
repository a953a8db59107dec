"""Questions, label sets, pictures, and the answers that the authors published."""

import shlex
from collections.abc import Mapping
from typing import Any

from readout_audit.config.plan import prediction_files
from readout_audit.config.wiring.paths import Paths, Wildcards
from readout_audit.fileio import canonical_json


class Questions(Paths):
    """The files of questions and of published answers, and how they are named to the stages."""

    def release(self, dataset: str) -> Mapping[str, Any]:
        """Return a release's entry of datasets.yaml."""
        entry: Mapping[str, Any] = self.config["known_datasets"][dataset]
        return entry

    def label_set(self, name: str) -> Mapping[str, Any]:
        """Return a label set's entry of datasets.yaml."""
        entry: Mapping[str, Any] = self.config["known_labels"][name]
        return entry

    def split_files(self, entry: Mapping[str, Any]) -> dict[str, str]:
        """Return split -> file of a release or label set, for the splits of this run."""
        return {split: self._file(entry["splits"][split]) for split in self.config["splits"]}

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

    def published_splits(self, wildcards: Wildcards) -> list[str]:
        """Return the splits of the run that a cell's published decisions have."""
        has = self._published(wildcards)["splits"]
        return [split for split in self.config["splits"] if split in has]

    def published_files(self, wildcards: Wildcards) -> list[str]:
        """Return the published decision files of a cell, in the order of `published_splits`."""
        has = self._published(wildcards)["splits"]
        return [self._file(has[split]) for split in self.published_splits(wildcards)]

    def diagnostic_file(self, wildcards: Wildcards) -> str:
        """Return the published diagnostic file of a cell."""
        return self._file(self._published(wildcards)["diagnostic"])

    def _published(self, wildcards: Wildcards) -> Mapping[str, Any]:
        """Return the entry of a cell's published decisions, which was checked to be there."""
        entry = self.published_entry(wildcards)
        assert entry is not None
        return entry

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
