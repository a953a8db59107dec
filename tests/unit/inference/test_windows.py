"""Decoders that see only so many tokens back: both engines give what transformers itself gives."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from readout_audit.inference.base import Answer, Engine, ImageJob, Question
from readout_audit.inference.sequential import Sequential
from readout_audit.inference.shared_prefix import SharedPrefix
from readout_audit.models import registry, tiny
from readout_audit.models.base import ModelSpec, VisionLanguageModel

FAMILIES = {
    # As Mistral 7B v0.1: every layer has the window.
    "llava_next": ("[INST] <image>\n{} [/INST]", {"sliding_window": None}),
    # As Qwen2 with use_sliding_window: the first layers see all, the others the window.
    "qwen2_vl": (
        "<|vision_start|><|image_pad|><|vision_end|>{}<|im_end|>\nassistant\n",
        {
            "sliding_window": None,
            "use_sliding_window": True,
            "max_window_layers": 1,
            "layer_types": ["full_attention", "sliding_attention"],
        },
    ),
}
LONG, SHORT = "Is there really a very long traffic light in the image, or is there none?", "Is it?"
NEW = 6


def load(family: str, folder: Path, window: int | None) -> VisionLanguageModel:
    """The family's tiny model, its text decoder's window set; the weights are the same for every window."""
    if not folder.exists():
        tiny.build(family, folder)
    config = json.loads((folder / "config.json").read_text())
    if window is not None:
        config["text_config"] |= {**FAMILIES[family][1], "sliding_window": window}
    (folder / "config.json").write_text(json.dumps(config))
    spec = ModelSpec(family, folder, "fp32", None, "as_is", "sdpa", torch.device("cpu"))
    return registry.get(family)(spec)


def picture() -> Image.Image:
    rng = np.random.default_rng(0)
    return Image.fromarray(rng.integers(0, 256, size=(60, 60, 3), dtype=np.uint8))


def ask(engine: Engine, family: str, *texts: str) -> dict[str, Answer]:
    asked = tuple(Question(text, "p", None, text, FAMILIES[family][0].format(text)) for text in texts)
    return {answer.question.uid: answer for answer in engine.answer([ImageJob(picture(), asked)])}


def alone(engine: SharedPrefix, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note which questions the engine hands to the sequential one."""
    seen: list[str] = []
    one_by_one = engine.one_by_one.ask
    monkeypatch.setattr(engine.one_by_one, "ask", lambda q, image: seen.append(q.uid) or one_by_one(q, image))
    return seen


def greedy(model: Any, family: str, text: str) -> list[int]:
    """What the network continues with when it is given the whole text anew for every token: no cache, no engine."""
    image = model.prepare_image(picture())
    encoded = model.encode(FAMILIES[family][0].format(text), image)
    ids, new_ids = encoded.ids.tolist(), list[int]()
    while len(new_ids) < NEW and not set(new_ids) & model.eos_ids:
        grown = type(encoded)(encoded.prompt, torch.tensor([*ids, *new_ids]), image, encoded.extra)
        logits, _ = model.first_logits(grown)
        new_ids.append(int(logits.argmax()))
    return new_ids


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_prompts_inside_across_and_beyond_the_window(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window ends inside the longer prompt, then inside its continuation, then behind it."""
    whole = ask(Sequential(load(family, tmp_path / "m", None), 1, NEW), family, LONG, SHORT)
    length, short = (whole[text].n_prompt_tokens for text in (LONG, SHORT))
    assert short + NEW < length - 8
    narrow: dict[int, np.ndarray] = {}
    for window, expected in (
        (length - 8, [LONG]),
        (length + 2, [LONG]),
        (length + NEW - 1, [LONG]),
        (length + NEW, []),
    ):
        model = load(family, tmp_path / "m", window)
        assert model.window == window
        reference = ask(Sequential(model, 1, NEW), family, LONG, SHORT)
        engine = SharedPrefix(model, 32, NEW)
        handed_over = alone(engine, monkeypatch)
        found = ask(engine, family, LONG, SHORT)
        assert handed_over == expected
        for text in (LONG, SHORT):
            assert found[text].new_ids == reference[text].new_ids
            assert list(reference[text].new_ids) == greedy(model, family, text)
            assert np.abs(found[text].logits - reference[text].logits).max() < 1e-4
        narrow[window] = reference[LONG].logits
    # The window is real: a prompt longer than it gets other logits, one inside it the same.
    assert np.abs(narrow[length - 8] - whole[LONG].logits).max() > 1e-2
    assert np.abs(narrow[length + 2] - whole[LONG].logits).max() < 1e-4


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_continuation_that_leaves_the_window_reads_otherwise(family: str, tmp_path: Path) -> None:
    """With room for two tokens after the prompt, the first two read what the unbounded model reads, the rest less."""
    logits = []
    length = 0
    for bound in (False, True):
        model = load(family, tmp_path / "m", length + 2 if bound else None)
        encoded = model.encode(FAMILIES[family][0].format(LONG), model.prepare_image(picture()))
        length = len(encoded.ids)
        first, state = model.first_logits(encoded)
        logits.append([first, *(model.next_logits(state, 40 + place) for place in range(4))])
    differences = [float((one - other).abs().max()) for one, other in zip(*logits, strict=True)]
    assert max(differences[:3]) < 1e-5 and min(differences[3:]) > 1e-3
