"""Files are whole or absent, the same content gives the same bytes, and errors are one sentence."""

import errno
import math
import os
from pathlib import Path

import pyarrow as pa
import pytest

from readout_audit import fileio
from readout_audit.errors import AuditError

SCHEMA = pa.schema([pa.field("a", pa.int32(), nullable=False), pa.field("b", pa.string())])
TABLE = pa.table({"b": ["x", None], "a": [1, 2]})


def test_a_failed_write_leaves_the_old_file_and_no_rubbish(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    fileio.write_text(path, "old")
    with pytest.raises(RuntimeError), fileio.replacing(path) as temporary:
        temporary.write_text("half", encoding="utf-8")
        raise RuntimeError
    assert path.read_text(encoding="utf-8") == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["f.txt"]


def test_permissions_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        fileio.write_text(tmp_path / "f", "x")
    finally:
        os.umask(before)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


def test_table_round_trip_keeps_schema_order_and_metadata(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    fileio.write_table(path, TABLE, SCHEMA, {"z": 1, "a": ["▁Yes"]})
    table = fileio.read_table(path, SCHEMA, "the table")
    assert table.schema.remove_metadata() == SCHEMA
    assert table.to_pydict() == {"a": [1, 2], "b": ["x", None]}
    assert fileio.table_metadata(table) == {"z": 1, "a": ["▁Yes"]}


def test_same_content_gives_same_bytes(tmp_path: Path) -> None:
    for name in "xy":
        fileio.write_table(tmp_path / name, TABLE, SCHEMA, {"k": name == "?"})
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pa.table({"a": [1]}), "missing columns ['b'], surplus columns []"),
        (pa.table({"a": [1], "b": ["x"], "c": [0]}), "missing columns [], surplus columns ['c']"),
    ],
)
def test_wrong_columns_are_not_written(table: pa.Table, words: str, tmp_path: Path) -> None:
    with pytest.raises(AuditError) as caught:
        fileio.write_table(tmp_path / "t", table, SCHEMA)
    assert words in str(caught.value)
    assert not (tmp_path / "t").exists()


def test_null_in_a_column_that_forbids_it_is_not_written(tmp_path: Path) -> None:
    table = pa.table({"a": pa.array([1, None], pa.int32()), "b": ["x", "y"]})
    with pytest.raises((AuditError, ValueError)):
        fileio.write_table(tmp_path / "t", table, SCHEMA)


def test_reading_what_is_not_there_or_not_a_table(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match="the table is not there"):
        fileio.read_table(tmp_path / "none", SCHEMA, "the table")
    (tmp_path / "text").write_text("hello", encoding="utf-8")
    with pytest.raises(AuditError, match=r"not a readable Parquet file .*; copy it or make it again\."):
        fileio.read_table(tmp_path / "text", SCHEMA, "the table")
    other = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])
    fileio.write_table(tmp_path / "other", TABLE, other)
    with pytest.raises(AuditError, match=r"other columns than this version writes \(a\); make it again"):
        fileio.read_table(tmp_path / "other", SCHEMA, "the table")


def test_json_refuses_what_json_cannot_say(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        fileio.write_json(tmp_path / "j", {"x": math.nan})
    assert not (tmp_path / "j").exists()
    (tmp_path / "bad").write_text("{", encoding="utf-8")
    with pytest.raises(AuditError, match="the map is not valid JSON"):
        fileio.read_json(tmp_path / "bad", "the map")
    with pytest.raises(AuditError, match="the map cannot be read"):
        fileio.read_json(tmp_path / "none", "the map")
    for text, said in (
        ("[" * 100_000, r"the map is not usable JSON \(nested too deeply\)"),
        ("9" * 5_000, "the map is not valid JSON"),
        ("\udcff", "the map is not valid JSON"),
    ):
        (tmp_path / "bad").write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(AuditError, match=said):
            fileio.read_json(tmp_path / "bad", "the map")


def test_canonical_json_has_one_text_per_value() -> None:
    assert fileio.canonical_json({"b": 1, "a": "▁"}) == '{"a":"▁","b":1}'


def test_hashes_of_known_texts(tmp_path: Path) -> None:
    # SHA-256 of the empty text and of "abc" as published with the standard (FIPS 180-2).
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    (tmp_path / "f").write_bytes(b"abc")
    assert fileio.sha256_file(tmp_path / "f") == fileio.sha256_text("abc") == abc


def test_a_place_that_cannot_hold_the_file_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(AuditError, match=r"file/x: cannot be written \(.+\); name another place"):
        fileio.write_text(tmp_path / "file/x", "a")
    (tmp_path / "folder/inside").mkdir(parents=True)
    with pytest.raises(AuditError, match=r"folder: cannot be written \(Is a directory\)"):
        fileio.write_text(tmp_path / "folder", "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]

    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(AuditError, match=r"No space left on device\); make room"):
        fileio.write_text(tmp_path / "new", "a")
    assert not (tmp_path / "new").exists()
