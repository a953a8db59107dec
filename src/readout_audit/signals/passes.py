"""Forward passes over whole prompts, several side by side, with or without instruments.

Rows are padded on the right: under causal order no real position can see the padding, so no mask is
needed and each row is computed as it would be alone. A row may go on after its prompt with tokens of a
known continuation; the logits after the last of them are read too.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import torch

from readout_audit.inference.packing import Piece, pack
from readout_audit.models.base import DecoderStep, Encoded, VisionLanguageModel
from readout_audit.signals.attention import AttentionProbe, Seen, Watched
from readout_audit.signals.decoder import Decoder
from readout_audit.signals.lens import LayerProbe


@dataclass(frozen=True)
class Row:
    """One prompt on its way through the model.

    Attributes:
        encoded: the prompt with its image.
        going_on: ids after the prompt, teacher-forced.
        sets: the positions to watch, one list per set of `attention`; empty when nobody watches.
    """

    encoded: Encoded
    going_on: tuple[int, ...] = ()
    sets: list[list[int]] = field(default_factory=list)


@dataclass(frozen=True)
class Instruments:
    """What to read beside the logits.

    Attributes:
        decoder: where to look.
        candidates: (C,) ids whose logits are read at each layer.
        window: the authors' span of positions.
        entropy_layers: layers of the answer position's mean attention.
    """

    decoder: Decoder
    candidates: torch.Tensor
    window: tuple[int, int]
    entropy_layers: tuple[int, int]


@dataclass(frozen=True)
class Reading:
    """What a pass gave, rows in the order they went in.

    Attributes:
        answer: (rows, V) float32 raw logits after the prompt.
        after: (rows, V) after the continuation; the same as `answer` where there is none.
        layers: (rows, layers, C) logits read at each layer, with instruments.
        seen: attention, with instruments.
        image: (rows, n) bool: the image positions.
    """

    answer: torch.Tensor
    after: torch.Tensor
    image: torch.Tensor
    layers: torch.Tensor | None = None
    seen: Seen | None = None


@torch.inference_mode()
def run(
    model: VisionLanguageModel, rows: Sequence[Row], same_image: bool, instruments: Instruments | None = None
) -> Reading:
    """Run prompts through a model.

    Args:
        model: loaded.
        rows: what to run; one only where the model shares no work (`shares_prefix` is false).
        same_image: all rows show one image, which is then seen once.
        instruments: read attention and layers too.
    """
    if not model.shares_prefix:
        (row,) = rows
        return _run_alone(model, row, instruments)
    pictures = _visual(model, rows, same_image)
    packed = pack([[_piece(model, row, visual)] for row, visual in pictures])
    device = model.spec.device
    is_image = packed.is_image.to(device)
    vectors = model.embed(packed.ids.masked_fill(packed.is_image, 0))
    for number, (_, visual) in enumerate(pictures):
        vectors[number, is_image[number]] = visual.to(device, vectors.dtype)
    ends = torch.tensor([len(row.encoded.ids) - 1 for row in rows], device=device)
    afters = ends + torch.tensor([len(row.going_on) for row in rows], device=device)
    step = DecoderStep(vectors, packed.positions.to(device), is_image, allowed=None)
    with _Instrumented(instruments, rows, is_image, ends) as read:
        hidden = model.decode_step(step, model.new_cache())
    numbers = torch.arange(len(rows), device=device)
    answer = model.head(hidden[numbers, ends])
    after = model.head(hidden[numbers, afters]) if bool((afters > ends).any()) else answer
    return Reading(answer, after, is_image, *read.results(model))


def _visual(
    model: VisionLanguageModel, rows: Sequence[Row], same_image: bool
) -> list[tuple[Row, torch.Tensor]]:
    """Return each row with the vectors that stand for its image."""
    if same_image:
        (seen,) = model.see([rows[0].encoded.image])
        return list(zip(rows, model.condition([row.encoded for row in rows], seen), strict=True))
    seen_rows = model.see([row.encoded.image for row in rows])
    return [(row, model.condition([row.encoded], seen)[0]) for row, seen in zip(rows, seen_rows, strict=True)]


def _piece(model: VisionLanguageModel, row: Row, visual: torch.Tensor) -> Piece:
    """Return a row's positions: its prompt, and the continuation as text after it."""
    ids, prompt = row.encoded.ids, model.positions(row.encoded)
    further = int(prompt.max()) + 1 + torch.arange(len(row.going_on))
    return Piece(
        owner=0,
        ids=torch.cat([ids, torch.tensor(row.going_on, dtype=torch.int64)]),
        positions=torch.cat([prompt, further.expand(len(prompt), -1)], dim=1),
        # A continuation may hold the placeholder's id as plain text.
        is_image=torch.cat([ids == model.image_token_id, torch.zeros(len(row.going_on), dtype=torch.bool)]),
        visual=visual,
    )


def _run_alone(model: VisionLanguageModel, row: Row, instruments: Instruments | None) -> Reading:
    """Run one prompt through a model's own forward pass, and its continuation token by token."""
    device = model.spec.device
    is_image = (row.encoded.ids == model.image_token_id)[None].to(device)
    end = torch.tensor([len(row.encoded.ids) - 1], device=device)
    with _Instrumented(instruments, [row], is_image, end) as read:
        answer, state = model.first_logits(row.encoded)
    after = answer
    for token_id in row.going_on:
        after = model.next_logits(state, token_id)
    return Reading(answer[None], after[None], is_image, *read.results(model))


class _Instrumented:
    """The instruments around one pass; without any, nothing."""

    def __init__(
        self,
        instruments: Instruments | None,
        rows: Sequence[Row],
        is_image: torch.Tensor,
        ends: torch.Tensor,
    ) -> None:
        self.instruments, self.stack = instruments, ExitStack()
        if instruments is not None:
            watched = Watched.of([row.sets for row in rows], is_image, instruments.window)
            self.attention = AttentionProbe(instruments.decoder, watched, instruments.entropy_layers)
            self.layers = LayerProbe(instruments.decoder, ends)

    def __enter__(self) -> "_Instrumented":
        if self.instruments is not None:
            self.stack.enter_context(self.attention.attached())
            self.stack.enter_context(self.layers.attached())
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    def results(self, model: VisionLanguageModel) -> tuple[torch.Tensor | None, Seen | None]:
        """Return the logits read at each layer and what attention was seen."""
        if self.instruments is None:
            return None, None
        return self.layers.candidate_logits(model, self.instruments.candidates), self.attention.seen()
