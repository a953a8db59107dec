"""Ask about objects the way POPE does, from any COCO-format annotation.

POPE (Li et al., EMNLP 2023, arXiv 2305.10355) asks, for each image, about a few annotated objects
("yes") and as many absent ones ("no"). Its three splits share the positives word for word and differ
in the absent objects:

- random: any absent category;
- popular: the absent categories found in the most images;
- adversarial: the absent categories found most often together with the positive asked just before.

The splits are balanced, positives and negatives alternate, and no category is asked twice of an image.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from readout_audit.errors import AuditError
from readout_audit.fileio import read_json, write_text

SPLITS = ("random", "popular", "adversarial")

_VOWELS = frozenset("aeiou")


class ImageObjects(NamedTuple):
    """One image and the names of the different categories annotated in it, sorted."""

    image: str
    objects: tuple[str, ...]


class Question(NamedTuple):
    """One row of a POPE file; `object` is what the text asks for and is not written to the file."""

    question_id: int
    image: str
    text: str
    label: str
    object: str


class Statistics(NamedTuple):
    """What the popular and the adversarial split are drawn by.

    `categories` is sorted by name; `by_frequency` by falling number of images, `by_co_occurrence[name]` by
    falling number of images shared with `name`. Equal counts stand in order of name.
    """

    categories: tuple[str, ...]
    by_frequency: tuple[str, ...]
    by_co_occurrence: Mapping[str, tuple[str, ...]]


def read_coco_objects(path: Path) -> tuple[list[ImageObjects], tuple[str, ...]]:
    """Read a COCO-format annotation file ("instances"): objects per image, and all category names.

    Returns the images in the file's order, those without any annotation included, and the names sorted.

    Raises:
        AuditError: the file is no JSON object with images, annotations and categories, or an annotation
            names an image or a category that the file does not list.
    """
    annotation = read_json(path, "the COCO annotation file")
    try:
        names = {category["id"]: str(category["name"]) for category in annotation["categories"]}
        files = {image["id"]: str(image["file_name"]) for image in annotation["images"]}
        found: dict[Any, set[str]] = {image_id: set() for image_id in files}
        for row in annotation["annotations"]:
            found[row["image_id"]].add(names[row["category_id"]])
    except (KeyError, TypeError) as error:
        raise AuditError(
            f"{path}: not a COCO annotation file, {error} is missing or not listed; "
            f"it needs images (id, file_name), categories (id, name) and annotations (image_id, category_id)."
        ) from error
    images = [ImageObjects(files[image_id], tuple(sorted(found[image_id]))) for image_id in files]
    return images, tuple(sorted(set(names.values())))


def count_statistics(images: Iterable[ImageObjects], categories: Iterable[str]) -> Statistics:
    """Count in how many images each category, and each pair of categories, is found."""
    ordered = tuple(sorted(set(categories)))
    single: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for image in images:
        present = sorted(set(image.objects))
        single.update(present)
        together.update(permutations(present, 2))

    def ranked(name: str) -> tuple[str, ...]:
        others = [other for other in ordered if other != name]
        return tuple(sorted(others, key=lambda other: (-together[name, other], other)))

    by_frequency = tuple(sorted(ordered, key=lambda name: (-single[name], name)))
    return Statistics(ordered, by_frequency, {name: ranked(name) for name in ordered})


def question_text(name: str) -> str:
    """Return POPE's question about a category, with the article its first letter asks for."""
    article = "an" if name[:1].lower() in _VOWELS else "a"
    return f"Is there {article} {name} in the image?"


def choose_images(
    images: Sequence[ImageObjects],
    categories: Iterable[str],
    per_image: int,
    count: int,
    seed: int,
    source: str,
) -> tuple[list[ImageObjects], int]:
    """Draw images that can be asked about `per_image` times with either answer, as POPE draws its 500.

    Args:
        images: all annotated images.
        categories: every name that may be asked.
        per_image: positives, and as many negatives, per image.
        count: how many images to draw without replacement.
        seed: of the draw.
        source: where the images are from, for the refusal.

    Returns:
        The drawn images in the order of `images`, and how many could have been drawn.

    Raises:
        AuditError: fewer than `count` can be asked about.
    """
    total = len(set(categories))
    fit = [
        image
        for image in images
        if len(set(image.objects)) >= per_image and total - len(set(image.objects)) >= per_image
    ]
    if len(fit) < count:
        raise AuditError(
            f"{source}: {count} pictures were asked for, but only {len(fit)} of {len(images)} have {per_image} "
            f"different categories present and {per_image} absent; ask for fewer pictures or questions."
        )
    places = np.random.default_rng([seed, 0, 0]).choice(len(fit), size=count, replace=False)
    return [fit[place] for place in sorted(places)], len(fit)


