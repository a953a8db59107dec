"""The engine that does only the work there is: each image seen once, its prompt prefix read once.

The distinct questions about an image share the longest common prefix of their token ids, which holds the
image. It goes through the decoder once; all suffixes follow in one row, kept apart by a block mask
(`packing.py`), and so do the continuations. Only the last position of each question goes through the
output head. Where what stands for the image depends on the question (InstructBLIP), the vision encoder
alone is shared and the whole prompts are packed.
"""

import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from readout_audit.errors import AuditError
from readout_audit.inference.base import Answer, Engine, ImageJob, Question, collapse_placeholders
from readout_audit.inference.packing import PREFIX, Piece, allowed_columns, common_prefix, pack
from readout_audit.inference.sequential import Sequential
from readout_audit.models.base import (
    DecoderStep,
    Encoded,
    ImageInputs,
    UnanswerableError,
    VisionLanguageModel,
    argmax_lowest,
)

LOGGER = logging.getLogger(__name__)

QUESTIONS_PER_IMAGE = 32
"""Batch sizes beyond this let several images go through together."""


@dataclass
class _Asked:
    """One question on its way through.

    Attributes:
        question: what is asked.
        encoded: its prompt.
        visual: (tokens, width), the vectors of the prompt's placeholders.
        positions: (axes, n) position ids of the prompt.
        logits: (V,) float32 after the prompt, once known.
        new_ids: continuation so far.
    """

    question: Question
    encoded: Encoded
    visual: torch.Tensor
    positions: torch.Tensor
    logits: torch.Tensor | None = None
    new_ids: list[int] = field(default_factory=list)

    def piece(self, owner: int, start: int, stop: int | None, placeholder: int) -> Piece:
        """Return the prompt's positions from `start` to `stop`."""
        ids = self.encoded.ids
        before = int((ids[:start] == placeholder).sum())
        is_image = ids[start:stop] == placeholder
        visual = self.visual[before : before + int(is_image.sum())]
        return Piece(owner, ids[start:stop], self.positions[:, start:stop], is_image, visual)

    def next_piece(self, owner: int) -> Piece:
        """Return the position of the newest token of the continuation; text goes on from the largest id."""
        place = int(self.positions.max()) + len(self.new_ids)
        positions = torch.full((self.positions.shape[0], 1), place, dtype=torch.int64)
        is_image = torch.zeros(1, dtype=torch.bool)
        return Piece(owner, torch.tensor(self.new_ids[-1:]), positions, is_image, self.visual[:0])


