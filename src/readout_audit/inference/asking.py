"""The loop that asks: takes images one by one, skips what is finished, keeps every answer at once."""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from readout_audit.inference.base import Engine, ImageJob, Question
from readout_audit.inference.images import ImageFile, decode, load_file
from readout_audit.inference.parts import PartsStore
from readout_audit.inference.records import Row, invalid_row, measure

LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pending:
    """One image with the questions about it that have no answer yet."""

    file: ImageFile
    questions: tuple[Question, ...]


def load_images(folder: Path, questions: Sequence[Question]) -> Iterator[Pending]:
    """Yield each image's file with its questions, in order of first appearance."""
    by_image: dict[str, list[Question]] = {}
    for question in questions:
        by_image.setdefault(question.image, []).append(question)
    for name, asked in by_image.items():
        yield Pending(load_file(folder, name), tuple(asked))


def split_finished(
    images: Iterator[Pending], finished: dict[tuple[str, str], Row]
) -> tuple[list[Row], list[Pending]]:
    """Return the rows that need no asking, and the images with what is left to ask about them.

    Rows of unreadable files count as needing none: they are named again on every run and never kept as
    parts, so that a repaired file is asked about.
    """
    rows: list[Row] = []
    pending: list[Pending] = []
    for image in images:
        if image.file.sha256 is None:
            reason = image.file.fault or "the image file cannot be read"
            rows.extend(invalid_row(question, None, reason) for question in image.questions)
            continue
        left, sha256 = [], image.file.sha256
        for question in image.questions:
            row = finished.get((question.uid, sha256))
            if row is None:
                left.append(question)
            else:
                # What was measured holds for (uid, image); what names it is this question table's.
                rows.append({**row, "object": question.object, "image": question.image})
        if left:
            pending.append(Pending(image.file, tuple(left)))
    return rows, pending


class Asker:
    """Asks an engine about pending images and keeps the answers as parts."""

    def __init__(
        self,
        engine: Engine,
        store: PartsStore,
        candidates: list[int],
        advance: Callable[[int], None],
    ) -> None:
        """Take what asking needs; `advance` is told of every question that is done."""
        self.engine, self.store, self.advance = engine, store, advance
        self.candidates: NDArray[np.int64] = np.asarray(candidates, dtype=np.int64)

    def ask(self, pending: Sequence[Pending]) -> list[Row]:
        """Return one row per pending question.

        Images that another process is busy with are left to the end; by then it has usually finished
        them, and its answers are taken.
        """
        rows: list[Row] = []
        waiting = list(pending)
        for wait in (False, True):
            later: list[Pending] = []
            step = self.engine.images_per_call if not wait else 1
            for start in range(0, len(waiting), step):
                mine = [item for item in waiting[start : start + step] if self._take(item, wait, later)]
                rows.extend(self._ask_locked(mine))
            waiting = later
        return rows

    def _take(self, item: Pending, wait: bool, later: list[Pending]) -> bool:
        if self.store.lock(item.file.name, wait):
            return True
        later.append(item)
        return False

    def _ask_locked(self, mine: list[Pending]) -> list[Row]:
        """Ask about locked images, after a look at what was finished while waiting for their locks."""
        rows: list[Row] = []
        left: list[Pending] = []
        for item in mine:
            done, still = split_finished(iter([item]), self.store.finished(item.file.name))
            rows.extend(done)
            self.advance(len(done))
            left.extend(still)
        rows.extend(self._answers(left))
        for item in mine:
            self.store.unlock(item.file.name)
        return rows

    def _answers(self, pending: list[Pending]) -> list[Row]:
        """Decode, ask, and write one part per image."""
        rows: list[Row] = []
        readable: list[Pending] = []
        jobs: list[ImageJob] = []
        for item in pending:
            pixels, fault = decode(item.file)
            if pixels is None:
                LOGGER.warning("%s", fault)
                rows.extend(
                    invalid_row(question, item.file.sha256, str(fault)) for question in item.questions
                )
                self.advance(len(item.questions))
            else:
                readable.append(item)
                jobs.append(ImageJob(pixels, item.questions))
        measured = self._measure(readable, jobs)
        for item in readable:
            part = measured[item.file.name]
            self.store.add(item.file.name, part)
            rows.extend(part)
        return rows

    def _measure(self, readable: list[Pending], jobs: list[ImageJob]) -> dict[str, list[Row]]:
        """Return the rows of each image."""
        hashes = {item.file.name: str(item.file.sha256) for item in readable}
        measured: dict[str, list[Row]] = {name: [] for name in hashes}
        for answer in self.engine.answer(jobs) if jobs else ():
            name = answer.question.image
            if answer.fault is not None:
                LOGGER.warning("question %s: %s", answer.question.uid, answer.fault)
            measured[name].append(measure(answer, hashes[name], self.candidates, self.engine.model))
            self.advance(1)
        return measured
