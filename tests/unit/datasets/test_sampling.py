"""POPE's construction: laws of the three splits, and a tiny case worked out by hand."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readout_audit.datasets.parse import read_questions
from readout_audit.datasets.sampling import (
    SPLITS,
    ImageObjects,
    build_questions,
    choose_images,
    choose_negatives,
    count_statistics,
    question_text,
    read_coco_objects,
    write_pope_file,
)
from readout_audit.errors import AuditError
from readout_audit.stages.sample_questions import main as sample_questions

NAMES = ("apple", "bed", "cup", "dog", "egg", "fork", "goat", "hat", "ink", "jug")

# In how many images: cup 3, dog 3, bed 2, apple 2, fork 1, egg and goat 0.
SMALL = [
    ImageObjects("1.png", ("apple", "bed", "cup", "dog")),
    ImageObjects("2.png", ("apple", "cup", "dog")),
    ImageObjects("3.png", ("bed", "cup", "fork")),
    ImageObjects("4.png", ("dog",)),
]
SMALL_NAMES = ("apple", "bed", "cup", "dog", "egg", "fork", "goat")


@st.composite
def worlds(draw):
    sets = draw(st.lists(st.sets(st.sampled_from(NAMES), min_size=3, max_size=7), min_size=1, max_size=8))
    return [ImageObjects(f"{index}.png", tuple(sorted(found))) for index, found in enumerate(sets)]


@settings(max_examples=60)
@given(worlds(), st.integers(0, 2**32 - 1))
def test_every_split_is_balanced_true_and_asks_nothing_twice(images, seed):
    present = {image.image: set(image.objects) for image in images}
    for rows in build_questions(images, NAMES, seed=seed).values():
        assert [row.question_id for row in rows] == list(range(1, 6 * len(images) + 1))
        assert [row.image for row in rows] == [image.image for image in images for _ in range(6)]
        assert [row.label for row in rows] == ["yes", "no"] * (3 * len(images))
        assert all((row.object in present[row.image]) == (row.label == "yes") for row in rows)
        assert len({(row.image, row.text) for row in rows}) == len(rows)


@settings(max_examples=60)
@given(worlds(), st.integers(0, 2**32 - 1))
def test_the_splits_share_their_positives_word_for_word(images, seed):
    questions = build_questions(images, NAMES, seed=seed)
    positives = [[row for row in questions[split] if row.label == "yes"] for split in SPLITS]
    assert positives[0] == positives[1] == positives[2]


@settings(max_examples=60)
@given(worlds(), st.integers(0, 2**32 - 1))
def test_popular_and_adversarial_negatives_are_the_best_by_their_counts(images, seed):
    """Against the definitions, counted here a second way."""
    questions = build_questions(images, NAMES, seed=seed)
    for index, image in enumerate(images):
        absent = set(NAMES) - set(image.objects)

        def images_with(*names):
            return sum(set(names) <= set(other.objects) for other in images)

        popular = [row.object for row in questions["popular"][6 * index : 6 * index + 6] if row.label == "no"]
        assert min(map(images_with, popular)) >= max(map(images_with, absent - set(popular)), default=0)
        rows = questions["adversarial"][6 * index : 6 * index + 6]
        free = set(absent)
        for positive, negative in zip(rows[::2], rows[1::2], strict=True):
            assert images_with(positive.object, negative.object) == max(
                images_with(positive.object, other) for other in free
            )
            free.remove(negative.object)


def test_same_seed_same_questions_and_another_seed_others():
    images = [ImageObjects(f"{index}.png", NAMES[:5]) for index in range(10)]
    assert build_questions(images, NAMES, seed=3) == build_questions(images, NAMES, seed=3)
    assert build_questions(images, NAMES, seed=3) != build_questions(images, NAMES, seed=4)


def test_frequencies_by_hand():
    assert count_statistics(SMALL, SMALL_NAMES).by_frequency == (
        "cup",
        "dog",
        "apple",
        "bed",
        "fork",
        "egg",
        "goat",
    )


def test_co_occurrence_by_hand():
    """With cup: apple 2, bed 2, dog 2, fork 1. With dog: apple 2, cup 2, bed 1. With fork: bed 1, cup 1."""
    partners = count_statistics(SMALL, SMALL_NAMES).by_co_occurrence
    assert partners["cup"] == ("apple", "bed", "dog", "fork", "egg", "goat")
    assert partners["dog"] == ("apple", "cup", "bed", "egg", "fork", "goat")
    assert partners["fork"] == ("bed", "cup", "apple", "dog", "egg", "goat")


def test_negatives_by_hand():
    statistics = count_statistics(SMALL, SMALL_NAMES)
    image, unused = SMALL[1], np.random.default_rng(0)  # apple, cup, dog; absent: bed, egg, fork, goat
    assert choose_negatives("popular", image, ["dog", "cup"], statistics, unused) == ["bed", "fork"]
    # cup's best absent is bed; dog's too, but it is taken: then egg, fork, goat are equal (0) but for the name.
    assert choose_negatives("adversarial", image, ["cup", "dog"], statistics, unused) == ["bed", "egg"]
    third = SMALL[2]  # bed, cup, fork; absent: apple, dog, egg, goat
    assert choose_negatives("adversarial", third, ["cup", "bed"], statistics, unused) == ["apple", "dog"]
    with pytest.raises(AuditError, match="'easy' is not a POPE split"):
        choose_negatives("easy", image, ["cup"], statistics, unused)


def test_random_negatives_reach_every_absent_category():
    statistics = count_statistics(SMALL, SMALL_NAMES)
    rng = np.random.default_rng(5)
    drawn = {
        name for _ in range(200) for name in choose_negatives("random", SMALL[1], ["cup"], statistics, rng)
    }
    assert drawn == {"bed", "egg", "fork", "goat"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dog", "Is there a dog in the image?"),
        ("umbrella", "Is there an umbrella in the image?"),
        ("orange", "Is there an orange in the image?"),
        ("dining table", "Is there a dining table in the image?"),
    ],
)
def test_article(name, text):
    assert question_text(name) == text


def test_too_few_objects_or_absent_categories_are_refused():
    with pytest.raises(AuditError, match=r"4\.png: 1 categories present and 6 absent"):
        build_questions(SMALL, SMALL_NAMES)
    with pytest.raises(AuditError, match=r"1\.png: 4 categories present and 1 absent"):
        build_questions(SMALL[:1], ("apple", "bed", "cup", "dog", "egg"))
    with pytest.raises(AuditError, match=r"1\.png: dog is annotated but not in the category list"):
        build_questions(SMALL[:1], ("apple", "bed", "cup"))


def annotation():
    return {
        "images": [{"id": 7, "file_name": "7.jpg"}, {"id": 3, "file_name": "3.jpg"}],
        "annotations": [
            {"image_id": 7, "category_id": 18},
            {"image_id": 7, "category_id": 2},
            {"image_id": 7, "category_id": 18},
        ],
        "categories": [{"id": 18, "name": "dog"}, {"id": 2, "name": "bicycle"}, {"id": 1, "name": "person"}],
    }


def test_coco_annotation_is_read_in_its_order_with_each_category_once(tmp_path):
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(annotation()))
    images, names = read_coco_objects(path)
    assert images == [ImageObjects("7.jpg", ("bicycle", "dog")), ImageObjects("3.jpg", ())]
    assert names == ("bicycle", "dog", "person")


@pytest.mark.parametrize(
    ("break_it", "named"),
    [
        (lambda value: value.pop("categories"), "categories"),
        (lambda value: value["annotations"].append({"image_id": 8, "category_id": 2}), "8"),
        (lambda value: value["annotations"].append({"image_id": 3, "category_id": 99}), "99"),
    ],
)
def test_a_broken_annotation_is_refused_by_name(tmp_path, break_it, named):
    value = annotation()
    break_it(value)
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(value))
    with pytest.raises(AuditError, match=f"not a COCO annotation file, '?{named}'? is missing"):
        read_coco_objects(path)


def test_written_files_are_read_like_real_ones(tmp_path):
    images = [ImageObjects("1.png", ("apple", "bed", "dog"))]
    rows = build_questions(images, NAMES)["popular"]
    path = tmp_path / "demo_pope_popular.json"
    write_pope_file(path, rows)
    assert list(json.loads(path.read_text().splitlines()[0])) == ["question_id", "image", "text", "label"]
    read = read_questions(path)
    assert read.format == "json_lines" and read.ignored_keys == ()
    assert [(row.question, row.label, row.object) for row in read.rows] == [
        (row.text, row.label, row.object) for row in rows
    ]


def test_the_wording_is_that_of_the_real_release(shared):
    """8,999 of the current release's 9,000 questions; the other one says "an traffic light" there."""
    release = shared / "mirror" / "pope" / "coco-2023-11"
    rows = [row for split in SPLITS for row in read_questions(release / f"coco_pope_{split}.json").rows]
    assert len(rows) == 9000
    others = [row.question for row in rows if question_text(row.object or "") != row.question]
    assert others == ["Is there an traffic light in the image?"]


