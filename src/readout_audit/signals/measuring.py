"""All signals of the questions about one image."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from PIL import Image

from readout_audit.errors import AuditError
from readout_audit.inference.base import ImageJob
from readout_audit.inference.sequential import NOT_FINITE
from readout_audit.models.base import Encoded, UnanswerableError, VisionLanguageModel
from readout_audit.signals import noise, passes, words
from readout_audit.signals.clip import Clip, crops, largest
from readout_audit.signals.columns import Asked, answer_columns, attention_columns, layer_columns
from readout_audit.signals.decoder import find_decoder
from readout_audit.signals.nouns import find_noun
from readout_audit.signals.passes import Instruments, Reading
from readout_audit.signals.rows import INVALID, OK, Row, empty_row, invalid_row
from readout_audit.signals.settings import SignalSettings

LOGGER = logging.getLogger(__name__)

NOISY = "the logits on the disturbed picture are not finite"

Pair = tuple[Asked, Row]
"""A question and the row that is being filled in for it."""


class Measurer:
    """Measures questions with a loaded model and, where the settings want them, two CLIPs."""

    def __init__(
        self,
        model: VisionLanguageModel,
        clips: Mapping[str, Clip],
        settings: SignalSettings,
        candidates: Sequence[int],
        suffix: str,
    ) -> None:
        """Take what measuring needs.

        Args:
            model: loaded.
            clips: "clip_b32" and "clip_l14_336", where the settings name them.
            settings: of the signals.
            candidates: ids whose logits are kept.
            suffix: what the template appends to the question.
        """
        self.model, self.clips, self.settings, self.suffix = model, clips, settings, suffix
        self.batch_size = settings.batch_size if model.shares_prefix else 1
        self.candidates = torch.tensor(list(candidates), device=model.spec.device)
        self.decoder = find_decoder(model.network)
        self.instruments: Instruments | None = None
        if self.decoder is not None:
            self.instruments = Instruments(
                self.decoder, self.candidates, settings.window, settings.entropy_layers
            )
        self._pieces: dict[int, str | None] = {}

    def facts(self) -> dict[str, Any]:
        """Return what only the loaded model can tell, for the signals file's description."""
        return {
            "vocabulary_size": self.model.vocabulary_rows,
            "n_layers": len(self.decoder.layers) if self.decoder else None,
            "n_heads": self.decoder.n_heads if self.decoder else None,
        }

    def measure(self, job: ImageJob, image_sha256: str, new_ids: Mapping[str, tuple[int, ...]]) -> list[Row]:
        """Return one row per question of an image.

        Args:
            job: the picture and its questions.
            image_sha256: hash of its file.
            new_ids: the records' continuations by uid.
        """
        try:
            image = self.model.prepare_image(job.pixels)
        except UnanswerableError as error:
            reason = f"{job.questions[0].image}: {error}"
            return [invalid_row(question, image_sha256, reason) for question in job.questions]
        rows: list[Row] = []
        pairs: list[Pair] = []
        for question in job.questions:
            try:
                encoded = self.model.encode(question.prompt, image)
            except UnanswerableError as error:
                rows.append(invalid_row(question, image_sha256, str(error)))
                continue
            noun = find_noun(question.question, question.object)
            asked = Asked(question, noun, encoded, new_ids[question.uid])
            pairs.append((asked, empty_row(question, image_sha256)))
        self._main_pass(pairs)
        measured = [pair for pair in pairs if pair[1]["status"] == OK]
        self._second_passes(measured)
        self._similarities(job.pixels, measured)
        return [*rows, *(row for _, row in pairs)]

    def _main_pass(self, pairs: list[Pair]) -> None:
        """Fill in what the instrumented pass gives."""
        for batch, reading in self._batches(pairs, self._watched, same_image=True):
            for number, (item, row) in enumerate(batch):
                answer, after = reading.answer[number], reading.after[number]
                if not bool(torch.isfinite(answer).all() and torch.isfinite(after).all()):
                    row.update(status=INVALID, reason=NOT_FINITE)
                    continue
                row.update(answer_columns(item, reading, number, self.candidates))
                layers, no_layers = layer_columns(reading, number, self.candidates)
                seen, not_seen = attention_columns(
                    reading,
                    number,
                    len(item.encoded.ids),
                    self.settings.window,
                    self.settings.entropy_layers,
                )
                row.update(**layers, **seen)
                row["reason"] = "; ".join(filter(None, (no_layers, not_seen))) or None

    def _watched(self, item: Asked) -> passes.Row:
        """Return a prompt with the first half of its continuation and the positions to watch."""
        ids, placeholder = item.encoded.ids.tolist(), self.model.image_token_id
        tail = words.spell(ids, placeholder, lambda part: self.model.decode(part, skip_special_tokens=False))
        pieces = [None if token_id == placeholder else self._piece(token_id) for token_id in ids]
        question = item.question.question
        sets = [
            [len(ids) - 1],
            words.noun_positions(tail, question, item.noun.span),
            words.pieces_in(pieces, words.SPATIAL_WORDS),
            words.pieces_in(pieces, words.asked_words(question, self.suffix)),
        ]
        return passes.Row(item.encoded, item.new_ids[: item.midpoint or 0], sets)

    def _piece(self, token_id: int) -> str | None:
        if token_id not in self._pieces:
            self._pieces[token_id] = self.model.piece(token_id)
        return self._pieces[token_id]

    def _batches(
        self, pairs: list[Pair], prepare: Callable[[Asked], passes.Row], same_image: bool
    ) -> Iterator[tuple[list[Pair], Reading]]:
        """Yield batches with what a pass over them gave, halving a batch that does not fit into memory.

        Args:
            pairs: what to ask.
            prepare: makes a question's prompt; only a batch's are there at once.
            same_image: it is the main pass over one image; others are read without instruments.

        Raises:
            AuditError: a single prompt does not fit.
        """
        start, instruments = 0, self.instruments if same_image else None
        while start < len(pairs):
            batch = pairs[start : start + self.batch_size]
            try:
                rows = [prepare(item) for item, _ in batch]
                reading = passes.run(self.model, rows, same_image, instruments)
            except torch.OutOfMemoryError:
                reading = None
            # Outside the handler, whose traceback would keep the failed attempt's tensors alive.
            if reading is None:
                self._halve(len(batch))
                continue
            yield batch, reading
            start += len(batch)

    def _halve(self, tried: int) -> None:
        if tried == 1:
            raise AuditError(
                "a single question does not fit into the GPU's memory; use a smaller precision (nf4) or a "
                "larger GPU."
            )
        self.batch_size = tried // 2
        LOGGER.warning("out of memory: the batch size is %d from here on", self.batch_size)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _second_passes(self, pairs: list[Pair]) -> None:
        """Fill in the logits on the disturbed pictures."""
        if self.settings.value["vcd"] is not None:
            self._second_pass(pairs, "vcd_candidate_logits", self._diffused)
        if self.settings.value["vcd_uniform"] is not None:
            self._second_pass(pairs, "vcd_uniform_candidate_logits", self._uniform)

    def _second_pass(self, pairs: list[Pair], column: str, disturb: Callable[[Asked], passes.Row]) -> None:
        """Fill in one column of candidate logits, read with other pictures."""
        for batch, reading in self._batches(pairs, disturb, same_image=False):
            for (_, row), logits in zip(batch, reading.answer, strict=True):
                if bool(torch.isfinite(logits).all()):
                    row[column] = logits[self.candidates].tolist()
                else:
                    row["reason"] = "; ".join(filter(None, (row["reason"], NOISY)))

    def _diffused(self, item: Asked) -> passes.Row:
        """Return the prompt about the image with diffusion noise."""
        vcd = self.settings.value["vcd"]
        image = noise.diffused_inputs(
            item.encoded.image, item.question.uid, vcd["noise_step"], vcd["seed"], noise.frames_of(self.model)
        )
        return passes.Row(Encoded(item.encoded.prompt, item.encoded.ids, image, item.encoded.extra))

    def _uniform(self, item: Asked) -> passes.Row:
        """Return the prompt about a picture of uniform noise, which goes through the model's own processor."""
        uniform = self.settings.value["vcd_uniform"]
        picture = noise.uniform_picture(item.question.uid, uniform["side"], uniform["seed"])
        return passes.Row(self.model.encode(item.question.prompt, self.model.prepare_image(picture)))

    def _similarities(self, picture: Image.Image, pairs: list[Pair]) -> None:
        """Fill in CLIP's cosines of the nouns with one picture."""
        about = [(item.noun.text, row) for item, row in pairs if item.noun.text is not None]
        base, large = self.clips.get("clip_b32"), self.clips.get("clip_l14_336")
        if base is not None and about:
            views = base.images(crops(picture))
            whole, every = views[-1], torch.stack([view.whole for view in views])
            for noun, row in about:
                text = base.text(noun)
                row["clip_b32_patches"] = largest(whole.patches, text)
                row["clip_b32_image"] = largest(whole.whole, text)
                row["clip_b32_crops"] = largest(every, text)
        if large is not None and about:
            (whole,) = large.images([picture])
            for noun, row in about:
                row["clip_l_patches"] = largest(whole.patches, large.text(noun))
                row["clip_l_cls"] = largest(whole.whole, large.text(noun))
