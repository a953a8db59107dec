"""Finished signals, kept as finished answers are (`inference/parts.py`): one small file per image."""

import logging
from collections.abc import Iterable
from pathlib import Path

from readout_audit.errors import AuditError
from readout_audit.fileio import canonical_json, read_table, sha256_text, write_table
from readout_audit.inference.parts import PartsStore
from readout_audit.signals.rows import Row, table
from readout_audit.signals.schema import SIGNALS

LOGGER = logging.getLogger(__name__)


class SignalsStore(PartsStore):
    """The parts of one fingerprint, under the signals' columns; folder, locks and facts as in `PartsStore`."""

    def __enter__(self) -> "SignalsStore":
        return self

    def finished(self) -> dict[tuple[str, str], Row]:
        """Return the finished rows by (uid, image hash); see `PartsStore`."""
        for path in sorted(self.folder.glob("[!.]*.parquet")):
            if path.name in self._seen:
                continue
            self._seen.add(path.name)
            try:
                part = read_table(path, SIGNALS, "the part file")
            except AuditError as error:
                LOGGER.warning("%s It is ignored and its questions are measured again.", error)
                continue
            for row in part.to_pylist():
                self._rows[row["uid"], row["image_sha256"]] = row
        return self._rows

    def add(self, rows: Iterable[Row]) -> Path:
        """Write rows as one part, whole or not at all."""
        kept = sorted(rows, key=lambda row: str(row["uid"]))
        content = canonical_json([[row["uid"], row["image_sha256"]] for row in kept])
        path = self.folder / f"{sha256_text(content)[:32]}.parquet"
        write_table(path, table(kept), SIGNALS)
        return path
