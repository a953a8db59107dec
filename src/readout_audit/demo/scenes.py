"""Draw the demo world's pictures: one scene per (stream, index), the same bytes every time.

A scene is drawn back to front on a noisy background: 3 to 7 glyphs of different categories, most of
them from the scene's context, some from anywhere. Each keeps at least `MIN_VISIBLE` of its area.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readout_audit.demo.world import CATEGORIES, CATEGORY_INDEX, CONTEXTS, Context, Glyph

SIDE = 84
"""Height and width of a picture, in pixels."""

WORLD_SEED = 20231005
STREAMS = {"eval": 0, "train": 1, "validation": 2}
"""Independent random streams: a scene's seed is (WORLD_SEED, stream, index), so no two streams share one."""

MIN_OBJECTS, MAX_OBJECTS = 3, 7
MIN_SIZE, MAX_SIZE = 10, 26
"""Side of a glyph's box, in pixels (both ends included)."""

OUT_OF_CONTEXT = 0.15
"""Probability that an object is drawn from all categories instead of the scene's context."""

MIN_VISIBLE = 0.4
NOISE = 0.13
"""Standard deviation of the pixel noise, on a scale where white is 1."""

PLACEMENT_TRIES = 12
BACKGROUND = -1
"""Value of `Scene.owner` where no object is seen."""

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

COLOURS: dict[str, tuple[float, float, float]] = {
    "red": (0.86, 0.16, 0.16),
    "orange": (0.95, 0.58, 0.20),
    "yellow": (0.93, 0.87, 0.22),
    "green": (0.20, 0.68, 0.26),
    "cyan": (0.24, 0.78, 0.82),
    "blue": (0.20, 0.32, 0.86),
    "purple": (0.56, 0.28, 0.74),
    "pink": (0.95, 0.48, 0.74),
    "brown": (0.52, 0.32, 0.16),
    "white": (0.94, 0.94, 0.94),
}

SHAPES: dict[str, Callable[[Floats, Floats], Bools]] = {
    "ellipse": lambda u, v: u * u / 0.72 + v * v <= 1.0,
    "square": lambda u, v: (abs(u) <= 0.9) & (abs(v) <= 0.72),
    "triangle": lambda u, v: (v <= 0.85) & (v >= 2.0 * abs(u) - 0.95),
    "diamond": lambda u, v: abs(u) + abs(v) <= 1.0,
    "cross": lambda u, v: ((abs(u) <= 0.32) | (abs(v) <= 0.32)) & (np.maximum(abs(u), abs(v)) <= 0.95),
    "ring": lambda u, v: (u * u + v * v <= 1.0) & (u * u + v * v >= 0.30),
    "star": lambda u, v: np.hypot(u, v) <= 0.68 + 0.32 * np.cos(5.0 * np.arctan2(u, -v)),
    "bar": lambda u, v: (abs(u) <= 0.5) & (abs(v) <= 1.0),
    "halfdisk": lambda u, v: (u * u + (v - 0.45) ** 2 / 1.9 <= 1.0) & (v <= 0.45),
    "hexagon": lambda u, v: (abs(v) <= 0.87) & (abs(u) + abs(v) / 1.73 <= 1.0),
    "table": lambda u, v: (abs(u) <= 0.95) & (v >= -0.7) & (v <= 0.85) & ((v <= 0.0) | (abs(u) >= 0.55)),
}
"""Masks over box coordinates u (right) and v (down), both from -1 to 1."""

TEXTURES: dict[str, Callable[[Floats, Floats], Bools]] = {
    "solid": lambda u, v: np.zeros(u.shape, dtype=bool),
    "stripes": lambda u, v: np.floor((v + 1.0) * 2.5) % 2 == 1,
    "checks": lambda u, v: (np.floor((u + 1.0) * 2.0) + np.floor((v + 1.0) * 2.0)) % 2 == 1,
}
"""Where the glyph is drawn in the darker shade of its colour."""

DARKER = 0.35
MAX_TURN = 0.3
"""Largest rotation of a glyph, in radians."""


class PlacedObject(NamedTuple):
    """An object as it ended up in the picture: category index, visible box (x, y, width, height), visible area."""

    category: int
    box: tuple[int, int, int, int]
    area: int


class Scene(NamedTuple):
    """A drawn scene.

    `pixels` is [SIDE, SIDE, 3] uint8; `owner` is [SIDE, SIDE] int8, the position in `objects` of what is
    seen at each pixel, `BACKGROUND` elsewhere.
    """

    context: str
    objects: tuple[PlacedObject, ...]
    pixels: npt.NDArray[np.uint8]
    owner: npt.NDArray[np.int8]


