"""The written demo world: same bytes each time, real formats, nothing asked against the ground truth."""

import json
from collections import Counter

import pytest
from PIL import Image

from readout_audit.datasets.parse import read_questions
from readout_audit.datasets.sampling import SPLITS, read_coco_objects
from readout_audit.demo.build import EVALUATION_IMAGES, image_name
from readout_audit.demo.scenes import draw_scene
from readout_audit.stages.make_demo_world import main

COUNT = 30


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("world")
    assert main(["--output", str(folder), "--images", str(COUNT)]) == 0
    return folder


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_the_same_bytes_every_time(world, tmp_path):
    main(["--output", str(tmp_path), "--images", str(COUNT)])
    assert files(tmp_path) == files(world)


def test_what_is_written(world):
    assert EVALUATION_IMAGES == 200
    names = {f"images/{image_name(number)}" for number in range(1, COUNT + 1)}
    questions = {f"demo_pope_{split}.json" for split in (*SPLITS, "misspelt_adversarial")}
    assert set(files(world)) == names | {"annotations.json"} | questions
    assert image_name(1) == "DEMO_eval_000000000001.png"


def test_pictures_are_the_drawn_pixels(world):
    with Image.open(world / "images" / image_name(3)) as picture:
        assert (picture.mode, picture.size) == ("RGB", (84, 84))
        assert picture.tobytes() == draw_scene("eval", 3).pixels.tobytes()


def test_annotation_has_what_coco_readers_use(world):
    annotation = json.loads((world / "annotations.json").read_text())
    assert len({row["id"] for row in annotation["annotations"]}) == len(annotation["annotations"])
    for row in annotation["annotations"]:
        x, y, width, height = row["bbox"]
        assert x >= 0 and x + width <= 84 and y >= 0 and y + height <= 84
        assert 0 < row["area"] <= width * height and row["iscrowd"] == 0
    dog = next(row for row in annotation["categories"] if row["name"] == "dog")
    assert dog == {"id": 18, "name": "dog", "supercategory": "animal"}


def test_questions_agree_with_the_annotation(world):
    present = {image.image: set(image.objects) for image in read_coco_objects(world / "annotations.json")[0]}
    for split in SPLITS:
        rows = read_questions(world / f"demo_pope_{split}.json").rows
        assert Counter((row.image, row.label) for row in rows) == {
            (image_name(number), label): 3 for number in range(1, COUNT + 1) for label in ("yes", "no")
        }
        assert all((row.object in present[row.image]) == (row.label == "yes") for row in rows)


def test_the_misspelt_release_asks_the_same_in_other_words(world):
    spelt, misspelt = (
        [json.loads(line) for line in (world / f"demo_pope_{name}.json").read_text().splitlines()]
        for name in ("adversarial", "misspelt_adversarial")
    )
    differing = [(one, other) for one, other in zip(spelt, misspelt, strict=True) if one != other]
    assert differing and len(differing) == sum(one["text"].startswith("Is there an ") for one in spelt)
    for one, other in differing:
        assert other == one | {"text": one["text"].replace("image?", "imange?")}
