"""Checkpoints, servers, and the digests of the code that asks them."""

import shlex
from pathlib import Path

from readout_audit.config.plan import SERVED
from readout_audit.config.wiring.paths import FETCHED, Wildcards, digest_with
from readout_audit.config.wiring.questions import Questions
from readout_audit.digest import code_digest
from readout_audit.inference.registry import module_of as engine_module
from readout_audit.models.registry import module_of as adapter_module


class Models(Questions):
    """What stands for a model in the graph, and what determines its answers."""

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

    def mirrored_tokenizer(self, name: str) -> Path | None:
        """Return the folder of the mirror that holds a model's tokenizer, with its weights or alone."""
        if not self.config["mirror"]:
            return None
        repository = str(self.model(name)["repository"])
        alone = f"tokenizers/{repository.rpartition('/')[2].lower()}"
        folders = (Path(self.config["mirror"], part) for part in (f"models/{name}", alone))
        return next((folder for folder in folders if folder.is_dir()), None)

    @property
    def token_maps(self) -> dict[str, str]:
        """The token map of each local model: made by this run, of its tokenizer, or come with the records."""
        maps = {model: f"{self.records_folder()}/tokens/{model}.json" for model in self.local_models}
        if self.source == "inference":
            return maps
        if self.source == "files":
            return {model: path for model, path in maps.items() if Path(path).is_file()}
        return {model: path for model, path in maps.items() if self.mirrored_tokenizer(model)}

    def tokenizer_folder(self, wildcards: Wildcards) -> str:
        """Return the folder of a model's tokenizer."""
        if self.source == "inference":
            return self.checkpoint(wildcards.model)
        return str(self.mirrored_tokenizer(wildcards.model))

    def tokenizer_files(self, wildcards: Wildcards) -> list[str]:
        """Return what stands for a tokenizer in the graph."""
        if self.source == "inference":
            return self._checkpoint_files(wildcards.model)
        return sorted(str(file) for file in Path(self.tokenizer_folder(wildcards)).glob("*.json"))

    def template_json(self, wildcards: Wildcards) -> str:
        """Return the prompts of a model that this run uses, as canonical JSON."""
        return self.templates(wildcards.model)

    def settings_json(self, wildcards: Wildcards) -> str:
        """Return everything that determines a cell's answers, as canonical JSON."""
        return self.settings(wildcards.model, wildcards.precision, wildcards.template)

    def inference_digest(self, wildcards: Wildcards) -> str:
        """Return the digest of the code that asks a model: the stage, its adapter and the engine."""
        adapter = adapter_module(self.model(wildcards.model)["adapter"])
        engine = engine_module(self.config["inference"]["engine"])
        return digest_with("ask_model", adapter, engine)

    def verification_digest(self, wildcards: Wildcards) -> str:
        """Return the digest of the code that asks a sample again: the stage and the model's adapter."""
        adapter = adapter_module(self.model(wildcards.model)["adapter"])
        return digest_with("verify_engine", adapter)

    @property
    def verified_files(self) -> list[str]:
        """The reports of the engine's check on a sample, for runs that ask models and want one."""
        if self.source != "inference" or not self.config["inference"]["verify_sample"]:
            return []
        local = (cell for cell in self.cells if not self.is_served(cell.model))
        return [f"results/{self.run}/verified/{cell.path}.json" for cell in local]

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
