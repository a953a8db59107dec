"""Write the demo world to a folder: pictures, COCO annotation, questions of the three splits."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from readout_audit.datasets.sampling import Question, build_questions, read_coco_objects, write_pope_file
from readout_audit.demo.scenes import SIDE, WORLD_SEED, Scene, draw_scene
from readout_audit.demo.world import CATEGORIES
from readout_audit.fileio import replacing, write_json

EVALUATION_IMAGES = 200
QUESTIONS_PER_IMAGE = 3
"""Positives, and as many negatives, per image and split."""


def image_name(number: int) -> str:
    """Return the file name of evaluation image `number`, counted from 1."""
    return f"DEMO_eval_{number:012d}.png"


def write_world(output: Path, count: int = EVALUATION_IMAGES) -> dict[str, list[Question]]:
    """Write `images/`, `annotations.json` and the three question files; return the questions by split.

    Beside them lies the adversarial file with the misspelling of POPE's release of October 2023, which ends every
    question about "an" object in "imange": a second release of the same questions.
    """
    scenes = [draw_scene("eval", number) for number in range(1, count + 1)]
    for number, scene in enumerate(scenes, start=1):
        _write_png(output / "images" / image_name(number), scene.pixels)
    annotation = output / "annotations.json"
    write_json(annotation, coco_annotation(scenes))
    images, categories = read_coco_objects(annotation)
    questions = build_questions(images, categories, QUESTIONS_PER_IMAGE, seed=WORLD_SEED)
    for split, rows in questions.items():
        write_pope_file(output / f"demo_pope_{split}.json", rows)
    misspelt = [row._replace(text=misspell(row.text)) for row in questions["adversarial"]]
    write_pope_file(output / "demo_pope_misspelt_adversarial.json", misspelt)
    return questions


def misspell(question: str) -> str:
    """Return a question as POPE's release of October 2023 spells it: "imange" after "an", unchanged otherwise."""
    return (
        question.replace("in the image?", "in the imange?")
        if question.startswith("Is there an ")
        else question
    )


def coco_annotation(scenes: list[Scene]) -> dict[str, Any]:
    """Describe the scenes as COCO's instance files do: boxes and areas in pixels, of what is visible."""
    placed = [(number, item) for number, scene in enumerate(scenes, start=1) for item in scene.objects]
    return {
        "info": {"description": "readout-audit demo world", "version": str(WORLD_SEED)},
        "images": [
            {
                "id": number,
                "file_name": image_name(number),
                "width": SIDE,
                "height": SIDE,
                "context": scene.context,
            }
            for number, scene in enumerate(scenes, start=1)
        ],
        "annotations": [
            {
                "id": identifier,
                "image_id": number,
                "category_id": CATEGORIES[item.category].coco_id,
                "bbox": list(item.box),
                "area": item.area,
                "iscrowd": 0,
            }
            for identifier, (number, item) in enumerate(placed, start=1)
        ],
        "categories": [
            {"id": category.coco_id, "name": category.name, "supercategory": category.supercategory}
            for category in CATEGORIES
        ],
    }


def _write_png(path: Path, pixels: np.ndarray) -> None:
    """Write a picture without any metadata, so that the bytes follow from the pixels."""
    with replacing(path) as temporary:
        Image.fromarray(pixels, "RGB").save(temporary, format="PNG")
