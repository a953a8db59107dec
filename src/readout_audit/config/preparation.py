"""The one call with which the workflow begins: its configuration, checked, or one sentence and the end."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from readout_audit.claims.numbers import read_numbers, select
from readout_audit.config.checks.known import Known
from readout_audit.config.load import check_files, load_plan
from readout_audit.config.wiring import Wiring
from readout_audit.config.wiring.measures import MEASURED, SERVED_BY
from readout_audit.config.wiring.products import NUMBERS
from readout_audit.corrections.registry import CORRECTIONS
from readout_audit.errors import AuditError
from readout_audit.figures.registry import FIGURES
from readout_audit.inference.registry import ENGINES
from readout_audit.models.registry import ADAPTERS
from readout_audit.readouts.registry import READOUTS
from readout_audit.sources.published import KEYS
from readout_audit.tables.registry import TABLES


def known_names() -> Known:
    """Return the names that the registries know; nothing they name is imported."""
    entries = {**TABLES, **FIGURES}
    printed = select(read_numbers(Path(NUMBERS)), section="Table 4")
    return Known(
        adapters=frozenset(ADAPTERS),
        engines=frozenset(ENGINES),
        readouts=frozenset(READOUTS),
        tables=frozenset(TABLES),
        figures=frozenset(FIGURES),
        order_bound=frozenset(name for name, entry in entries.items() if "order" in entry.needs),
        signal_bound={
            name: kinds
            for name, entry in entries.items()
            if (kinds := frozenset(entry.needs) & frozenset(MEASURED))
        },
        served_by=SERVED_BY,
        corrections=frozenset(CORRECTIONS),
        release_bound=frozenset(name for name, entry in entries.items() if "releases" in entry.needs),
        counted_models=frozenset(number.model for number in printed),
        counted_readouts=frozenset(number.readout for number in printed),
        published_readouts=frozenset(KEYS.values()),
    )


def prepare(config: Mapping[str, Any], files: Sequence[str], workflow_folder: str) -> Wiring:
    """Return the checked plan of a run; on a fault print one sentence and end the process with status 1.

    Args:
        config: Snakemake's merged configuration.
        files: the configuration files it was merged from.
        workflow_folder: folder of the Snakefile.
    """
    # Jobs find the interpreter that runs Snakemake also where its folder is not on PATH.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    try:
        check_files([Path(file) for file in files])
        plan = load_plan(config, Path(workflow_folder) / "workflow/schemas", known_names())
    except AuditError as error:
        sys.exit(f"error: {error}")
    return Wiring(plan.config)
