"""The loop that measures: takes images one by one, skips what is finished, keeps every row at once."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from readout_audit.inference.asking import Pending
from readout_audit.inference.base import ImageJob, Question
from readout_audit.inference.images import decode
from readout_audit.inference.parts import PartsStore
from readout_audit.signals.measuring import Measurer
from readout_audit.signals.rows import OK, Row, invalid_row

LOGGER = logging.getLogger(__name__)

Records = Mapping[str, Mapping[str, Any]]
"""Rows of the record file by uid."""


def split_finished(
    images: Iterable[Pending], finished: Mapping[tuple[str, str], Row], records: Records
) -> tuple[list[Row], list[Pending]]:
    """Return the rows that need no measuring, and the images with what is left to measure.

    A question whose record is invalid, or is of another image file, has no signals either: it is named on
    every run and never kept as a part, so that a repaired record is measured.
    """
    rows: list[Row] = []
    pending: list[Pending] = []
    for image in images:
        left = []
        for question in image.questions:
            fault = fault_of(question, image.file.sha256, image.file.fault, records)
            if fault is not None:
                rows.append(invalid_row(question, image.file.sha256, fault))
                continue
            row = finished.get((question.uid, str(image.file.sha256)))
            if row is None:
                left.append(question)
            else:
                rows.append({**row, "image": question.image})
        if left:
            pending.append(Pending(image.place, image.file, tuple(left)))
    return rows, pending


def fault_of(question: Question, sha256: str | None, fault: str | None, records: Records) -> str | None:
    """Return why a question cannot be measured, as far as file and record tell; None where it can."""
    record = records[question.uid]
    if sha256 is None:
        return fault or "the image file cannot be read"
    if record["status"] != OK:
        return f"the record is invalid: {record['reason']}"
    if record["image_sha256"] != sha256:
        return f"{question.image}: the image file is another than the one the record is about"
    return None


class Computer:
    """Measures pending images and keeps the rows as parts."""

    def __init__(
        self, measurer: Measurer, store: PartsStore, records: Records, advance: Callable[[int], None]
    ) -> None:
        """Take what measuring needs; `advance` is told of every question that is done."""
        self.measurer, self.store, self.records, self.advance = measurer, store, records, advance

    def compute(self, pending: Sequence[Pending]) -> list[Row]:
        """Return one row per pending question.

        Images that another process is busy with are left to the end; by then it has usually finished them,
        and its rows are taken.
        """
        rows: list[Row] = []
        later: list[Pending] = []
        for item in pending:
            if self.store.lock(item.file.name, wait=False):
                rows.extend(self._compute_locked(item))
            else:
                later.append(item)
        for item in later:
            self.store.lock(item.file.name, wait=True)
            rows.extend(self._compute_locked(item))
        return rows

    def _compute_locked(self, item: Pending) -> list[Row]:
        """Measure a locked image, after a look at what others finished in the meantime."""
        rows, left = split_finished([item], self.store.finished(), self.records)
        for image in left:
            rows.extend(self._measure(image))
        self.store.unlock(item.file.name)
        self.advance(len(item.questions))
        return rows

    def _measure(self, item: Pending) -> list[Row]:
        """Decode an image, measure its questions, and write them as one part."""
        sha256 = str(item.file.sha256)
        pixels, fault = decode(item.file)
        if pixels is None:
            LOGGER.warning("%s", fault)
            return [invalid_row(question, sha256, str(fault)) for question in item.questions]
        new_ids = {question.uid: tuple(self.records[question.uid]["new_ids"]) for question in item.questions}
        rows = self.measurer.measure(ImageJob(pixels, item.questions), sha256, new_ids)
        self.store.add(rows)
        return rows