def draw_scene(stream: str, index: int) -> Scene:
    """Draw scene number `index` of a stream ("train", "eval", "validation")."""
    rng = np.random.default_rng([WORLD_SEED, STREAMS[stream], index])
    context = CONTEXTS[rng.choice(len(CONTEXTS), p=[context.share for context in CONTEXTS])]
    categories = draw_categories(rng, context)
    canvas = _background(rng, context)
    owner = np.full((SIDE, SIDE), BACKGROUND, dtype=np.int8)
    full_areas: list[int] = []
    for category in categories:
        _place(rng, canvas, owner, full_areas, CATEGORIES[category].glyph)
    noisy = canvas + rng.normal(0.0, NOISE, canvas.shape).astype(np.float32)
    pixels = np.clip(np.rint(noisy * 255.0), 0, 255).astype(np.uint8)
    objects = tuple(_seen(owner, position, category) for position, category in enumerate(categories))
    return Scene(context.name, objects, pixels, owner)


def draw_categories(rng: np.random.Generator, context: Context) -> list[int]:
    """Return the indices of the 3 to 7 different categories of a scene, in drawing order."""
    wanted = int(rng.integers(MIN_OBJECTS, MAX_OBJECTS + 1))
    belonging = np.zeros(len(CATEGORIES))
    for name, weight in context.weights.items():
        belonging[CATEGORY_INDEX[name]] = weight
    anywhere = np.ones(len(CATEGORIES))
    chosen: list[int] = []
    while len(chosen) < wanted:
        weights = anywhere if rng.random() < OUT_OF_CONTEXT else belonging
        category = int(rng.choice(len(CATEGORIES), p=weights / weights.sum()))
        if category not in chosen:
            chosen.append(category)
    return chosen


def _background(rng: np.random.Generator, context: Context) -> Floats:
    """Return the empty canvas: the context's colour, shifted, with a slope of light across it."""
    tint = np.asarray(context.background) + rng.normal(0.0, 0.06, 3)
    slope = rng.normal(0.0, 0.08, 2)
    ramp = np.linspace(-1.0, 1.0, SIDE)
    light = slope[0] * ramp[:, None, None] + slope[1] * ramp[None, :, None]
    return np.asarray(tint[None, None, :] + light, dtype=np.float32)


def _place(
    rng: np.random.Generator, canvas: Floats, owner: npt.NDArray[np.int8], full_areas: list[int], glyph: Glyph
) -> None:
    """Draw the next glyph, in place on all three, where the earlier ones stay visible enough.

    If no try finds such a place, the one that hides least is taken.
    """
    size = int(rng.integers(MIN_SIZE, MAX_SIZE + 1))
    mask, paint = _stamp(rng, size, glyph)
    best = (-1.0, 0, 0)
    for _ in range(PLACEMENT_TRIES):
        x, y = (int(value) for value in rng.integers(0, SIDE - size + 1, 2))
        best = max(best, (_least_visible(owner, full_areas, mask, x, y), x, y))
        if best[0] >= MIN_VISIBLE:
            break
    _, x, y = best
    canvas[y : y + size, x : x + size][mask] = paint[mask]
    owner[y : y + size, x : x + size][mask] = len(full_areas)
    full_areas.append(int(np.count_nonzero(mask)))


def _least_visible(owner: npt.NDArray[np.int8], full_areas: list[int], mask: Bools, x: int, y: int) -> float:
    """Return the smallest visible share that any earlier object keeps when `mask` is put at (x, y)."""
    hidden = owner[y : y + mask.shape[0], x : x + mask.shape[1]][mask]
    shares = [
        (np.count_nonzero(owner == position) - np.count_nonzero(hidden == position)) / full
        for position, full in enumerate(full_areas)
    ]
    return min(shares, default=1.0)


def _stamp(rng: np.random.Generator, size: int, glyph: Glyph) -> tuple[Bools, Floats]:
    """Return a glyph's mask [size, size] and its colours [size, size, 3], slightly turned and tinted."""
    centres = ((np.arange(size) + 0.5) * (2.0 / size) - 1.0).astype(np.float32)
    across, down = np.meshgrid(centres, centres)
    turn = rng.uniform(-MAX_TURN, MAX_TURN)
    u = (np.cos(turn) * across + np.sin(turn) * down).astype(np.float32)
    v = (np.cos(turn) * down - np.sin(turn) * across).astype(np.float32)
    colour = np.asarray(COLOURS[glyph.colour]) + rng.normal(0.0, 0.05, 3)
    dark = TEXTURES[glyph.texture](u, v)
    paint = np.where(dark[..., None], DARKER * colour, colour).astype(np.float32)
    return SHAPES[glyph.shape](u, v), paint


def _seen(owner: npt.NDArray[np.int8], position: int, category: int) -> PlacedObject:
    """Measure what is visible of the object at `position`."""
    rows, columns = np.nonzero(owner == position)
    x, y = int(columns.min()), int(rows.min())
    box = (x, y, int(columns.max()) - x + 1, int(rows.max()) - y + 1)
    return PlacedObject(category, box, len(rows))
