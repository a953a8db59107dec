"""Stage: the scores of one decision file."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from readout_audit import contracts
from readout_audit.fileio import write_table
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.intervals import score_intervals
from readout_audit.scores.labels import label_sets
from readout_audit.scores.table import count_scores, score_table

LOGGER = logging.getLogger(__name__)


def run(
    decisions: Path,
    output: Path,
    relabel: Mapping[str, Sequence[Path]] | None = None,
    first: Sequence[int] = (),
    resamples: int = 0,
    seed: int = 42,
) -> None:
    """Count one decision file and write its scores.

    Args:
        decisions: in the form of `contracts.decisions_schema`.
        output: written in the form of `contracts.SCORES`; its metadata names what is not there and why.
        relabel: name of a further label set -> its question tables.
        first: sizes N of the subsets `first_N`, by the release's order.
        resamples: bootstrap samples over images for the intervals; 0 leaves them empty.
        seed: of that draw.

    Raises:
        AuditError: an input is missing, malformed, or contradicts itself.
    """
    rows = read_decisions(decisions)
    sets = label_sets(rows, relabel)
    scores = count_scores(rows, sets, first)
    intervals = score_intervals(rows, sets, scores, resamples, seed)
    for name, described in scores.notes["labels"].items():
        LOGGER.info("labels %s: %s rows, left out %s", name, described["rows"], described["left_out"])
    for name, described in scores.notes["not_available"].items():
        LOGGER.info("readout %s: %s", name, described)
    notes = scores.notes | {"bootstrap": intervals.note}
    write_table(output, score_table(scores, intervals.columns), contracts.SCORES, notes)
