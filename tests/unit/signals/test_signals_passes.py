"""Layers, continuations and disturbed pictures against plain passes of the same models."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from readout_audit.models.base import VisionLanguageModel
from readout_audit.signals import noise, passes
from readout_audit.signals.decoder import find_decoder
from readout_audit.signals.passes import Instruments, Row

from .conftest import FAMILIES, encode, picture

Load = Callable[..., VisionLanguageModel]


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_and_continuations_equal_plain_passes(load: Load, family: str) -> None:
    """Prompts of different lengths with continuations of different lengths, side by side."""
    model = load(family)
    rows = [
        Row(item, going_on)
        for item, going_on in zip(encode(model, family), [(7, 9, 11), (), (12,)], strict=True)
    ]
    groups = [rows] if model.shares_prefix else [[row] for row in rows]
    readings = [passes.run(model, group, True) for group in groups]
    answers = torch.cat([reading.answer for reading in readings])
    afters = torch.cat([reading.after for reading in readings])
    for row, answer, after in zip(rows, answers, afters, strict=True):
        first, state = model.first_logits(row.encoded)
        expected = first
        for token_id in row.going_on:
            expected = model.next_logits(state, token_id)
        assert torch.allclose(answer, first, atol=1e-4)
        assert torch.allclose(after, expected, atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_layers_through_norm_and_head(load: Load, family: str) -> None:
    model: Any = load(family)
    (item, *_) = encode(model, family)
    decoder = find_decoder(model.network)
    assert decoder is not None
    candidates = torch.tensor([2, 50, 101])
    sets = [[len(item.ids) - 1], [], [], []]
    reading = passes.run(model, [Row(item, (), sets)], True, Instruments(decoder, candidates, (1, 9), (0, 1)))
    assert reading.layers is not None and reading.layers.shape == (1, 2, 3)
    assert torch.allclose(reading.layers[0, -1], reading.answer[0, candidates], atol=1e-5)
    with torch.no_grad():
        output = model.network(**model.forward_arguments(item), output_hidden_states=True)
        states = getattr(output, "language_model_outputs", output).hidden_states
        # states[0] are the input vectors, states[1] what the first layer gives
        first = model.network.get_output_embeddings()(decoder.norm(states[1][0, -1]))
    assert torch.allclose(reading.layers[0, 0], first[candidates], atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_question_gets_its_own_disturbed_picture(load: Load, family: str) -> None:
    """A batch of prompts about different pictures equals each alone."""
    model: Any = load(family)
    encoded = encode(model, family)
    frames = noise.frames_of(model)
    assert (frames == 2) == (family == "qwen2_vl")
    rows = [
        Row(
            type(item)(
                item.prompt,
                item.ids,
                noise.diffused_inputs(item.image, f"{place:032d}", 400, 3, frames),
                item.extra,
            )
        )
        for place, item in enumerate(encoded)
    ]
    groups = [rows] if model.shares_prefix else [[row] for row in rows]
    together = torch.cat([passes.run(model, group, False).answer for group in groups])
    for row, item, answer in zip(rows, encoded, together, strict=True):
        alone, _ = model.first_logits(row.encoded)
        undisturbed, _ = model.first_logits(item)
        assert torch.allclose(answer, alone, atol=1e-4)
        assert not torch.allclose(answer, undisturbed, atol=1e-3)


def test_qwen_fills_its_frames_with_copies_of_a_still_picture(load: Load) -> None:
    """What the shared noise of frames rests on."""
    model = load("qwen2_vl")
    pixels = model.prepare_image(picture(5)).tensors["pixel_values"]
    frames = pixels.view(len(pixels), 3, 2, -1)
    assert torch.equal(frames[:, :, 0], frames[:, :, 1])
