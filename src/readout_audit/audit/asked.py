"""The cells of a run side by side: decisions, labels, images and near-ties of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from readout_audit.audit.steps import near_ties
from readout_audit.contracts import RECORDS, decisions_schema, readouts_of
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.matrix.resampled import Counted
from readout_audit.scores.bootstrap import Images, number_images
from readout_audit.scores.confusion import ABSENT, Confusion, count
from readout_audit.scores.decisions import Decisions, read_decisions
from readout_audit.scores.labels import LabelSet, label_sets

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """One cell.

    Attributes:
        decisions: its rows.
        label_sets: labels by name.
        near: readout of logits -> shape (n,), which rows are near-tied; empty without records.
    """

    decisions: Decisions
    label_sets: Mapping[str, LabelSet]
    near: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)

    @property
    def dataset(self) -> str:
        """The release that was asked."""
        return self.decisions.cell["dataset"]

    @property
    def name(self) -> str:
        """The cell in words."""
        return "/".join(self.decisions.cell.values())

    @cached_property
    def images(self) -> Images | None:
        """The numbered images; None where one is not known."""
        return number_images(self.decisions.identity["image"])

    @cached_property
    def image_names(self) -> tuple[str, ...]:
        """The images in the order of their numbers."""
        return tuple(sorted(pc.unique(self.decisions.identity["image"]).drop_null().to_pylist()))

    def rows(self, labels: str, split: str) -> Rows:
        """Return the labelled rows of a split."""
        labelled = self.label_sets[labels].codes != ABSENT
        return np.flatnonzero(self.decisions.in_split(split) & labelled)

    def has(self, readout: str, split: str) -> bool:
        """Tell whether the cell has a readout on a split."""
        known = readout in self.decisions.answers and split in self.decisions.splits
        return known and self.decisions.has(readout, split)

    def confusion(self, labels: str, split: str, readout: str) -> Confusion:
        """Return the counts of a readout on a split."""
        rows = self.rows(labels, split)
        return count(self.label_sets[labels].codes[rows], self.decisions.answers[readout][rows])

    def counted(self, labels: str, split: str, readout: str) -> Counted:
        """Return what resampling a readout on a split needs; the images must be known."""
        assert self.images is not None
        rows = self.rows(labels, split)
        codes = self.label_sets[labels].codes[rows]
        return Counted(self.images, rows, codes, self.decisions.answers[readout][rows])


def read_asked(
    decisions: Sequence[Path],
    records: Sequence[Path],
    relabel: Mapping[str, Sequence[Path]] | None,
    within: int,
) -> list[Asked]:
    """Read the cells of a run.

    Args:
        decisions: a decision file per cell.
        records: the record file of each, in that order; empty where the source has none.
        relabel: name of a further label set -> its question tables.
        within: steps within which a margin is a near-tie.

    Raises:
        AuditError: a file is missing or malformed, a cell comes twice, or a record file is another cell's.
    """
    if records and len(records) != len(decisions):
        raise AuditError(
            f"{len(decisions)} decision files and {len(records)} record files: give one of each per cell."
        )
    cells: list[Asked] = []
    for index, path in enumerate(decisions):
        rows = read_decisions(path)
        near = _near(path, records[index], rows, within) if records else {}
        cells.append(Asked(rows, {one.name: one for one in label_sets(rows, relabel)}, near))
    seen = [cell.name for cell in cells]
    for path, name in zip(decisions, seen, strict=True):
        if seen.count(name) > 1:
            raise AuditError(f"{path}: a second decision file of {name}; give each once.")
    return cells


def _near(path: Path, records: Path, decisions: Decisions, within: int) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the near-tied rows of a decision file, from the logits it was made of."""
    recorded = read_table(records, RECORDS, "the record file")
    meta = table_metadata(recorded)
    if meta.get("settings_id") != decisions.metadata.get("record_settings_id"):
        raise AuditError(f"{path} was not made from {records}: their settings differ; make it again.")
    place = pc.index_in(decisions.identity["uid"], value_set=recorded["uid"])
    if place.null_count:
        raise AuditError(f"{records}: {place.null_count} rows of {path} are not there; make it again.")
    readouts = readouts_of(pq.read_schema(path).empty_table())
    margins = read_table(path, decisions_schema(readouts), "the decision file")
    described = decisions.metadata.get("readouts", {})
    return near_ties(recorded.take(place), meta, described, margins, within)


def match(first: Asked, second: Asked, labels: str, split: str) -> tuple[Rows, Rows] | None:
    """Return the rows of a split that ask the same question in both cells, in the first one's order.

    A question that a split asks twice is matched once. None where a source does not know its questions or does
    not pair its readouts: then nobody can say which answers changed.
    """
    if not (first.decisions.joint and second.decisions.joint):
        return None
    here, there = (_questions(cell, labels, split) for cell in (first, second))
    if here is None or there is None:
        return None
    shared = [(row, there[uid]) for uid, row in here.items() if uid in there]
    pairs = np.array(shared, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _questions(cell: Asked, labels: str, split: str) -> dict[str, int] | None:
    """Return uid -> its first labelled row in a split; None where a uid is not known."""
    rows = cell.rows(labels, split)
    uids = cell.decisions.identity["uid"].take(pa.array(rows))
    if uids.null_count:
        return None
    found: dict[str, int] = {}
    for uid, row in zip(uids.to_pylist(), rows.tolist(), strict=True):
        found.setdefault(uid, row)
    return found
