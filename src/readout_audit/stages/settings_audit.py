"""Stage: the same questions under other settings and of other models, compared answer by answer."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from readout_audit.audit.asked import read_asked
from readout_audit.audit.comparisons import compare_cells, describe
from readout_audit.audit.schema import COMPARISONS
from readout_audit.audit.steps import NEAR
from readout_audit.fileio import write_table

LOGGER = logging.getLogger(__name__)


def run(
    decisions: Sequence[Path],
    output: Path,
    records: Sequence[Path] = (),
    gap_pair: tuple[str, str] | None = None,
    relabel: Mapping[str, Sequence[Path]] | None = None,
    resamples: int = 0,
    seed: int = 42,
    within: int = NEAR,
) -> None:
    """Compare each cell with its model's first one, and the models that were asked alike.

    Args:
        decisions: a decision file per cell, in the order of the run: the first of a model is its reference.
        output: written in the form of `audit.comparisons.COMPARISONS`.
        records: the record file of each cell, in that order; without them near-ties are not counted.
        gap_pair: the readouts of the gap, (from, to).
        relabel: name of a further label set -> its question tables.
        resamples: bootstrap samples over images; 0 leaves the intervals empty.
        seed: of that draw; with the seed of the scores, the resamples are theirs.
        within: steps of the arithmetic within which a margin is a near-tie.

    Raises:
        AuditError: an input is missing or malformed, or belongs to another cell.
    """
    cells = read_asked(decisions, records, relabel, within)
    table = compare_cells(cells, gap_pair, resamples, seed)
    LOGGER.info("%d cells, %d comparisons", len(cells), table.num_rows)
    write_table(output, table, COMPARISONS, describe(cells, resamples, seed, within))
