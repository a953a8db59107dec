"""What there is in the demo world: thirty COCO categories, six contexts, and how each category looks.

The names and ids are COCO's, so that the annotation file and the questions read like real ones; the
pictures are glyphs. Categories of one context partly share colours, shapes or textures, because real
objects that occur together are also the ones that are mistaken for each other.
"""

from typing import NamedTuple


class Glyph(NamedTuple):
    """How a category is drawn: the name of a shape, of a colour and of a texture (see `scenes`)."""

    shape: str
    colour: str
    texture: str


class Category(NamedTuple):
    """One category: COCO's name, id and supercategory, and its glyph."""

    name: str
    coco_id: int
    supercategory: str
    glyph: Glyph


class Context(NamedTuple):
    """One kind of scene: its share of all scenes, background colour and the weights of what belongs in it."""

    name: str
    share: float
    background: tuple[float, float, float]
    weights: dict[str, float]


CATEGORIES: tuple[Category, ...] = (
    Category("person", 1, "person", Glyph("ellipse", "orange", "solid")),
    Category("bicycle", 2, "vehicle", Glyph("ring", "yellow", "solid")),
    Category("car", 3, "vehicle", Glyph("square", "red", "solid")),
    Category("bus", 6, "vehicle", Glyph("square", "red", "stripes")),
    Category("traffic light", 10, "outdoor", Glyph("bar", "yellow", "checks")),
    Category("stop sign", 13, "outdoor", Glyph("hexagon", "red", "solid")),
    Category("bench", 15, "outdoor", Glyph("table", "brown", "stripes")),
    Category("bird", 16, "animal", Glyph("triangle", "pink", "solid")),
    Category("dog", 18, "animal", Glyph("ellipse", "brown", "stripes")),
    Category("horse", 19, "animal", Glyph("table", "brown", "solid")),
    Category("sheep", 20, "animal", Glyph("star", "white", "solid")),
    Category("cow", 21, "animal", Glyph("table", "white", "checks")),
    Category("elephant", 22, "animal", Glyph("halfdisk", "brown", "solid")),
    Category("umbrella", 28, "accessory", Glyph("halfdisk", "pink", "stripes")),
    Category("kite", 38, "sports", Glyph("diamond", "pink", "checks")),
    Category("wine glass", 46, "kitchen", Glyph("triangle", "white", "stripes")),
    Category("cup", 47, "kitchen", Glyph("square", "cyan", "solid")),
    Category("fork", 48, "kitchen", Glyph("cross", "white", "stripes")),
    Category("bowl", 51, "kitchen", Glyph("halfdisk", "cyan", "stripes")),
    Category("apple", 53, "food", Glyph("ellipse", "purple", "solid")),
    Category("orange", 55, "food", Glyph("ellipse", "orange", "checks")),
    Category("pizza", 59, "food", Glyph("triangle", "orange", "checks")),
    Category("chair", 62, "furniture", Glyph("cross", "green", "solid")),
    Category("dining table", 67, "furniture", Glyph("table", "orange", "stripes")),
    Category("laptop", 73, "electronic", Glyph("diamond", "blue", "stripes")),
    Category("keyboard", 76, "electronic", Glyph("bar", "blue", "checks")),
    Category("oven", 79, "appliance", Glyph("square", "purple", "checks")),
    Category("refrigerator", 82, "appliance", Glyph("bar", "cyan", "solid")),
    Category("book", 84, "indoor", Glyph("square", "blue", "stripes")),
    Category("clock", 85, "indoor", Glyph("ring", "green", "solid")),
)

CONTEXTS: tuple[Context, ...] = (
    Context(
        "street",
        0.25,
        (0.42, 0.43, 0.46),
        {
            "car": 5.0,
            "person": 5.0,
            "traffic light": 4.0,
            "bus": 3.0,
            "bicycle": 3.0,
            "stop sign": 2.0,
            "bench": 1.5,
            "umbrella": 1.5,
            "dog": 1.0,
            "bird": 1.0,
        },
    ),
    Context(
        "park",
        0.20,
        (0.36, 0.48, 0.36),
        {
            "person": 5.0,
            "dog": 4.0,
            "bench": 4.0,
            "bird": 3.0,
            "kite": 2.5,
            "umbrella": 2.0,
            "bicycle": 2.0,
        },
    ),
    Context(
        "dining room",
        0.18,
        (0.50, 0.42, 0.38),
        {
            "dining table": 5.0,
            "chair": 4.0,
            "fork": 3.0,
            "wine glass": 3.0,
            "pizza": 3.0,
            "cup": 3.0,
            "person": 3.0,
            "bowl": 2.0,
            "orange": 1.0,
        },
    ),
    Context(
        "kitchen",
        0.14,
        (0.48, 0.46, 0.40),
        {
            "oven": 4.0,
            "refrigerator": 4.0,
            "bowl": 4.0,
            "cup": 4.0,
            "apple": 3.0,
            "chair": 2.0,
            "orange": 1.5,
            "clock": 1.5,
            "person": 1.0,
        },
    ),
    Context(
        "office",
        0.14,
        (0.40, 0.42, 0.50),
        {
            "laptop": 5.0,
            "chair": 5.0,
            "keyboard": 4.0,
            "book": 4.0,
            "cup": 2.5,
            "clock": 2.0,
            "person": 2.0,
        },
    ),
    Context(
        "farm",
        0.09,
        (0.44, 0.46, 0.32),
        {
            "cow": 5.0,
            "sheep": 4.0,
            "horse": 4.0,
            "bird": 2.5,
            "person": 2.0,
            "elephant": 2.0,
            "dog": 1.5,
        },
    ),
)

CATEGORY_INDEX: dict[str, int] = {category.name: index for index, category in enumerate(CATEGORIES)}
"""Position of each category in `CATEGORIES`: the row order of every array over categories."""
