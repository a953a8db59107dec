"""Every table by name: where it is built and which files of a run it reads."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from readout_audit.errors import AuditError

if TYPE_CHECKING:
    from readout_audit.tables.base import Table
    from readout_audit.tables.inputs import RunTables


class Entry(NamedTuple):
    """One table.

    Attributes:
        module: the module whose `build(RunTables) -> Table` makes it.
        needs: the kinds of file it reads, out of `tables.inputs.SOURCES`, and `ORDER`.
        uses: the kinds it also reads where the run has them; without them its cells say what was not run.
        paper_only: its rows are the published ones, so a run that is not held against the paper leaves it out.
    """

    module: str
    needs: tuple[str, ...]
    uses: tuple[str, ...] = ()
    paper_only: bool = False


_HERE = "readout_audit.tables"

TABLES: dict[str, Entry] = {
    "table_01_first_tokens": Entry(f"{_HERE}.table_01_first_tokens", ("decisions", "claims")),
    "table_02_protocols": Entry(f"{_HERE}.table_02_protocols", ("scores", "gap")),
    "table_03_survey": Entry(f"{_HERE}.table_03_survey", ("scores", "claims"), paper_only=True),
    "table_04_readouts": Entry(f"{_HERE}.table_04_readouts", ("scores", "decisions", "claims")),
    "table_05_token_ids": Entry(f"{_HERE}.table_05_token_ids", ("decisions", "tokens", "claims")),
    "table_06_notation": Entry(f"{_HERE}.table_06_notation", ("transitions", "scores")),
    "table_07_transitions": Entry(f"{_HERE}.table_07_transitions", ("transitions", "gap", "scores")),
    "table_08_corrections": Entry(f"{_HERE}.table_08_corrections", ("corrections",)),
    "table_08_published": Entry(
        f"{_HERE}.table_08_published", ("claims", "scores"), uses=("corrections",), paper_only=True
    ),
    "table_09_group_means": Entry(f"{_HERE}.table_09_group_means", ("probe_groups",)),
    "table_09_published": Entry(
        f"{_HERE}.table_09_published", ("claims",), uses=("probe_groups",), paper_only=True
    ),
    "table_10_encodings": Entry(f"{_HERE}.table_10_encodings", ("tokens", "claims")),
    "table_11_templates": Entry(f"{_HERE}.table_11_templates", ("scores", "decisions")),
    "table_12_survey_readouts": Entry(
        f"{_HERE}.table_12_survey_readouts", ("scores", "claims"), paper_only=True
    ),
    "table_13_confusion": Entry(f"{_HERE}.table_13_confusion", ("scores",)),
    "table_best_beta": Entry(f"{_HERE}.table_best_beta", ("corrections",)),
    "table_correctness": Entry(f"{_HERE}.table_correctness", ("correctness",)),
    "table_printed_matrices": Entry(f"{_HERE}.table_printed_matrices", ("claims",), paper_only=True),
    "table_probe_comparisons": Entry(f"{_HERE}.table_probe_comparisons", ("probe_comparisons",)),
    "table_probe_passes": Entry(f"{_HERE}.table_probe_passes", ("probe",)),
    "table_excluded_logits": Entry(f"{_HERE}.table_excluded_logits", ("probe_excluded",)),
    "table_readout_matrix": Entry(f"{_HERE}.table_readout_matrix", ("scores", "readout_pairs")),
    "table_disagreements": Entry(f"{_HERE}.table_disagreements", ("readout_disagreements",)),
    "table_settings_audit": Entry(f"{_HERE}.table_settings_audit", ("scores", "settings_audit")),
    "table_releases": Entry(f"{_HERE}.table_releases", ("releases",)),
    "table_variance": Entry(f"{_HERE}.table_variance", ("variance",)),
}


def entry(name: str) -> Entry:
    """Return the entry of a table.

    Raises:
        AuditError: there is no such table.
    """
    if name not in TABLES:
        raise AuditError(f"There is no table {name!r}; the tables are {', '.join(TABLES)}.")
    return TABLES[name]


def get(name: str) -> "Callable[[RunTables], Table]":
    """Return the function that builds a table; its module is imported now."""
    build: Callable[[RunTables], Table] = importlib.import_module(entry(name).module).build
    return build
