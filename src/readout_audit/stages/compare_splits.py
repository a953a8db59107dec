"""Stage: whether the splits of one run answer their common questions alike."""

import logging
from pathlib import Path

import pyarrow as pa

from readout_audit.fileio import write_table
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.self_agreement import (
    AGREEMENT,
    DISAGREEMENTS,
    WORDINGS,
    compare,
    splits_as_sides,
    verdict,
)

LOGGER = logging.getLogger(__name__)


def run(decisions: Path, agreement_output: Path, disagreements_output: Path) -> None:
    """Compare every pair of splits of a decision file.

    Args:
        decisions: in the form of `contracts.decisions_schema`, with the questions known.
        agreement_output: counts, written in the form of `self_agreement.AGREEMENT`; the verdicts, one sentence
            per pair and readout, are in its metadata.
        disagreements_output: the questions, written in the form of `self_agreement.DISAGREEMENTS`.

    Raises:
        AuditError: the file is missing or malformed, or does not know its questions.
    """
    rows = read_decisions(decisions)
    compared = [compare(first, second) for first, second in splits_as_sides(rows)]
    agreement = pa.concat_tables([AGREEMENT.empty_table(), *(counts for counts, _ in compared)])
    disagreements = pa.concat_tables([DISAGREEMENTS.empty_table(), *(listed for _, listed in compared)])
    verdicts = verdict(agreement)
    notes = {"schema": 1, "cell": rows.cell, "wordings": WORDINGS, "verdicts": verdicts}
    for sentence in verdicts:
        LOGGER.info("%s", sentence)
    write_table(agreement_output, agreement, AGREEMENT, notes)
    write_table(disagreements_output, disagreements, DISAGREEMENTS, notes)
