import hashlib
import json

import pytest
from fetch_server import busy

from readout_audit.contracts import QUESTIONS
from readout_audit.datasets.parse import parse_questions
from readout_audit.datasets.questions import build_question_table
from readout_audit.errors import AuditError
from readout_audit.fetch.images import downloaded, from_mirror, manifest
from readout_audit.fileio import read_json, write_table
from readout_audit.stages import fetch_images

JPEG = b"\xff\xd8\xff\xe0 a picture"
DIGEST = hashlib.sha256(JPEG).hexdigest()
NAMES = ("a.jpg", "b.jpg", "c.jpg")


@pytest.fixture
def questions(tmp_path):
    rows = [
        {"image": name, "text": "Is there a dog in the image?", "label": "yes"} for name in (*NAMES, "a.jpg")
    ]
    table = build_question_table("r", "coco", {"s": parse_questions(json.dumps(rows).encode(), "q")})
    path = tmp_path / "q.parquet"
    write_table(path, table, QUESTIONS)
    return path


def run(tmp_path, questions, *more):
    output = tmp_path / "images.json"
    arguments = ["--questions", str(questions), str(questions), "--folder", str(tmp_path / "fetched")]
    assert fetch_images.main([*arguments, "--output", str(output), *more]) == 0
    return read_json(output, "manifest")


def test_each_image_is_downloaded_once_and_a_missing_one_is_named(tmp_path, questions, server):
    server.files = {"/a.jpg": JPEG, "/c.jpg": b"<html>not found</html>"}
    made = run(tmp_path, questions, "--url-pattern", f"{server.url}/{{image}}")
    assert (made["asked"], made["found"], made["sha256"]) == (3, 1, {"a.jpg": DIGEST})
    assert made["missing"] == [
        {"image": "b.jpg", "reason": "the server answers 404"},
        {"image": "c.jpg", "reason": "what the server sends is no picture"},
    ]
    assert sorted(path.name for path in (tmp_path / "fetched").iterdir()) == ["a.jpg"]
    server.requests.clear()
    server.files["/b.jpg"] = JPEG
    assert run(tmp_path, questions, "--url-pattern", f"{server.url}/{{image}}")["found"] == 2
    assert [path for path, _ in server.requests] == ["/b.jpg", "/c.jpg"]


def test_network_failure_is_a_stop_that_keeps_what_arrived(tmp_path, server, patience):
    server.files = {"/a.jpg": JPEG, "/b.jpg": JPEG}
    downloaded(["a.jpg"], f"{server.url}/{{image}}", tmp_path, patience)
    server.faults = [busy()] * 9
    with pytest.raises(AuditError, match=r"b\.jpg: cannot be fetched after 4 attempts"):
        downloaded(["a.jpg", "b.jpg"], f"{server.url}/{{image}}", tmp_path, patience)
    assert (tmp_path / "a.jpg").read_bytes() == JPEG


@pytest.mark.usefixtures("no_sockets")
def test_mirror_pictures_are_linked_without_a_socket(tmp_path, questions):
    mirror = tmp_path / "mirror/images/coco"
    mirror.mkdir(parents=True)
    for name in ("a.jpg", "b.jpg"):
        (mirror / name).write_bytes(JPEG)
    more = (
        "--mirror",
        str(tmp_path / "mirror"),
        "--mirror-pattern",
        "images/coco/{image}",
        "--url-pattern",
        "http://x/{image}",
    )
    made = run(tmp_path, questions, *more)
    assert made["missing"] == [{"image": "c.jpg", "reason": "not in the mirror"}]
    assert made["source"] == "mirror"
    assert (tmp_path / "fetched/a.jpg").read_bytes() == JPEG
    assert run(tmp_path, questions, *more) == made


@pytest.mark.usefixtures("no_sockets")
def test_own_folder_is_used_as_it_is(tmp_path, questions):
    own = tmp_path / "val2014"
    own.mkdir()
    (own / "b.jpg").write_bytes(JPEG)
    (own / "c.jpg").mkdir()
    made = run(tmp_path, questions, "--own", str(own), "--mirror", str(tmp_path))
    assert made["found"] == 1
    assert {entry["image"]: entry["reason"] for entry in made["missing"]} == {
        "a.jpg": f"not in {own}",
        "c.jpg": "cannot be read (Is a directory)",
    }
    assert not (tmp_path / "fetched").exists()


def test_no_picture_at_all_is_a_wrong_folder(tmp_path, questions):
    own = tmp_path / "empty"
    own.mkdir()
    with pytest.raises(AuditError, match=r"none of the 3 pictures is there \(a\.jpg: not in"):
        run(tmp_path, questions, "--own", str(own))


def test_set_without_an_address_asks_for_a_mirror(tmp_path, questions):
    with pytest.raises(AuditError, match="have no address of their own"):
        run(tmp_path, questions, "--mirror-pattern", "images/gqa/{image}")


@pytest.mark.parametrize("pattern", ["images/coco", "{image}/{image}"])
def test_pattern_must_name_the_image_once(tmp_path, pattern):
    with pytest.raises(AuditError, match="exactly once"):
        from_mirror(["a.jpg"], tmp_path, pattern, tmp_path / "f")


def test_nothing_asked_is_nothing_missing():
    from readout_audit.fetch.images import Fetched

    assert manifest(Fetched({}, {}), "mirror")["asked"] == 0
