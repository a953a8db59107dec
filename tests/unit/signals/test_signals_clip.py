"""CLIP similarities against CLIP's own forward pass, and the published code's crops by hand."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from readout_audit.demo.clip import RECIPES, build_model, save
from readout_audit.errors import AuditError
from readout_audit.models import tiny
from readout_audit.signals.clip import Clip, crops, largest

from .conftest import picture


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("clip") / "clip"
    save(build_model(RECIPES["tiny-clip-b"]), made)
    return made


def clip(folder: Path, text_prompt: str = "{noun}", patch_norm: bool = False) -> Clip:
    return Clip(folder, text_prompt, patch_norm, torch.device("cpu"))


def test_whole_image_equals_clips_own_cosine(folder: Path) -> None:
    one = clip(folder, "a photo of a {noun}")
    pictures = [picture(1), picture(2, 33, 80)]
    pixels = one.processor(images=pictures, return_tensors="pt")["pixel_values"]
    nouns = ["dog", "dining table"]
    texts = one.tokenizer([f"a photo of a {noun}" for noun in nouns], padding=True, return_tensors="pt")
    with torch.no_grad():
        output = one.network(
            input_ids=texts["input_ids"], attention_mask=texts["attention_mask"], pixel_values=pixels
        )
    expected = (output.logits_per_image / one.network.logit_scale.exp()).detach()
    for row, image in enumerate(one.images(pictures)):
        for column, noun in enumerate(nouns):
            assert largest(image.whole, one.text(noun)) == pytest.approx(
                float(expected[row, column]), abs=1e-5
            )


@pytest.mark.parametrize("patch_norm", [False, True])
def test_patches_are_projected_last_states(folder: Path, patch_norm: bool) -> None:
    one = clip(folder, patch_norm=patch_norm)
    (image,) = one.images([picture(3)])
    vision, pixels = one.network.vision_model, one.processor(images=[picture(3)], return_tensors="pt")
    with torch.no_grad():
        states = vision(**pixels).last_hidden_state[0, 1:]
        if patch_norm:
            states = vision.post_layernorm(states)
        projected = states @ one.network.visual_projection.weight.T
        cosines = torch.nn.functional.cosine_similarity(projected, one.text("dog")[None], dim=-1)
    assert image.patches.shape == (16, 64), "84 / 21 = 4 patches a side"
    assert largest(image.patches, one.text("dog")) == pytest.approx(float(cosines.max()), abs=1e-5)


def test_vectors_have_length_one(folder: Path) -> None:
    one = clip(folder)
    (image,) = one.images([picture(4)])
    assert torch.allclose(image.patches.norm(dim=-1), torch.ones(16), atol=1e-5)
    assert float(image.whole.norm()) == pytest.approx(1.0, abs=1e-5)
    assert float(one.text("dog").norm()) == pytest.approx(1.0, abs=1e-5)
    assert one.text("dog") is one.text("dog"), "a noun is read once"


def test_long_nouns_are_cut(folder: Path) -> None:
    assert clip(folder).text("very " * 100 + "old dog").shape == (64,)


def test_crops_by_hand() -> None:
    """10 × 7 pixels, cells of 2 × 1: columns start at 0, 2, 4, 6, rows at 0, 1, 2, 3; two columns and three
    rows of pixels are in no cell."""
    values = np.arange(70, dtype=np.uint8).reshape(7, 10)
    found = crops(Image.fromarray(values))
    assert len(found) == 17
    assert all(cell.size == (2, 1) for cell in found[:16])
    assert [np.asarray(cell)[0, 0] for cell in found[:16]] == [
        10 * row + column for row in range(4) for column in (0, 2, 4, 6)
    ]
    assert found[16].size == (10, 7)


def test_crops_of_a_picture_of_few_pixels() -> None:
    assert [cell.size for cell in crops(Image.new("RGB", (2, 3)))] == [(1, 1)] * 6 + [(2, 3)]


def test_another_model_is_refused(tmp_path: Path) -> None:
    tiny.build("llava", tmp_path / "llava")
    with pytest.raises(AuditError, match="no complete CLIP model"):
        clip(tmp_path / "llava")


def test_an_incomplete_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer_config.json", "tokenizer.json", "preprocessor_config.json"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with pytest.raises(AuditError, match="safetensors"):
        clip(tmp_path)


def test_a_folder_as_the_first_clips_were_published(folder: Path, tmp_path: Path) -> None:
    """Sizes as plain numbers, position ids among the weights, end id 2 in the configuration."""
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    processor = json.loads((folder / "preprocessor_config.json").read_text())
    processor |= {"size": 84, "crop_size": 84, "feature_extractor_type": "CLIPFeatureExtractor"}
    processor.pop("image_processor_type")
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(processor))
    config = json.loads((folder / "config.json").read_text())
    end_id = config["text_config"]["eos_token_id"]
    config["text_config"]["eos_token_id"] = 2
    (tmp_path / "config.json").write_text(json.dumps(config))
    weights = load_file(folder / "model.safetensors")
    # The end token had the largest id of all: then its place is the argmax of the ids.
    table = weights["text_model.embeddings.token_embedding.weight"]
    last = len(table) - 1
    swapped = table.clone()
    swapped[[end_id, last]] = table[[last, end_id]]
    weights["text_model.embeddings.token_embedding.weight"] = swapped
    weights["text_model.embeddings.position_ids"] = torch.arange(48)[None]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    old, new = clip(tmp_path), clip(folder)
    old.tokenizer = _Swapped(new.tokenizer, end_id, last)
    assert torch.allclose(old.text("dog"), new.text("dog"), atol=1e-6)
    assert torch.allclose(old.images([picture(6)])[0].whole, new.images([picture(6)])[0].whole, atol=1e-6)


class _Swapped:
    """A tokenizer with two ids exchanged."""

    def __init__(self, tokenizer: Any, one: int, other: int) -> None:
        self.tokenizer, self.one, self.other = tokenizer, one, other

    def __call__(self, *arguments: Any, **further: Any) -> Any:
        found = self.tokenizer(*arguments, **further)
        ids = found["input_ids"].clone()
        found["input_ids"] = ids.masked_fill(ids == self.one, self.other)
        return found