class SharedPrefix(Engine):
    """Prefix once, suffixes side by side; see the module."""

    def __init__(self, model: VisionLanguageModel, batch_size: int, max_new_tokens: int) -> None:
        """Take a loaded model; one that offers no hooks for sharing is asked sequentially."""
        super().__init__(model, batch_size, max_new_tokens)
        self.images_per_call = max(1, batch_size // QUESTIONS_PER_IMAGE) if model.shares_prefix else 1
        self.one_by_one = Sequential(model, 1, max_new_tokens)
        if not model.shares_prefix:
            LOGGER.info("%s shares no work between questions; they are asked one by one", model.spec.name)

    @torch.inference_mode()
    def answer(self, jobs: Sequence[ImageJob]) -> Iterator[Answer]:
        """Yield the answers of all questions; see `Engine`."""
        if not self.model.shares_prefix:
            yield from self.one_by_one.answer(jobs)
            return
        images: list[tuple[ImageJob, ImageInputs]] = []
        for job in jobs:
            try:
                images.append((job, self.model.prepare_image(job.pixels)))
            except UnanswerableError as error:
                yield from (
                    Answer(question, fault=f"{question.image}: {error}") for question in job.questions
                )
        groups: dict[int, list[list[_Asked]]] = {}
        for (job, image), seen in zip(images, self._see([image for _, image in images]), strict=True):
            encoded, answers = self._encode(job, image)
            yield from answers
            if encoded:
                row = self._condition(encoded, seen)
                groups.setdefault(self._prefix_length(row), []).append(row)
        for length, rows in groups.items():
            yield from self._ask(rows, length)

    def _see(self, images: list[ImageInputs]) -> list[torch.Tensor]:
        """Run the vision part on all images, one by one where they do not fit together."""
        if not images:
            return []
        try:
            return self.model.see(images)
        except torch.OutOfMemoryError:
            if len(images) == 1:
                raise
        self._note_halving("images go through the vision encoder one by one")
        return [self.model.see([image])[0] for image in images]

    def _encode(
        self, job: ImageJob, image: ImageInputs
    ) -> tuple[list[tuple[Question, Encoded]], list[Answer]]:
        """Return the prompts of one image's questions, and the answers to those that take no part in sharing.

        Those are questions that cannot be asked, and prompts beyond the decoder's window, asked alone.
        """
        encoded, answers = [], []
        longest = (self.model.window or sys.maxsize) - self.max_new_tokens
        for question in job.questions:
            try:
                item = self.model.encode(question.prompt, image)
            except UnanswerableError as error:
                answers.append(Answer(question, fault=str(error)))
                continue
            if len(item.ids) > longest:
                answers.append(self.one_by_one.ask(question, image))
            else:
                encoded.append((question, item))
        return encoded, answers

    def _condition(self, encoded: list[tuple[Question, Encoded]], seen: torch.Tensor) -> list[_Asked]:
        """Return the questions of one image with the vectors that stand for it."""
        visual = self.model.condition([item for _, item in encoded], seen)
        return [
            _Asked(question, item, vectors, self.model.positions(item))
            for (question, item), vectors in zip(encoded, visual, strict=True)
        ]

    def _prefix_length(self, row: list[_Asked]) -> int:
        """Return how many positions the questions of one image share."""
        if self.model.prefix_depends_on_question:
            return 0
        return common_prefix([asked.encoded.ids for asked in row])

    def _ask(self, rows: list[list[_Asked]], length: int) -> list[Answer]:
        """Ask rows of questions, each about one image, with prefixes of one length; halve what does not fit.

        Raises:
            AuditError: a single question does not fit into memory.
        """
        try:
            return self._attempt(rows, length)
        except torch.OutOfMemoryError:
            if len(rows) == 1 and self.batch_size == 1:
                raise AuditError(
                    f"image {rows[0][0].question.image}: a single question does not fit into the GPU's memory; "
                    f"use a smaller precision (nf4) or a larger GPU."
                ) from None
        # Outside the handler, whose traceback would keep the failed attempt's tensors alive.
        if len(rows) > 1:
            self._note_halving(f"{len(rows)} images together become {len(rows) // 2}")
            middle = len(rows) // 2
            return [*self._ask(rows[:middle], length), *self._ask(rows[middle:], length)]
        self.batch_size //= 2
        self._note_halving(f"the batch size is {self.batch_size} from here on")
        return self._ask(rows, length)

    def _note_halving(self, consequence: str) -> None:
        self.halvings += 1
        LOGGER.warning("out of memory: %s", consequence)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _attempt(self, rows: list[list[_Asked]], length: int) -> list[Answer]:
        """Read the prefixes once, then ask the questions in batches that start from them."""
        cache = self.model.new_cache()
        owners = torch.empty((len(rows), 0), dtype=torch.int64)
        if length:
            placeholder = self.model.image_token_id
            prefixes = [[row[0].piece(PREFIX, 0, length, placeholder)] for row in rows]
            _, owners, _ = self._run(prefixes, owners, cache, causal=True)
        answers: list[Answer] = []
        together = max(1, self.batch_size // len(rows))
        for start in range(0, max(len(row) for row in rows), together):
            batch = [row[start : start + together] for row in rows]
            columns = self._ask_batch(batch, length, owners, cache)
            if columns:
                cache.crop(-columns)
            answers.extend(self._finish(asked) for row in batch for asked in row)
        return answers

    def _ask_batch(self, rows: list[list[_Asked]], length: int, owners: torch.Tensor, cache: Any) -> int:
        """Ask one batch, leaving first logits and continuation in it; return the columns added to the cache.

        A question whose logits are not finite may have spoilt its neighbours (0 times NaN is NaN, masked
        or not): then each question of the batch is asked again alone.
        """
        start = owners.shape[1]
        placeholder = self.model.image_token_id
        pieces = [
            [asked.piece(owner, length, None, placeholder) for owner, asked in enumerate(row)] for row in rows
        ]
        for asked in (asked for row in rows for asked in row):
            asked.logits, asked.new_ids = None, []
        active = [list(enumerate(row)) for row in rows]
        while any(active):
            logits, owners, finite = self._run(pieces, owners, cache)
            if not finite:
                for asked in (asked for row in rows for asked in row):
                    asked.logits, asked.new_ids = None, []
                break
            self._append([asked for row in active for _, asked in row], logits)
            active = [[(owner, asked) for owner, asked in row if not self._ended(asked)] for row in active]
            pieces = [[asked.next_piece(owner) for owner, asked in row] for row in active]
        return owners.shape[1] - start

    def _append(self, asked: list[_Asked], logits: torch.Tensor) -> None:
        """Take each question's next token."""
        for one, values, token_id in zip(asked, logits, argmax_lowest(logits).tolist(), strict=True):
            if one.logits is None:
                one.logits = values
            one.new_ids.append(token_id)

    def _ended(self, asked: _Asked) -> bool:
        return len(asked.new_ids) == self.max_new_tokens or asked.new_ids[-1] in self.model.eos_ids

    def _run(
        self, rows: list[list[Piece]], owners: torch.Tensor, cache: Any, causal: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor, bool]:
        """Run the decoder over new pieces.

        Args:
            rows: pieces per row.
            owners: (rows, cached) owners of the cache's columns.
            cache: grows.
            causal: the pieces are prefixes, whose logits nobody asks for.

        Returns:
            Logits after each piece, (pieces, V) in order; owners of the grown cache; whether the logits are
            finite.
        """
        packed = pack(rows)
        owners = torch.cat([owners, packed.owners], dim=1)
        device = self.model.spec.device
        is_image = packed.is_image.to(device)
        vectors = self.model.embed(packed.ids.masked_fill(packed.is_image, 0))
        if bool(packed.is_image.any()):
            visual = torch.cat([piece.visual for row in rows for piece in row])
            vectors[is_image] = visual.to(device, vectors.dtype)
        step = DecoderStep(
            vectors=vectors,
            positions=packed.positions.to(device),
            is_image=is_image,
            allowed=None if causal else allowed_columns(owners.to(device), packed.ids.shape[1]),
        )
        hidden = self.model.decode_step(step, cache)
        if causal:
            return hidden[:0, 0], owners, True
        places = [(row, column) for row, columns in enumerate(packed.last) for column in columns]
        chosen = torch.tensor(places, device=device)
        logits = self.model.head(hidden[chosen[:, 0], chosen[:, 1]])
        return logits, owners, bool(torch.isfinite(logits).all())

    def _finish(self, asked: _Asked) -> Answer:
        """Return the answer of a question that is through, or ask it alone."""
        if asked.logits is None:
            return self.one_by_one.ask(asked.question, asked.encoded.image)
        return Answer(
            question=asked.question,
            n_prompt_tokens=len(asked.encoded.ids),
            n_image_tokens=asked.encoded.image.n_tokens,
            ids=collapse_placeholders(asked.encoded.ids.tolist(), self.model.image_token_id),
            logits=asked.logits.cpu().numpy(),
            new_ids=tuple(asked.new_ids),
        )
