"""Where fetched and made files come from."""

import shlex
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from readout_audit.config.plan import prediction_files
from readout_audit.config.wiring.paths import Paths, Wildcards


class Fetching(Paths):
    """The arguments of the stages that fetch, and of the one that makes random stand-ins."""

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
