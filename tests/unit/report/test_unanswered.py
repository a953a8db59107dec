"""Questions without a valid answer are named with their picture and the reason."""

from dataclasses import replace
from pathlib import Path

from readout_audit.contracts import RECORDS
from readout_audit.fileio import write_table
from readout_audit.inference.base import Question
from readout_audit.inference.records import invalid_row, table
from readout_audit.report import unanswered
from readout_audit.report.inputs import CellKey, Files, RunData
from readout_audit.report.page import build_page
from report.small_run import CELL, PAIR

REASONS = {
    "a.jpg": ["a.jpg: the image file is missing"] * 2,
    "<b>.png": ["<b>.png: not a readable image"],
    "ok.jpg": [None],
}


def with_records(files: Files, folder: Path) -> RunData:
    """The small run with a record file at its cell's place: two files without an answer, one with."""
    path = folder.joinpath("records", *(CELL[name] for name in ("dataset", "model", "precision")))
    path = path / f"{CELL['template']}.parquet"
    rows = []
    for image, reasons in REASONS.items():
        for place, reason in enumerate(reasons):
            question = Question(f"{image}{place}", image, None, "?", "?")
            row = invalid_row(question, None, reason or "")
            rows.append(row if reason else {**row, "status": "ok", "reason": None})
    write_table(path, table(rows), RECORDS)
    return RunData(replace(files, manifests=(path,)), PAIR)


def test_pictures_and_reasons_are_listed_and_warned_of(files: Files, folder: Path):
    data = with_records(files, folder)
    found = unanswered.unanswered(data, CellKey(**CELL))
    assert found is not None and found.asked == 4
    assert unanswered.table(found).rows == (
        ("a.jpg", "the image file is missing", "2"),
        ("<b>.png", "not a readable image", "1"),
    )
    page = build_page("r", data)
    assert "3 of 4 (75.0%) distinct questions have no valid answer and are in no rate" in page
    assert "the image file is missing" in page and "&lt;b&gt;.png" in page and "<b>.png" not in page


def test_long_lists_are_cut_and_counted():
    reasons = unanswered.Counter({(f"{place:03}.jpg", "?"): 1 for place in range(52)})
    shown = unanswered.table(unanswered.Unanswered(52, reasons))
    assert len(shown.rows) == 50 and shown.notes == ("2 lines more in the record file.",)


def test_without_a_record_file_nothing_is_said(files: Files):
    data = RunData(files, PAIR)
    assert unanswered.unanswered(data, CellKey(**CELL)) is None and unanswered.warnings(data) == []
