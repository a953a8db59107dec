"""Stage: two releases of the same questions in one run, question by question."""

import csv
import io
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from readout_audit.compare.answers import answers_of
from readout_audit.compare.releases import CHANGED, RELEASES, compare_releases
from readout_audit.fileio import write_table, write_text

LOGGER = logging.getLogger(__name__)


def run(
    pairs: Sequence[tuple[Path, Path]],
    output: Path,
    changed_output: Path,
    csv_output: Path,
    records: Mapping[Path, Path] | None = None,
) -> None:
    """Compare each pair of decision files that differ in their release alone.

    Args:
        pairs: decision files, the release that the run names first on the left.
        output: counts and scores, in the form of `compare.releases.RELEASES`.
        changed_output: the questions that are answered otherwise, in the form of `compare.releases.CHANGED`.
        csv_output: the same as CSV, for reading.
        records: decision file -> its record file, where the source has one.

    Raises:
        AuditError: a file cannot be read, or its source does not know its questions.
    """
    held = records or {}
    counted: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for one, other in pairs:
        first, second = (answers_of("", str(path), path, held.get(path)) for path in (one, other))
        here, listed = compare_releases(first, second)
        counted += here
        changed += listed
    write_table(output, pa.Table.from_pylist(counted, schema=RELEASES), RELEASES, {"schema": 1})
    write_table(changed_output, pa.Table.from_pylist(changed, schema=CHANGED), CHANGED, {"schema": 1})
    write_text(csv_output, _csv(changed))
    LOGGER.info("%d pairs of cells: %d answers change with the release", len(pairs), len(changed))


def _csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the changed questions as CSV; what is not known is empty."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CHANGED.names)
    writer.writerows(["" if row[name] is None else row[name] for name in CHANGED.names] for row in rows)
    return stream.getvalue()
