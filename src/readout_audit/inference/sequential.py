"""The reference engine: one question at a time, one plain forward pass each.

Slow, and as plain as it can be. Every faster engine is measured against its answers.
"""

from collections.abc import Iterator, Sequence

import torch

from readout_audit.inference.base import Answer, Engine, ImageJob, Question, collapse_placeholders
from readout_audit.models.base import ImageInputs, UnanswerableError, argmax_lowest

NOT_FINITE = "the model's logits are not finite"


class Sequential(Engine):
    """One forward pass over the whole prompt per question, then greedy steps on its cache."""

    def answer(self, jobs: Sequence[ImageJob]) -> Iterator[Answer]:
        """Yield the answers in order; see `Engine`."""
        for job in jobs:
            try:
                image = self.model.prepare_image(job.pixels)
            except UnanswerableError as error:
                yield from (
                    Answer(question, fault=f"{question.image}: {error}") for question in job.questions
                )
                continue
            for question in job.questions:
                yield self.ask(question, image)

    def ask(self, question: Question, image: ImageInputs) -> Answer:
        """Ask one question about one image."""
        try:
            encoded = self.model.encode(question.prompt, image)
        except UnanswerableError as error:
            return Answer(question, fault=str(error))
        first, state = self.model.first_logits(encoded)
        logits, new_ids = first, list[int]()
        while True:
            if not bool(torch.isfinite(logits).all()):
                return Answer(question, fault=f"{NOT_FINITE} (answer token {len(new_ids) + 1})")
            new_ids.append(int(argmax_lowest(logits)))
            if new_ids[-1] in self.model.eos_ids or len(new_ids) == self.max_new_tokens:
                break
            logits = self.model.next_logits(state, new_ids[-1])
        return Answer(
            question=question,
            n_prompt_tokens=len(encoded.ids),
            n_image_tokens=encoded.image.n_tokens,
            ids=collapse_placeholders(encoded.ids.tolist(), self.model.image_token_id),
            logits=first.cpu().numpy(),
            new_ids=tuple(new_ids),
        )
