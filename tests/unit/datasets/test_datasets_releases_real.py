"""The real releases, beside the repository: every count and hash that config/datasets.yaml states."""

import pytest
import yaml

from readout_audit.datasets.objects import extract_object, is_misspelt
from readout_audit.datasets.parse import read_questions
from readout_audit.datasets.questions import build_question_table, question_uid, report_questions
from readout_audit.datasets.releases import (
    content_sha256,
    describe,
    known_files,
    recognise_bytes,
    recognise_content,
)
from readout_audit.fileio import sha256_file

SPLITS = ("adversarial", "popular", "random")


@pytest.fixture(scope="module")
def config(root):
    return yaml.safe_load((root / "config/datasets.yaml").read_text())


@pytest.fixture(scope="module")
def releases(shared, config):
    """Release -> split -> (path, parsed file), of every release and label set that is not generated."""
    entries = {**config["known_datasets"], **config["known_labels"]}
    return {
        name: {
            split: (shared / "mirror" / file["mirror"], read_questions(shared / "mirror" / file["mirror"]))
            for split, file in entry["splits"].items()
        }
        for name, entry in entries.items()
        if not entry.get("generated")
    }


def table(config, releases, name):
    entry = {**config["known_datasets"], **config["known_labels"]}[name]
    splits = {split: parsed for split, (_, parsed) in releases[name].items()}
    built = build_question_table(name, entry["image_namespace"], splits)
    return built, report_questions(built, splits)


def test_every_stated_hash_and_count_holds(config, releases):
    entries = {**config["known_datasets"], **config["known_labels"]}
    assert len(releases) == 7
    for name, splits in releases.items():
        for split, (path, parsed) in splits.items():
            stated = entries[name]["splits"][split]
            assert stated["sha256"] == sha256_file(path)
            assert stated["content_sha256"] == content_sha256(parsed.rows)
            assert stated["rows"] == len(parsed.rows)
            assert stated["misspelt"] == sum(is_misspelt(row.question) for row in parsed.rows)
            assert all(extract_object(row.question) is not None for row in parsed.rows)


def test_the_papers_release(config, releases):
    _, report = table(config, releases, "coco-2023-10")
    assert (report["rows"], report["distinct"], report["images"], report["misspelt"]) == (9000, 5170, 500, 57)
    assert report["splits"]["adversarial"]["misspelt_labels"] == {"yes": 43, "no": 14}
    assert report["distinct_per_image"] == [8, 10.34, 12]


def test_distinct_questions_of_the_current_release(config, releases):
    _, report = table(config, releases, "coco-2023-11")
    assert (report["distinct"], report["misspelt"]) == (5127, 0)


@pytest.mark.parametrize(("name", "typos"), [("coco-2023-05", (58, 44, 144)), ("coco-2023-10", (57, 0, 0))])
def test_misspelt_questions_per_split(config, releases, name, typos):
    _, report = table(config, releases, name)
    assert tuple(report["splits"][split]["misspelt"] for split in SPLITS) == typos


def test_each_file_is_told_apart_by_bytes_and_by_content(config, releases):
    known = known_files(config)
    path, parsed = releases["coco-2023-10"]["popular"]
    assert (
        describe(recognise_bytes(sha256_file(path), known)) == "coco-2023-10 popular and coco-2023-11 popular"
    )
    for name, split in [
        ("coco-2023-05", "random"),
        ("coco-2023-08", "random"),
        ("repope", "random"),
        ("coco-2023-10", "adversarial"),
    ]:
        path, parsed = releases[name][split]
        assert describe(recognise_bytes(sha256_file(path), known)) == f"{name} {split}"
        assert describe(recognise_content(parsed.rows, known)) == f"{name} {split}"


def test_ids_of_may_2023_mean_other_questions_later(releases):
    old = {row.question_id: row for row in releases["coco-2023-05"]["random"][1].rows}
    new = {row.question_id: row for row in releases["coco-2023-11"]["random"][1].rows}
    assert len(old) == 2910
    shared_ids = [
        key for key in old if (old[key].image, old[key].object) == (new[key].image, new[key].object)
    ]
    assert len(shared_ids) == 17


def test_name_spaces_keep_coco_and_aokvqa_apart(config, releases):
    coco, _ = table(config, releases, "coco-2023-11")
    aokvqa, report = table(config, releases, "aokvqa-seem")
    pairs = {}
    for row in coco.to_pylist():
        pairs[row["image"], row["question"]] = row["label"]
    common = {
        (r["image"], r["question"]): r["label"]
        for r in aokvqa.to_pylist()
        if (r["image"], r["question"]) in pairs
    }
    assert len(common) == 30
    assert sum(pairs[key] != label for key, label in common.items()) == 1
    assert not set(coco["uid"].to_pylist()) & set(aokvqa["uid"].to_pylist())
    assert len(report["splits"]["adversarial"]["repeated"]) == 2


def test_repope_joins_the_current_release_by_object(config, releases):
    current, _ = table(config, releases, "coco-2023-11")
    labels, report = table(config, releases, "repope")
    assert report["label_conflicts"] == []
    asked = {(row["image"], row["object"]) for row in current.to_pylist()}
    assert {(row["image"], row["object"]) for row in labels.to_pylist()} <= asked
    assert tuple(report["splits"][split]["rows"] for split in SPLITS) == (2684, 2727, 2774)


def test_uid_of_a_shared_question_is_the_same_in_both_upstream_states(config, releases):
    first = releases["coco-2023-10"]["random"][1].rows[0]
    old, _ = table(config, releases, "coco-2023-10")
    new, _ = table(config, releases, "coco-2023-11")
    uid = question_uid("coco", first.image, first.question)
    assert uid in old["uid"].to_pylist()
    assert uid in new["uid"].to_pylist()
