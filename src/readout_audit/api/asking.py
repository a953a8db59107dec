"""The loop that asks a server: several questions in flight, every answer kept at once, an end when nothing helps."""

import logging
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from readout_audit.api.client import Client, RefusedError
from readout_audit.api.pace import Pace, StoppedError
from readout_audit.api.pictures import data_uri, file_hash
from readout_audit.api.reply import Reply, UnusableError, read_reply
from readout_audit.api.settings import ApiSettings
from readout_audit.api.store import ReplyStore
from readout_audit.errors import AuditError

LOGGER = logging.getLogger(__name__)

FIRST_FAULTS, FAULTS_IN_A_ROW = 3, 20
"""So many questions without a usable answer, before the first good one and after it, end the job."""
_LOG_SECONDS = 30.0


@dataclass(frozen=True)
class Question:
    """One distinct question: what names it, and the user's message that asks it."""

    uid: str
    image: str
    object: str | None
    question: str
    message: str


@dataclass(frozen=True)
class Answered:
    """What came of one question: a reply, or why there is none (`fault`), and whether the server gave the reason."""

    question: Question
    image_sha256: str | None
    reply: Reply | None = None
    fault: str | None = None
    by_server: bool = False


def split_kept(
    questions: Sequence[Question], store: ReplyStore, images: Path | None
) -> tuple[list[Answered], list[Question]]:
    """Return the questions with a kept reply, and the others; without `images` no picture is sent."""
    names = {question.image for question in questions}
    hashes = {name: file_hash(images, name) if images else None for name in names}
    kept, pending = [], []
    for question in questions:
        sha256 = hashes[question.image]
        reply = store.get((question.uid, sha256))
        if reply is None:
            pending.append(question)
        else:
            kept.append(Answered(question, sha256, reply))
    return kept, pending


class Asker:
    """Asks a server what is pending and keeps the replies."""

    def __init__(
        self,
        settings: ApiSettings,
        client: Client,
        pace: Pace,
        store: ReplyStore,
        images: Path | None,
        in_flight: int,
    ) -> None:
        """Take what asking needs; `images` is the folder of the pictures, None where none is sent."""
        self.settings, self.client, self.pace, self.store = settings, client, pace, store
        self.images, self.in_flight = images, in_flight
        self._good = self._faults = 0
        self._logged = time.monotonic()

    def ask(self, pending: Sequence[Question]) -> list[Answered]:
        """Return what came of each question, in any order.

        One at a time until the first good answer, so that a server that cannot be used is asked little.

        Raises:
            AuditError: the server cannot be used; what it answered before is kept.
        """
        answered: list[Answered] = []
        waiting = iter(pending)
        with ThreadPoolExecutor(self.in_flight) as pool:
            live: set[Future[Answered]] = set()
            try:
                while True:
                    room = (self.in_flight if self._good else 1) - len(live)
                    live.update(pool.submit(self._one, item) for item in islice(waiting, max(room, 0)))
                    if not live:
                        break
                    for future in wait(live, return_when=FIRST_COMPLETED).done:
                        live.discard(future)
                        answered.append(self._keep(future.result()))
                        self._log(len(answered), len(pending))
            except BaseException:
                self.pace.stop()
                self._drain(live)
                raise
        self._check_any()
        return answered

    def _one(self, question: Question) -> Answered:
        """Ask one question; runs in a thread of the pool."""
        uri = sha256 = None
        if self.images is not None:
            uri, sha256, fault = data_uri(self.images, question.image)
            if fault is not None:
                return Answered(question, sha256, fault=fault)
        try:
            value = self.client.ask(self.settings.body(question.message, uri))
            return Answered(question, sha256, reply=read_reply(value))
        except (RefusedError, UnusableError) as error:
            return Answered(question, sha256, fault=str(error), by_server=True)

    def _keep(self, answered: Answered) -> Answered:
        """Put a reply on the disk, and end the job where the server gives none that can be used."""
        if answered.reply is not None:
            self.store.add((answered.question.uid, answered.image_sha256), answered.reply)
            self._good += 1
            self._faults = 0
        elif answered.by_server:
            self._faults += 1
            if self._faults >= (FAULTS_IN_A_ROW if self._good else FIRST_FAULTS):
                raise AuditError(
                    f"{self.settings.server}: {self._faults} questions in a row have no usable answer: "
                    f"{answered.fault}; what was answered before is kept."
                )
        return answered

    def _check_any(self) -> None:
        """End the job where there were faults and never a good answer, not in an earlier run either."""
        if self._faults and not self._good and not len(self.store):
            raise AuditError(
                f"{self.settings.server}: no question has a usable answer; the reasons stand in the log."
            )

    def _drain(self, live: set[Future[Answered]]) -> None:
        """Keep the replies that are still on their way when the job ends."""
        for future in wait(live).done:
            error = future.exception()
            if error is None and (reply := future.result().reply) is not None:
                self.store.add((future.result().question.uid, future.result().image_sha256), reply)
            elif error is not None and not isinstance(error, StoppedError | AuditError):
                LOGGER.error("a question ended with a fault of ours", exc_info=error)

    def _log(self, done: int, of: int) -> None:
        """Say every half minute how far it is."""
        if time.monotonic() - self._logged >= _LOG_SECONDS or done == of:
            self._logged = time.monotonic()
            LOGGER.info("%d of %d questions, %d requests", done, of, self.client.requests)
