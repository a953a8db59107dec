"""Stage: the scores of one decision file."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from readout_audit import contracts
from readout_audit.fileio import write_table
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.labels import label_sets
from readout_audit.scores.table import count_scores, score_table

LOGGER = logging.getLogger(__name__)


def run(
    decisions: Path,
    output: Path,
    relabel: Mapping[str, Sequence[Path]] | None = None,
    first: Sequence[int] = (),
) -> None:
    """Count one decision file and write its scores.

    Args:
        decisions: in the form of `contracts.decisions_schema`.
        output: written in the form of `contracts.SCORES`; its metadata names what is not there and why.
        relabel: name of a further label set -> its question tables.
        first: sizes N of the subsets `first_N`, by the release's order.

    Raises:
        AuditError: an input is missing, malformed, or contradicts itself.
    """
    rows = read_decisions(decisions)
    scores = count_scores(rows, label_sets(rows, relabel), first)
    for name, described in scores.notes["labels"].items():
        LOGGER.info("labels %s: %s rows, left out %s", name, described["rows"], described["left_out"])
    for name, described in scores.notes["not_available"].items():
        LOGGER.info("readout %s: %s", name, described)
    write_table(output, score_table(scores, {}), contracts.SCORES, scores.notes)