def build_questions(
    images: Sequence[ImageObjects],
    categories: Iterable[str],
    per_image: int = 3,
    seed: int = 0,
    counted: Sequence[ImageObjects] | None = None,
) -> dict[str, list[Question]]:
    """Build the three splits.

    Args:
        images: the images to ask about.
        categories: every name that may be asked, annotated somewhere or not.
        per_image: positives, and as many negatives, per image.
        seed: of the draws; the positives and the random negatives have a generator of their own.
        counted: the images that the statistics are counted over; None takes those asked about.

    Returns:
        split -> rows, `question_id` from 1; 2 * per_image rows per image.

    Raises:
        AuditError: an image has fewer than `per_image` objects or absent categories.
    """
    statistics = count_statistics(images if counted is None else counted, categories)
    for image in images:
        _check(image, statistics, per_image)
    positive_rng = np.random.default_rng([seed, 0])
    positives = [_draw(positive_rng, image.objects, per_image) for image in images]
    questions = {}
    for number, split in enumerate(SPLITS, start=1):
        rng = np.random.default_rng([seed, number])
        asked = [
            (image.image, name, label)
            for image, present in zip(images, positives, strict=True)
            for name, label in _alternate(present, choose_negatives(split, image, present, statistics, rng))
        ]
        questions[split] = [
            Question(question_id, image, question_text(name), label, name)
            for question_id, (image, name, label) in enumerate(asked, start=1)
        ]
    return questions


def choose_negatives(
    split: str,
    image: ImageObjects,
    positives: Sequence[str],
    statistics: Statistics,
    rng: np.random.Generator,
) -> list[str]:
    """Return one absent category per positive, all different, by the split's rule; `rng` serves "random" only."""
    absent = [name for name in statistics.categories if name not in image.objects]
    if split == "random":
        return _draw(rng, absent, len(positives))
    if split == "popular":
        return [name for name in statistics.by_frequency if name in absent][: len(positives)]
    if split == "adversarial":
        chosen: list[str] = []
        for positive in positives:
            free = (o for o in statistics.by_co_occurrence[positive] if o in absent and o not in chosen)
            chosen.append(next(free))
        return chosen
    raise AuditError(f"{split!r} is not a POPE split; the splits are {', '.join(SPLITS)}.")


def write_pope_file(path: Path, questions: Iterable[Question]) -> None:
    """Write one split as POPE's files are: a JSON object per line with question_id, image, text and label."""
    rows = (question._asdict() for question in questions)
    lines = (json.dumps({key: row[key] for key in ("question_id", "image", "text", "label")}) for row in rows)
    write_text(path, "".join(f"{line}\n" for line in lines))


def _draw(rng: np.random.Generator, names: Sequence[str], count: int) -> list[str]:
    """Draw `count` different names, each set equally likely, in random order."""
    return [names[position] for position in rng.permutation(len(names))[:count]]


def _alternate(positives: Sequence[str], negatives: Sequence[str]) -> Iterable[tuple[str, str]]:
    """Yield name and label, a positive and a negative by turns."""
    for positive, negative in zip(positives, negatives, strict=True):
        yield positive, "yes"
        yield negative, "no"


def _check(image: ImageObjects, statistics: Statistics, per_image: int) -> None:
    """Refuse an image that cannot be asked about `per_image` times with either answer."""
    unknown = set(image.objects) - set(statistics.categories)
    if unknown:
        raise AuditError(
            f"{image.image}: {', '.join(sorted(unknown))} is annotated but not in the category list."
        )
    absent = len(statistics.categories) - len(set(image.objects))
    if min(len(set(image.objects)), absent) < per_image:
        raise AuditError(
            f"{image.image}: {len(set(image.objects))} categories present and {absent} absent, "
            f"too few for {per_image} questions with either answer; leave the image out or ask less."
        )
