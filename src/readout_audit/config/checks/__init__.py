"""What a schema cannot say: that names are known, that they fit together, and that folders are there.

Each check yields one sentence per fault; `load_plan` reports the first. They run while the workflow is
parsed, because Snakemake calls a file that exists up to date even when no rule could make it any more.
"""

from collections.abc import Callable, Iterator

from readout_audit.config.checks.datasets import (
    check_labels,
    check_own_files,
    check_pictures,
    check_release_pair,
    check_releases,
)
from readout_audit.config.checks.known import Config, Known
from readout_audit.config.checks.models import check_measured, check_models, check_servers, check_signals
from readout_audit.config.checks.run import (
    check_cells,
    check_names,
    check_prompts,
    check_reference,
    check_splits,
    check_templates,
)
from readout_audit.config.checks.sources import (
    check_diagnostic,
    check_folders,
    check_predictions,
    check_source,
)

CHECKS: tuple[Callable[[Config, Known], Iterator[str]], ...] = (
    check_names,
    check_cells,
    check_releases,
    check_splits,
    check_templates,
    check_prompts,
    check_models,
    check_servers,
    check_folders,
    check_own_files,
    check_pictures,
    check_source,
    check_predictions,
    check_reference,
    check_labels,
    check_signals,
    check_diagnostic,
    check_measured,
    check_release_pair,
)
"""In this order: later checks rely on the names that earlier ones have found to be known."""
