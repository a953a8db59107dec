"""The loop that asks: takes images one by one, skips what is finished, keeps every answer at once."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
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
    """One image with the questions about it that have no answer yet.

    Attributes:
        place: where the image stands among all of the shard, from 0.
        file: its bytes.
        questions: what to ask.
    """

    place: int
    file: ImageFile
    questions: tuple[Question, ...]


def load_images(folder: Path, questions: Sequence[Question]) -> Iterator[Pending]:
    """Yield each image's file with its questions, in order of first appearance."""
    by_image: dict[str, list[Question]] = {}
    for question in questions:
        by_image.setdefault(question.image, []).append(question)
    for place, (name, asked) in enumerate(by_image.items()):
        yield Pending(place, load_file(folder, name), tuple(asked))


def split_finished(
    images: Iterable[Pending], finished: dict[tuple[str, str], Row]
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
            pending.append(Pending(image.place, image.file, tuple(left)))
    return rows, pending


class Asker:
    """Asks an engine about pending images and keeps the answers as parts.

    Attributes:
        asked: how many questions this process itself has put to the model.
    """

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
        self.asked = 0

    def ask(self, pending: Sequence[Pending]) -> list[Row]:
        """Return one row per pending question.

        Images go to the engine in the groups that their places in the shard give them, whatever is
        already answered, so that a job that was killed goes on with the same batches. Images that another
        process is busy with are left to the end; by then it has usually finished them, and its answers
        are taken.
        """
        rows: list[Row] = []
        later: list[Pending] = []
        size = self.engine.images_per_call
        for _, members in groupby(pending, key=lambda item: item.place // size):
            mine = [item for item in members if self._take(item, later)]
            rows.extend(self._ask_locked(mine))
        for item in later:
            self.store.lock(item.file.name, wait=True)
            rows.extend(self._ask_locked([item]))
        return rows

    def _take(self, item: Pending, later: list[Pending]) -> bool:
        if self.store.lock(item.file.name, wait=False):
            return True
        later.append(item)
        return False

    def _ask_locked(self, mine: list[Pending]) -> list[Row]:
        """Ask about locked images, after a look at what others finished in the meantime."""
        rows, left = split_finished(mine, self.store.finished())
        self.advance(len(rows))
        rows.extend(self._answers(left))
        for item in mine:
            self.store.unlock(item.file.name)
        return rows

    def _answers(self, pending: list[Pending]) -> list[Row]:
        """Decode, ask, and write what was answered as one part."""
        rows: list[Row] = []
        hashes: dict[str, str] = {}
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
                hashes[item.file.name] = str(item.file.sha256)
                jobs.append(ImageJob(pixels, item.questions))
        measured = self._measure(jobs, hashes)
        if measured:
            self.store.add(measured)
        return [*rows, *measured]

    def _measure(self, jobs: list[ImageJob], hashes: dict[str, str]) -> list[Row]:
        """Return the rows of the engine's answers; `hashes` are the image files' by name."""
        measured: list[Row] = []
        for answer in self.engine.answer(jobs) if jobs else ():
            if answer.fault is not None:
                LOGGER.warning("question %s: %s", answer.question.uid, answer.fault)
            sha256 = hashes[answer.question.image]
            measured.append(measure(answer, sha256, self.candidates, self.engine.model))
            self.asked += 1
            self.advance(1)
        return measured
