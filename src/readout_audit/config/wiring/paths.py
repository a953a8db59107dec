"""Where files lie, and what every group of questions to the plan uses."""

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from readout_audit.config.plan import Cell, Plan
from readout_audit.digest import code_digest

FETCHED = "resources/fetched"
"""Where fetched files lie, under the same relative paths as in a mirror; shared by all runs."""


class Wildcards(Protocol):
    """The wildcards of a job; a rule has only some of them."""

    dataset: str
    model: str
    precision: str
    template: str
    labels: str


def source_arguments(sources: Mapping[str, list[str]]) -> str:
    """Return files by kind as command-line arguments."""
    return shlex.join([word for kind, files in sources.items() for word in (f"--{kind}", *files)])


def digest_with(stage: str, *modules: str) -> str:
    """Return the digest of a stage's code with that of modules a registry chose, by their full names."""
    return code_digest(stage, *(name.removeprefix("readout_audit.") for name in modules))


class Paths(Plan):
    """A checked plan with the paths of its cells and of described files."""

    @staticmethod
    def choice(names: Iterable[str]) -> str:
        """Return a regular expression for exactly these names, as a wildcard constraint."""
        return "|".join(re.escape(name) for name in names)

    def cell_files(self, pattern: str) -> list[str]:
        """Return one path per cell of the run from a pattern with {run} and {cell}."""
        return [pattern.replace("{run}", self.run).replace("{cell}", cell.path) for cell in self.cells]

    def _file(self, described: Mapping[str, Any]) -> str:
        """Return where a described file lies: made by this run, or fetched."""
        if "path" in described:
            return str(described["path"]).replace("{run}", self.run)
        return f"{FETCHED}/{described['mirror']}"

    @staticmethod
    def _cell(wildcards: Wildcards) -> Cell:
        """Return the cell that a job is about."""
        return Cell(wildcards.dataset, wildcards.model, wildcards.precision, wildcards.template)

    def described(self, wildcards: Wildcards) -> dict[str, str]:
        """Return a job's cell and the run's source, as the leading columns of the result tables."""
        return self._cell(wildcards).described(self.source)

    @property
    def _mirror_words(self) -> list[str]:
        """The mirror folder as arguments, if there is one."""
        return ["--mirror", self.config["mirror"]] if self.config["mirror"] else []
