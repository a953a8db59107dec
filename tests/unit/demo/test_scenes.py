"""The pictures: what is in them is what the ground truth says, and they are the same every time."""

import hashlib
from itertools import combinations

import numpy as np
import pytest

from readout_audit.demo.scenes import (
    BACKGROUND,
    COLOURS,
    MAX_OBJECTS,
    MIN_OBJECTS,
    SHAPES,
    SIDE,
    STREAMS,
    TEXTURES,
    draw_scene,
)
from readout_audit.demo.world import CATEGORIES, CATEGORY_INDEX, CONTEXTS


@pytest.fixture(scope="module")
def scenes():
    return [draw_scene("validation", index) for index in range(150)]


def test_thirty_categories_in_six_contexts():
    assert len(CATEGORIES) == len({category.name for category in CATEGORIES}) == 30
    assert len({category.coco_id for category in CATEGORIES}) == 30
    assert len(CONTEXTS) == 6
    assert sum(context.share for context in CONTEXTS) == pytest.approx(1.0, abs=1e-12)
    assert {name for context in CONTEXTS for name in context.weights} == set(CATEGORY_INDEX)


def test_every_glyph_has_its_own_shape_colour_and_texture():
    assert len({category.glyph for category in CATEGORIES}) == 30


def test_glyphs_are_told_apart_by_their_pixels():
    """Upright and untinted, any two differ clearly in at least 8% of the box."""
    centres = ((np.arange(24) + 0.5) / 12.0 - 1.0).astype(np.float32)
    u, v = np.meshgrid(centres, centres)
    pictures = []
    for category in CATEGORIES:
        shape, colour, texture = category.glyph
        shade = np.where(TEXTURES[texture](u, v), 0.35, 1.0)[..., None] * np.asarray(COLOURS[colour])
        pictures.append(np.where(SHAPES[shape](u, v)[..., None], shade, 0.45))
    for first, second in combinations(range(30), 2):
        differing = np.abs(pictures[first] - pictures[second]).max(axis=-1) > 0.15
        assert differing.mean() > 0.08, (CATEGORIES[first].name, CATEGORIES[second].name)


def test_scenes_hold_three_to_seven_different_objects_all_visible(scenes):
    counts = {len(scene.objects) for scene in scenes}
    assert counts == set(range(MIN_OBJECTS, MAX_OBJECTS + 1))
    for scene in scenes:
        assert scene.pixels.shape == (SIDE, SIDE, 3) and scene.pixels.dtype == np.uint8
        assert len({placed.category for placed in scene.objects}) == len(scene.objects)
        assert all(placed.area > 0 for placed in scene.objects)


def test_boxes_and_areas_are_those_of_the_visible_pixels(scenes):
    for scene in scenes:
        for position, placed in enumerate(scene.objects):
            x, y, width, height = placed.box
            seen = scene.owner == position
            assert placed.area == seen.sum() == seen[y : y + height, x : x + width].sum()
            assert seen[y].any() and seen[y + height - 1].any()
            assert seen[:, x].any() and seen[:, x + width - 1].any()
        assert (scene.owner == BACKGROUND).sum() == SIDE * SIDE - sum(placed.area for placed in scene.objects)


def test_some_objects_are_hidden_in_part_and_some_are_out_of_place(scenes):
    belonging = {context.name: set(context.weights) for context in CONTEXTS}
    strangers = [
        CATEGORIES[placed.category].name not in belonging[scene.context]
        for scene in scenes
        for placed in scene.objects
    ]
    assert 0.02 < np.mean(strangers) < 0.3
    boxes = [placed.area / (placed.box[2] * placed.box[3]) for scene in scenes for placed in scene.objects]
    assert min(boxes) < 0.25


def test_a_scene_depends_on_stream_and_index_alone():
    first, again = draw_scene("eval", 5), draw_scene("eval", 5)
    assert first.pixels.tobytes() == again.pixels.tobytes() and first.objects == again.objects
    pictures = {
        hashlib.sha256(draw_scene(s, i).pixels.tobytes()).digest() for s in STREAMS for i in range(20)
    }
    assert len(pictures) == 20 * len(STREAMS)
    assert len(set(STREAMS.values())) == len(STREAMS)
