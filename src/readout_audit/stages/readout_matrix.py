"""Stage: how the readouts of one cell differ, pair by pair, and the questions on which they do."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from readout_audit.contracts import decisions_schema, readouts_of
from readout_audit.fileio import read_table, replacing, write_table
from readout_audit.matrix.disagreements import list_disagreements
from readout_audit.matrix.pairs import pair_table
from readout_audit.matrix.schema import READOUT_PAIRS
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.labels import label_sets

LOGGER = logging.getLogger(__name__)


def run(
    decisions: Path,
    pairs_output: Path,
    listing_output: Path,
    csv_output: Path,
    relabel: Mapping[str, Sequence[Path]] | None = None,
    resamples: int = 0,
    seed: int = 42,
) -> None:
    """Compare every pair of readouts of a decision file and list the questions on which any two differ.

    Args:
        decisions: in the form of `contracts.decisions_schema`.
        pairs_output: written in the form of `matrix.pairs.READOUT_PAIRS`.
        listing_output: written in the form of `matrix.disagreements.listing_schema`.
        csv_output: the same rows as CSV; an empty field is null, a text is quoted.
        relabel: name of a further label set -> its question tables.
        resamples: bootstrap samples over images; 0 leaves the intervals empty.
        seed: of that draw; with the seed of the scores, the resamples are theirs.

    Raises:
        AuditError: an input is missing or malformed.
    """
    rows = read_decisions(decisions)
    pairs, notes = pair_table(rows, label_sets(rows, relabel), resamples, seed)
    readouts = readouts_of(pq.read_schema(decisions).empty_table())
    table = read_table(decisions, decisions_schema(readouts), "the decision file")
    listing = list_disagreements(table, rows)
    LOGGER.info("%d of %d questions are read differently by two readouts", listing.num_rows, table.num_rows)
    described = {
        "schema": 1,
        "cell": rows.cell,
        "joint": rows.joint,
        "rows": {split: int(rows.in_split(split).sum()) for split in rows.splits},
        "not_available": rows.unavailable,
    }
    write_table(pairs_output, pairs, READOUT_PAIRS, notes)
    write_table(listing_output, listing, listing.schema, described)
    write_csv(csv_output, listing)


def write_csv(path: Path, table: pa.Table) -> None:
    """Write a table as CSV with one heading line, atomically."""
    with replacing(path) as temporary:
        csv.write_csv(table, temporary)