def test_pictures_that_can_be_asked_about_are_drawn_by_seed_and_kept_in_order():
    # With two questions either way: 4.png has one object only; the other three have two present and two absent.
    for seed in range(4):
        drawn, fit = choose_images(SMALL, SMALL_NAMES, 2, 2, seed, "x.json")
        assert fit == 3 and drawn == [image for image in SMALL if image in drawn] and len(drawn) == 2
        assert SMALL[3] not in drawn
    assert len({tuple(choose_images(SMALL, SMALL_NAMES, 2, 2, seed, "x")[0]) for seed in range(9)}) > 1
    with pytest.raises(
        AuditError, match=r"x\.json: 4 pictures were asked for, but only 3 of 4 have 2 different"
    ):
        choose_images(SMALL, SMALL_NAMES, 2, 4, 0, "x.json")
    # 1.png has four of five categories: one absent, so it cannot be asked about twice.
    assert choose_images(SMALL[:1], SMALL_NAMES[:5], 1, 1, 0, "x")[1] == 1
    with pytest.raises(AuditError):
        choose_images(SMALL[:1], SMALL_NAMES[:5], 2, 1, 0, "x")


def test_popular_counts_over_the_whole_annotation_not_over_the_drawn_pictures():
    rows = build_questions(SMALL[2:3], SMALL_NAMES, per_image=1, counted=SMALL)["popular"]
    assert rows[1].object == "dog"  # in three of the four pictures, and not in this one
    alone = build_questions(SMALL[2:3], SMALL_NAMES, per_image=1)["popular"]
    assert alone[1].object == "apple"  # nothing else is in this one picture, so the first by name


