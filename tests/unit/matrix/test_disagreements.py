"""The list of disagreements: which rows stand in it, what it says of them, and how they are grouped."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scores.decision_files import row, write_decisions

from readout_audit.fileio import read_table, table_metadata
from readout_audit.matrix.disagreements import differing, patterns
from readout_audit.matrix.schema import listing_schema, readouts_listed
from readout_audit.stages import readout_matrix

MARGIN = {"a.margin": 0.25, "a.tie": False}


def stage(tmp_path: Path, rows: list[dict], **metadata: object) -> tuple[pa.Table, Path]:
    path = write_decisions(tmp_path / "decisions.parquet", rows, **metadata)
    outputs = [tmp_path / name for name in ("pairs.parquet", "list.parquet", "list.csv")]
    readout_matrix.run(path, *outputs)
    readouts = readouts_listed(pa.parquet.read_table(outputs[1]))
    return read_table(outputs[1], listing_schema(readouts), "the list"), outputs[2]


def test_only_differing_rows_stand_in_the_list(tmp_path: Path) -> None:
    rows = [
        row("random", 1, "yes", a="yes", b="yes", **MARGIN),
        row("random", 2, "no", a="yes", b="no", **MARGIN),
        row("popular", 3, "no", a="no", b="unparsed", **MARGIN),
    ]
    listing, _ = stage(tmp_path, rows)
    found = listing.to_pylist()
    assert [one["question_id"] for one in found] == ["2", "3"]
    assert found[0]["image"] == "1.jpg" and found[0]["question"] == "Is there a thing random 2 in the image?"
    assert (found[0]["label"], found[0]["a"], found[0]["b"]) == ("no", "yes", "no")
    assert (found[0]["a.margin"], found[0]["b.margin"]) == (0.25, None)
    assert table_metadata(listing)["rows"] == {"random": 2, "popular": 1}


def test_a_readout_that_says_nothing_differs_from_none(tmp_path: Path) -> None:
    rows = [
        row("random", 1, "yes", a="yes", b=None),
        row("popular", 2, "yes", a="yes", b="no"),
    ]
    listing, _ = stage(tmp_path, rows)
    assert [one["question_id"] for one in listing.to_pylist()] == ["2"]


def test_unpaired_source_lists_nothing(tmp_path: Path) -> None:
    listing, path = stage(tmp_path, [row("random", 1, "yes", a="yes", b="no")], joint=False)
    assert listing.num_rows == 0
    assert len(path.read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize("text", ['a "quoted" cup', "two\nlines", "cr\rhere", "comma, and =1+1", "<b>"])
def test_csv_holds_any_question(tmp_path: Path, text: str) -> None:
    one = row("random", 1, "yes", item="cup", a="yes", b="no")
    listing, path = stage(tmp_path, [one | {"question": text}])
    with path.open(encoding="utf-8", newline="") as stream:
        (read,) = csv.DictReader(stream)
    assert read["question"] == text == listing["question"][0].as_py()
    assert (read["a"], read["b"], read["a.margin"]) == ("yes", "no", "")


rows_of_codes = st.lists(st.lists(st.integers(-1, 3), min_size=3, max_size=3), min_size=1, max_size=20)


@given(rows_of_codes)
def test_differing_is_more_than_one_word(rows: list[list[int]]) -> None:
    answers = np.array(rows, dtype=np.int8).T
    expected = [len({code for code in row if code >= 0}) > 1 for row in rows]
    assert differing(answers, len(rows)).tolist() == expected


def test_no_readout_differs_from_nothing() -> None:
    assert differing([], 2).tolist() == [False, False]


def test_patterns_are_counted_by_label_and_sorted() -> None:
    said = [("yes", "no", "x"), ("no", "yes", "y"), ("yes", "no", "y"), ("yes", "no", "x"), ("no", None, "x")]
    labels = {"x": "yes", "y": "no"}
    rows = [{"a": a, "b": b, "label": labels[key], "n": i} for i, (a, b, key) in enumerate(said)]
    found = patterns(rows, ["a", "b"])
    assert [(one.n, one.by_label) for one in found] == [
        (3, {"yes": 2, "no": 1}),
        (1, {"yes": 0, "no": 1}),
        (1, {"yes": 1, "no": 0}),
    ]
    assert found[0].said == {"yes": ("a",), "no": ("b",), "unparsed": (), "invalid": ()}
    assert found[0].example["n"] == 0
    assert found[2].said["no"] == ("a",)  # b says nothing there


def test_empty_list_keeps_its_columns() -> None:
    listing = listing_schema(["a"]).empty_table()
    assert readouts_listed(listing) == ["a"]
    assert patterns(listing.to_pylist(), ["a"]) == []
