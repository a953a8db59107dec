"""Stage: which setting moves F1 most, as variance components over a balanced grid."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from readout_audit.audit.asked import read_asked
from readout_audit.audit.decomposition import variance_table
from readout_audit.audit.schema import VARIANCE
from readout_audit.audit.steps import NEAR
from readout_audit.fileio import write_table

LOGGER = logging.getLogger(__name__)


def run(
    decisions: Sequence[Path],
    output: Path,
    readouts: Sequence[str],
    relabel: Mapping[str, Sequence[Path]] | None = None,
    resamples: int = 0,
    seed: int = 42,
) -> None:
    """Take the variance of F1 over the cells of a run apart.

    Args:
        decisions: a decision file per cell of the grid.
        output: written in the form of `audit.decomposition.VARIANCE`.
        readouts: the readouts of the grid.
        relabel: name of a further label set -> its question tables.
        resamples: bootstrap samples over images; 0 leaves the intervals empty.
        seed: of that draw; with the seed of the scores, the resamples are theirs.

    Raises:
        AuditError: an input is missing or malformed, or a combination of the grid has no F1.
    """
    cells = read_asked(decisions, (), relabel, NEAR)
    table, notes = variance_table(cells, readouts, resamples, seed)
    LOGGER.info("%d cells, %d components", len(cells), table.num_rows)
    write_table(output, table, VARIANCE, notes)
