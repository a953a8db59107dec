"""The demo CLIPs: their loss by hand, what a part of a picture shows, and the shipped checkpoints."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from readout_audit.demo.build import write_world
from readout_audit.demo.clip import CONTEXT, RECIPES, build_model, build_tokenizer
from readout_audit.demo.clip_acceptance import evaluate, roc_auc, shortcomings
from readout_audit.demo.clip_training import (
    MIN_CUT,
    SMOKE,
    cut,
    draw_pictures,
    multi_positive_loss,
    shown,
    train,
)
from readout_audit.demo.scenes import BACKGROUND, SIDE, draw_scene
from readout_audit.demo.world import CATEGORIES
from readout_audit.errors import AuditError

LARGEST = 1_300_000
"""Bytes that a shipped CLIP may take."""


def test_loss_by_hand() -> None:
    # Row 0: positives 0 and 1 against the one negative 2. softmax of (a, n) gives −log = ln(1 + e^(n − a)).
    scores = torch.tensor([[2.0, 1.0, 0.0], [5.0, 5.0, 5.0]])
    positive = torch.tensor([[True, True, False], [True, True, True]])
    expected = (math.log(1 + math.exp(-2)) + math.log(1 + math.exp(-1))) / 2
    assert float(multi_positive_loss(scores, positive)) == pytest.approx(expected, rel=1e-6)


def test_a_positive_is_not_set_against_another() -> None:
    scores = torch.tensor([[0.0, 9.0, 0.0]])
    with_rival = multi_positive_loss(scores, torch.tensor([[True, True, False]]))
    # ln(1 + e⁰) for the first, ln(1 + e⁻⁹) for the second: the second's 9 does not count against the first
    assert float(with_rival) == pytest.approx((math.log(2) + math.log(1 + math.exp(-9))) / 2, rel=1e-6)


def test_a_category_counts_from_twelve_pixels() -> None:
    shows = np.full((10, 10), BACKGROUND, dtype=np.int8)
    shows[0, :] = 3
    shows[1, :2] = 3
    shows[2, :] = 4
    shows[3, 0] = 4
    assert np.flatnonzero(shown(shows)).tolist() == [3]
    assert not shown(np.full((5, 5), BACKGROUND, dtype=np.int8)).any()


def test_pictures_know_what_is_where() -> None:
    pictures, scene = draw_pictures(2), draw_scene("train", 1)
    assert np.array_equal(pictures.pixels[1], scene.pixels)
    for position, placed in enumerate(scene.objects):
        assert (pictures.shows[1] == placed.category).sum() == (scene.owner == position).sum()


def test_cuts_are_squares_inside_the_picture() -> None:
    rng = np.random.default_rng(0)
    whole = 0
    for _ in range(300):
        rows, columns = cut(rng)
        if rows == slice(None):
            whole += 1
            continue
        height, width = rows.stop - rows.start, columns.stop - columns.start
        assert MIN_CUT <= height == width < SIDE
        assert rows.start >= 0 and rows.stop <= SIDE and columns.start >= 0 and columns.stop <= SIDE
    assert 110 < whole < 190, "half of them, 150 ± 4.6 standard deviations"


def test_area_by_hand() -> None:
    # pairs (true, false): 3>1, 3>2, 2>1 are right, 2=2 is half: 3.5 of 4
    assert roc_auc([3.0, 2.0, 1.0, 2.0], [True, True, False, False]) == 3.5 / 4


def test_every_category_can_be_spelt() -> None:
    tokenizer = build_tokenizer()
    for category in CATEGORIES:
        ids = tokenizer(f"a photo of a {category.name}")["input_ids"]
        assert tokenizer.unk_token_id not in ids and len(ids) <= CONTEXT
        assert (ids[0], ids[-1]) == (tokenizer.bos_token_id, tokenizer.eos_token_id)


def test_a_training_step_changes_every_part() -> None:
    recipe, log = RECIPES["tiny-clip-b"], list[dict[str, object]]()
    before, after = build_model(recipe), train(recipe, SMOKE, log.append)
    assert [entry["stage"] for entry in log] == ["scenes", "contrastive", "done"]
    changed = {
        name.partition(".")[0]
        for (name, one), (_, other) in zip(before.named_parameters(), after.named_parameters(), strict=True)
        if not torch.equal(one, other)
    }
    assert changed == {
        "logit_scale", "text_model", "vision_model", "visual_projection", "text_projection"
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(RECIPES))
def test_shipped_checkpoints_are_small_and_accepted(name: str, root: Path, tmp_path: Path) -> None:
    folder = root / "resources" / "demo" / "models" / name
    assert sum(path.stat().st_size for path in folder.iterdir()) < LARGEST
    questions = write_world(tmp_path)
    areas = evaluate(folder, questions, tmp_path / "images")
    assert shortcomings(areas) == []


def test_an_unknown_clip_is_refused() -> None:
    from readout_audit.demo.clip import get_recipe

    with pytest.raises(AuditError, match="not a demo CLIP"):
        get_recipe("tiny-llava")