def test_the_stage_writes_three_splits_and_the_same_bytes_again(tmp_path):
    names = dict(enumerate(SMALL_NAMES, start=1))
    ids = {name: number for number, name in names.items()}
    annotation = {
        "images": [{"id": n, "file_name": image.image} for n, image in enumerate(SMALL)],
        "categories": [{"id": number, "name": name} for number, name in names.items()],
        "annotations": [
            {"image_id": n, "category_id": ids[name]}
            for n, image in enumerate(SMALL)
            for name in image.objects
        ],
    }
    (tmp_path / "a.json").write_text(json.dumps(annotation), encoding="utf-8")
    words = ["--annotations", str(tmp_path / "a.json"), "--images", "2", "--per-image", "2", "--seed", "5"]
    for folder in ("one", "two"):
        assert sample_questions([*words, "--folder", str(tmp_path / folder)]) == 0
    for split in SPLITS:
        rows = read_questions(tmp_path / "one" / f"{split}.json").rows
        assert len(rows) == 2 * 2 * 2 and [row.label for row in rows] == ["yes", "no"] * 4
        assert (tmp_path / "one" / f"{split}.json").read_bytes() == (
            tmp_path / "two" / f"{split}.json"
        ).read_bytes()
    with pytest.raises(AuditError, match="--images is 0; it must be at least 1"):
        sample_questions([*words[:2], "--images", "0", "--folder", str(tmp_path)])
