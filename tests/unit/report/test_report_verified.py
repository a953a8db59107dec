"""What a sample that was asked again says on the page."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from readout_audit.errors import AuditError
from readout_audit.fileio import write_json
from readout_audit.report.inputs import Files, RunData
from readout_audit.report.page import build_page
from readout_audit.report.verified import FAILED, PASSED, REPORTED, verified
from report.reading import read_page
from report.small_run import CELL, HOSTILE, PAIR, make_run

FLIP = {
    "uid": "u",
    "question": HOSTILE,
    "image": "a.jpg",
    "recorded": 3,
    "recorded_piece": "▁Yes",
    "sequential": 4,
    "sequential_piece": "▁No",
    "margin": 0.0156,
    "steps": 1.0,
}
DECISION = {**FLIP, "readout": "legacy_2tok", "recorded": "yes", "sequential": "no", "steps": 0.0}
DECISION = {key: value for key, value in DECISION.items() if not key.endswith("_piece")}


def report(**changes: Any) -> dict[str, Any]:
    described = {name: CELL[name] for name in ("dataset", "model", "precision", "template")}
    return {
        **described,
        "engine": "shared_prefix",
        "dtype": "fp16",
        "compared": 100,
        "same_first_token": 99,
        "same_continuation": 98,
        "largest_difference": 0.03125,
        "flips": [FLIP],
        "decision_flips": [DECISION],
        "unanswered": [],
        "passed": True,
        **changes,
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return make_run(tmp_path_factory.mktemp("run"))


def page_of(files: Files, folder: Path, *reports: dict[str, Any]) -> RunData:
    paths = []
    for number, one in enumerate(reports):
        paths.append(folder / f"{number}.json")
        write_json(paths[-1], one)
    return RunData(replace(files, verified=tuple(paths)), PAIR)


def test_agreement_and_every_flip_are_shown(files: Files, tmp_path: Path) -> None:
    data = page_of(files, tmp_path, report())
    found = verified(data)
    assert found is not None and found.flips is not None and found.unanswered is None
    assert "100 questions in all" in found.sentences[0] and "shares a picture's prefix" in found.sentences[0]
    assert found.sentences[1].startswith(
        "99 of 100 (99.0%) first tokens are the same, and 1 decision differs"
    )
    assert found.sentences[1].endswith("Every difference is within what rounding explains.")
    (row,) = found.table.rows
    assert row[1:] == ("fp16", "100", "99", "98", "1", "0.031", PASSED)
    assert [flip[2:] for flip in found.flips.rows] == [
        (HOSTILE, "first token", "▁Yes", "▁No", "0.0156", "1.0"),
        (HOSTILE, "legacy_2tok", "yes", "no", "0.0156", "0.0"),
    ]
    text = read_page(build_page("r", data)).text
    assert "Does the engine change an answer?" in text and "▁Yes" in text and "99 of 100 (99.0%)" in text


def test_a_failure_says_what_to_do(files: Files, tmp_path: Path) -> None:
    broken = report(passed=False, unanswered=[{"uid": "u", "reason": "NaN"}])
    found = verified(page_of(files, tmp_path, broken, report()))
    assert found is not None and found.unanswered is not None
    assert "1 cell did not pass" in found.sentences[1] and "engine: sequential" in found.sentences[1]
    assert [row[-1] for row in found.table.rows] == [FAILED, PASSED]
    assert found.unanswered.rows[0][1:] == ("u", "NaN")


def test_int8_is_reported(files: Files, tmp_path: Path) -> None:
    found = verified(page_of(files, tmp_path, report(precision="int8", flips=[], decision_flips=[])))
    assert found is not None and found.table.rows[0][-1] == REPORTED and found.flips is None
    assert "Differences under int8" in found.sentences[1]


def test_a_run_without_checks_says_so(files: Files) -> None:
    assert verified(RunData(files, PAIR)) is None
    text = read_page(build_page("r", RunData(files, PAIR))).text
    assert "A sample that was asked again is not part of this run." in text


def test_another_file_is_refused(files: Files, tmp_path: Path) -> None:
    with pytest.raises(AuditError, match=r"0\.json: the report of verify_engine lacks compared"):
        verified(page_of(files, tmp_path, {k: v for k, v in report().items() if k != "compared"}))
