"""The bundle of a run's answers."""

import csv
import hashlib
import io
import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from report.small_run import CELL, HOSTILE, READOUTS, SETTINGS, decision_rows
from scores.decision_files import write_decisions
from typer import Typer
from typer.testing import CliRunner

from readout_audit.contracts import DECISION_IDENTITY, RECORDS
from readout_audit.errors import AuditError
from readout_audit.export.bundle import CHECKSUMS, PIECE, write_bundle
from readout_audit.export.cli import export
from readout_audit.export.readme import IDENTITY
from readout_audit.fileio import write_json, write_table
from readout_audit.report.run_folder import RunFolder, find_run
from readout_audit.signals.schema import SIGNALS
from readout_audit.stages import concatenate_scores, score

PATH = "release/model/fp16/t"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run with decisions, records, a token map and scores."""
    folder = tmp_path / "results" / "demo"
    decisions = write_decisions(
        folder / "decisions" / f"{PATH}.parquet",
        decision_rows(),
        cell=CELL,
        readouts=READOUTS,
        settings=SETTINGS,
        first_token_pieces={"5": "▁Yes", "6": "▁No"},
    )
    score.run(decisions, folder / "scores" / "s.parquet")
    concatenate_scores.run([folder / "scores" / "s.parquet"], folder / "scores.parquet")
    empty = pa.table({field.name: pa.array([], field.type) for field in RECORDS})
    write_table(folder / "records" / f"{PATH}.parquet", empty, RECORDS, {"revision": "c0ffee"})
    write_json(folder / "records" / f"{PATH}.manifest.json", {"host": "here"})
    write_table(folder / "signals" / f"{PATH}.parquet", SIGNALS.empty_table(), SIGNALS)
    write_json(folder / "tokens" / "m.json", {"model": "m"})
    (folder / "decisions" / ".half.parquet").write_bytes(b"of a job that was killed")
    return find_run("demo", tmp_path)


def test_zip_holds_everything_under_one_folder(run: RunFolder, tmp_path: Path):
    output = tmp_path / "bundle.zip"
    count = write_bundle(run, output)
    with zipfile.ZipFile(output) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
    assert count == len(names)
    assert {name.removeprefix("demo/") for name in names} == {
        f"decisions/{PATH}.parquet",
        f"decisions/{PATH}.csv",
        f"settings/{PATH}.json",
        f"records/{PATH}.parquet",
        f"signals/{PATH}.parquet",
        "tokens/m.json",
        "scores.csv",
        "statement.txt",
        "README.md",
        CHECKSUMS,
    }


def test_the_same_run_gives_the_same_bytes(run: RunFolder, tmp_path: Path):
    for name in ("a.zip", "b.zip"):
        write_bundle(run, tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        kept = {(one.date_time, one.external_attr, one.create_system) for one in archive.infolist()}
    assert kept == {((1980, 1, 1, 0, 0, 0), 0o100644 << 16, 3)}  # no clock, no umask, no system


def test_checksums_are_of_every_other_file(run: RunFolder, tmp_path: Path):
    folder = tmp_path / "bundle"
    write_bundle(run, folder)
    lines = dict(reversed(line.split("  ", 1)) for line in (folder / CHECKSUMS).read_text().splitlines())
    there = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert set(lines) == set(there) - {CHECKSUMS}
    assert all(
        hashlib.sha256(there[name].read_bytes()).hexdigest() == digest for name, digest in lines.items()
    )


def test_csv_says_what_the_parquet_says(run: RunFolder, tmp_path: Path):
    folder = tmp_path / "bundle"
    write_bundle(run, folder)
    table = pq.read_table(folder / "decisions" / f"{PATH}.parquet")
    text = (folder / "decisions" / f"{PATH}.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert list(rows[0]) == [*DECISION_IDENTITY.names[:9], PIECE, *table.column_names[9:]]
    assert [row["object"] for row in rows] == table["object"].to_pylist()
    assert rows[1]["object"] == HOSTILE
    assert [row["legacy_8tok"] for row in rows] == table["legacy_8tok"].to_pylist()
    assert {row["string_parse"] for row in rows} == {""}
    assert [row[PIECE] for row in rows[:2]] == ["▁Yes", "▁No"]


def test_readme_describes_the_columns_and_carries_the_statement(run: RunFolder, tmp_path: Path):
    folder = tmp_path / "bundle"
    write_bundle(run, folder)
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert {*IDENTITY} == {*DECISION_IDENTITY.names, PIECE}
    assert all(f"| `{name}` |" in text for name in IDENTITY)
    assert "records_from: files" in text
    # The revision is only in the record file.
    assert "at c0ffee" in (folder / "statement.txt").read_text(encoding="utf-8")
    assert "at c0ffee" in text
    # No line of the README outside the indented statements is markup of a file.
    prose = [line for line in text.splitlines() if not line.startswith("    ")]
    assert not any("<script" in line or "<img" in line for line in prose)


def test_settings_are_complete(run: RunFolder, tmp_path: Path):
    folder = tmp_path / "bundle"
    write_bundle(run, folder)
    content = json.loads((folder / "settings" / f"{PATH}.json").read_text(encoding="utf-8"))
    assert content["decisions"]["settings"] == SETTINGS
    assert content["records"] == {"revision": "c0ffee"}
    assert content["questions"] == {"adversarial": 4, "random": 4}


def test_nothing_is_overwritten_and_nothing_half_written(run: RunFolder, tmp_path: Path):
    folder = tmp_path / "bundle"
    folder.mkdir()
    (folder / "mine").touch()
    with pytest.raises(AuditError, match="already there and not an empty folder"):
        write_bundle(run, folder)
    (run.results / "scores.parquet").write_bytes(b"broken")
    for name in ("other", "other.zip"):
        with pytest.raises(AuditError, match="the score table is not a readable Parquet file"):
            write_bundle(run, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "results"]


def test_command(run: RunFolder, tmp_path: Path):
    app = Typer()
    app.command()(export)
    result = CliRunner().invoke(app, ["demo", "--root", str(tmp_path), "--output", str(tmp_path / "b.zip")])
    assert result.exit_code == 0
    assert result.output.strip().endswith("b.zip: 10 files")
    again = CliRunner().invoke(app, ["demo", "--root", str(tmp_path), "--output", str(tmp_path / "b.zip")])
    assert again.output.strip().endswith("b.zip: 10 files; replaced what was there")
