import hashlib
import json

import pyarrow.parquet as pq
import pytest

from readout_audit.contracts import QUESTIONS
from readout_audit.datasets.parse import parse_questions
from readout_audit.datasets.questions import build_question_table, question_uid, report_questions
from readout_audit.datasets.releases import (
    content_sha256,
    describe,
    known_files,
    recognise_bytes,
    recognise_content,
)
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json
from readout_audit.stages import build_questions


def rows(*described):
    return [
        {"question_id": number, "image": image, "text": text, "label": label}
        for number, (image, text, label) in enumerate(described, start=1)
    ]


DOG, OVEN = "Is there a dog in the image?", "Is there an oven in the imange?"
FIRST = rows(("a.jpg", DOG, "yes"), ("a.jpg", OVEN, "no"), ("b.jpg", DOG, "no"))
SECOND = rows(("a.jpg", DOG, "yes"), ("a.jpg", "Is there a cat in the image?", "no"))


def parsed(described):
    return parse_questions(json.dumps(described).encode(), "q.json")


def test_uid_is_the_hash_of_canonical_json():
    expected = hashlib.sha256('["coco","a.jpg","Is there a dög?"]'.encode()).hexdigest()[:32]
    assert question_uid("coco", "a.jpg", "Is there a dög?") == expected


def test_uid_keeps_name_spaces_and_texts_apart():
    uids = {
        question_uid(*key)
        for key in [("coco", "a", DOG), ("aokvqa", "a", DOG), ("coco", "a", OVEN), ("coco", "a b", "c")]
    }
    assert len(uids) == 4


def test_table_has_splits_by_name_and_rows_in_file_order():
    table = build_question_table("r1", "coco", {"random": parsed(SECOND), "adversarial": parsed(FIRST)})
    assert table.schema == QUESTIONS
    assert table["split"].to_pylist() == ["adversarial"] * 3 + ["random"] * 2
    assert table["question_id"].to_pylist() == ["1", "2", "3", "1", "2"]
    assert table["object"].to_pylist() == ["dog", "oven", "dog", "dog", "cat"]
    assert table["uid"][0] == table["uid"][3]


def test_report_counts_by_hand():
    splits = {"random": parsed(SECOND), "adversarial": parsed(FIRST)}
    report = report_questions(build_question_table("r1", "coco", splits), splits)
    # a.jpg: dog, oven, cat; b.jpg: dog
    assert (report["rows"], report["distinct"], report["images"], report["misspelt"]) == (5, 4, 2, 1)
    assert report["distinct_per_image"] == [1, 2.0, 3]
    assert report["label_conflicts"] == []
    adversarial = report["splits"]["adversarial"]
    assert adversarial["labels"] == {"yes": 1, "no": 2}
    assert (adversarial["misspelt"], adversarial["misspelt_labels"]) == (1, {"yes": 0, "no": 1})


def test_report_shows_conflicts_repeats_and_unknown_nouns():
    described = rows(("a.jpg", DOG, "yes"), ("a.jpg", DOG, "no"), ("a.jpg", "What is it?", "no"))
    report = report_questions(
        build_question_table("r", "n", {"s": parsed(described)}), {"s": parsed(described)}
    )
    assert report["label_conflicts"] == [["a.jpg", "dog"]]
    assert report["splits"]["s"]["repeated"] == ["1", "2"]
    assert report["splits"]["s"]["no_object"] == ["3"]


def known(described, release="r1", split="random", sha256=None):
    content = content_sha256(parsed(described).rows)
    return known_files(
        {"known_datasets": {release: {"splits": {split: {"sha256": sha256, "content_sha256": content}}}}}
    )


def test_release_is_recognised_by_content_in_any_form_but_not_when_changed():
    files = known(FIRST)
    turned = parse_questions("\n".join(json.dumps(r) for r in reversed(FIRST)).encode(), "q").rows
    assert describe(recognise_content(turned, files)) == "r1 random"
    changed = [*FIRST[:2], {**FIRST[2], "label": "yes"}]
    assert describe(recognise_content(parsed(changed).rows, files)) == "no known release"


def test_two_releases_may_have_the_same_bytes():
    files = known(FIRST, sha256="ab") + known(FIRST, release="r2", sha256="ab")
    assert describe(recognise_bytes("ab", files)) == "r1 random and r2 random"


@pytest.fixture
def files(tmp_path):
    paths = {}
    for split, described in {"random": SECOND, "adversarial": FIRST}.items():
        paths[split] = tmp_path / f"{split}.json"
        paths[split].write_text(json.dumps(described))
    return paths


def build(tmp_path, files, *more):
    arguments = [f"{split}={file}" for split, file in files.items()]
    output, report = tmp_path / "q.parquet", tmp_path / "q.json"
    named = ["--dataset", "r1", "--namespace", "coco", "--output", str(output), "--report", str(report)]
    assert build_questions.main([*named, "--split", *arguments, *more]) == 0
    return output, report


def test_stage_writes_the_same_bytes_again(tmp_path, files):
    output, report = build(tmp_path, files)
    first = output.read_bytes(), report.read_bytes()
    output.unlink()
    build(tmp_path, dict(reversed(files.items())))
    assert (output.read_bytes(), report.read_bytes()) == first
    assert pq.read_table(output).num_rows == 5


def test_stage_checks_hashes_and_names_the_release_it_got(tmp_path, files):
    digest = hashlib.sha256(files["random"].read_bytes()).hexdigest()
    build(tmp_path, files, "--sha256", f"random={digest.upper()}")
    listed = tmp_path / "datasets.yaml"
    content = content_sha256(parsed(SECOND).rows)
    entry = {"sha256": "0" * 64, "content_sha256": content}
    listed.write_text(json.dumps({"known_datasets": {"old": {"splits": {"popular": entry}}}}))
    wanted = f"random={'1' * 64}"
    with pytest.raises(
        AuditError, match=rf"sha256 1+ expected, {digest} found; it asks what old popular asks, in other"
    ):
        build(tmp_path, files, "--sha256", wanted, "--known", str(listed))
    entry["sha256"] = digest
    listed.write_text(json.dumps({"known_labels": {"old": {"splits": {"popular": entry}}}}))
    with pytest.raises(AuditError, match="the file is old popular"):
        build(tmp_path, files, "--sha256", wanted, "--known", str(listed))
    with pytest.raises(AuditError, match="it is no known release"):
        build(tmp_path, files, "--sha256", wanted)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--split", "random"], "--split random: give it as NAME=VALUE"),
        (["--split", "random=other.json"], "--split random: given twice"),
        (["--sha256", "popular=ab"], "--sha256 popular: no file is given for this split"),
        (["--known", "nowhere.yaml"], "nowhere.yaml: the list of known releases cannot be read"),
    ],
)
def test_stage_refuses_bad_arguments(tmp_path, files, more, said):
    with pytest.raises(AuditError, match=said):
        build(tmp_path, files, *more)


def test_stage_reports_a_missing_file(tmp_path):
    with pytest.raises(AuditError, match=r"none\.json: the question file cannot be read"):
        build(tmp_path, {"random": tmp_path / "none.json"})


def test_known_list_of_another_form_is_one_sentence(tmp_path):
    listed = tmp_path / "datasets.yaml"
    listed.write_text("known_datasets: [1]")
    with pytest.raises(AuditError, match="not a list of known releases"):
        build(tmp_path, {"random": listed}, "--known", str(listed))


def test_report_names_files_but_no_folders(tmp_path, files):
    _, report = build(tmp_path, files)
    assert read_json(report, "report")["splits"]["random"]["file"] == "random.json"
    assert str(tmp_path) not in report.read_text()
