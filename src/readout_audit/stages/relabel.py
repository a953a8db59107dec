"""Stage: the gap under corrected labels, and the objects and images that carry the flips."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from readout_audit.fileio import write_table
from readout_audit.gap.relabel import (
    CARRIERS,
    RELABELLED,
    flip_carriers,
    relabelled_gaps,
    relabelled_table,
)
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.labels import label_sets


def run(
    decisions: Path,
    gaps_output: Path,
    carriers_output: Path,
    relabel: Mapping[str, Sequence[Path]],
    pair: tuple[str, str],
) -> None:
    """Score one pair of readouts under every mixture of the file's own and another set's labels and rows.

    Args:
        decisions: in the form of `contracts.decisions_schema`.
        gaps_output: written in the form of `relabel.RELABELLED`, five rows per split and label set.
        carriers_output: written in the form of `relabel.CARRIERS`, for every label set, the own one included.
        relabel: name of a label set -> its question tables.
        pair: (from, to) readouts.

    Raises:
        AuditError: an input is missing or malformed, or the file does not hold the pair, question by question.
    """
    rows = read_decisions(decisions)
    sets = label_sets(rows, relabel)
    gaps = [relabelled_table(other.name, *pair, relabelled_gaps(rows, other, *pair)) for other in sets[1:]]
    carriers = [flip_carriers(rows, one, *pair, by) for one in sets for by in ("object", "image")]
    notes = {"schema": 1, "cell": rows.cell, "labels": {one.name: one.describe() for one in sets}}
    write_table(gaps_output, pa.concat_tables([RELABELLED.empty_table(), *gaps]), RELABELLED, notes)
    write_table(carriers_output, pa.concat_tables([CARRIERS.empty_table(), *carriers]), CARRIERS, notes)
