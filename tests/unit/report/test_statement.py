"""The line that says how a score was read."""

from pathlib import Path

import pyarrow as pa
import pytest
from scores.decision_files import write_decisions
from typer import Typer
from typer.testing import CliRunner

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import write_table
from readout_audit.report.statement import Asked, read_asked, statement, statements
from readout_audit.report.statement_cli import statement as command
from report.small_run import CELL, READOUTS, SETTINGS, decision_rows

ASKED = Asked(
    {"dataset": "coco", "model": "m", "precision": "nf4", "template": "authors", "source": "inference"},
    {"random": 3000, "popular": 3000},
    {
        "settings": {
            "repository": "org/model",
            "revision": None,
            "compute_dtype": "float16",
            "max_new_tokens": 6,
            "template": {"text": "USER: <image>\n{question}\nASSISTANT:", "chat": False, "suffix": ""},
        }
    },
    {"revision": "a" * 40},
)
LOGIT = {
    "available": True,
    "kind": "logit",
    "rule": "yes > no",
    "ids": {"yes": [3582], "no": [1217]},
    "pieces": {"3582": "yes", "1217": "no"},
}


def test_every_part_is_named():
    assert statement(ASKED, "legacy_2tok", LOGIT) == (
        'Readout legacy_2tok: yes = 3582 "yes" against no = 1217 "no"; rule (yes > no); '
        f"model m (org/model at {'a' * 40}); "
        'prompt authors "USER: <image>\\n{question}\\nASSISTANT:"; precision nf4 (computed in float16); '
        "decoding none: raw logits of the first answer position, no sampling; "
        "questions coco (random 3,000 + popular 3,000), n = 6,000; source inference."
    )


def test_what_a_source_does_not_record_is_not_filled_in():
    published = Asked(ASKED.cell | {"source": "published"}, {"random": 10}, {}, {})
    line = statement(published, "legacy_2tok", LOGIT)
    assert "model m (weights not recorded by this source)" in line
    assert "prompt authors (text not recorded by this source)" in line
    assert "decoding not recorded by this source" in line
    assert "precision nf4;" in line


def test_ids_of_another_vocabulary_have_no_pieces():
    line = statement(ASKED, "legacy_2tok", LOGIT | {"pieces": {}})
    assert "yes = 3582 against no = 1217 (pieces in this vocabulary not recorded by this source)" in line


def test_string_readouts_name_their_words_and_the_decoding():
    words = {"available": True, "kind": "string", "strings": {"yes": ["yes"], "no": ["no", "not"]}}
    line = statement(ASKED, "pope_official", words)
    assert 'Readout pope_official: yes = "yes" against no = "no" | "not"' in line
    assert "decoding greedy, at most 6 new tokens" in line


def test_a_suffix_stands_where_the_question_ends():
    template = {"text": None, "chat": True, "suffix": " Answer yes or no only."}
    asked = ASKED._replace(described={"settings": {"template": template}})
    line = statement(asked, "r", LOGIT)
    assert 'prompt authors (the model\'s chat template around "{question} Answer yes or no only.")' in line


def test_a_readout_that_is_not_available_says_why():
    assert (
        statement(ASKED, "r", {"available": False, "why_not": "no text"})
        == "Readout r: not available (no text)"
    )


def test_one_line_per_readout_from_a_decision_file(folder: Path):
    path = write_decisions(
        folder / "d.parquet", decision_rows(), cell=CELL, readouts=READOUTS, settings=SETTINGS
    )
    lines = statements(read_asked(path))
    assert list(lines) == ["legacy_2tok", "legacy_8tok", "string_parse"]
    assert all(len(line.splitlines()) == 1 for line in lines.values())
    assert "(adversarial 4 + random 4), n = 8" in lines["legacy_8tok"]
    assert "revision not recorded" in lines["legacy_8tok"]


def test_the_record_file_gives_the_revision(folder: Path):
    cell = folder / "d" / "m" / "p"
    decisions = write_decisions(
        folder / "results/run/decisions/d/m/p/t.parquet",
        decision_rows(),
        cell=CELL,
        readouts=READOUTS,
        settings=SETTINGS,
    )
    assert decisions.is_file()
    records = folder / "results/run/records/d/m/p/t.parquet"
    write_table(
        records, pa.table({f.name: pa.array([], f.type) for f in RECORDS}), RECORDS, {"revision": "c0ffee"}
    )
    assert not cell.exists()
    result = _run("run", "--root", str(folder), "--readout", "legacy_2tok")
    assert result.exit_code == 0
    assert "at c0ffee" in result.output
    assert "legacy_8tok" not in result.output
    assert result.output.startswith("d/m/p/t\n")


def test_a_readout_that_the_run_does_not_have_is_refused(folder: Path):
    write_decisions(
        folder / "results/run/decisions/d/m/p/t.parquet",
        decision_rows(),
        cell=CELL,
        readouts=READOUTS,
        settings=SETTINGS,
    )
    result = _run("run", "--root", str(folder), "--readout", "legacy_8tokk")
    assert result.exit_code == 1 and not result.output
    assert str(result.exception) == (
        "run: no readout 'legacy_8tokk' (did you mean 'legacy_8tok'?); "
        "the readouts there are legacy_2tok, legacy_8tok, string_parse."
    )
    # One that is there but could not be applied has its line.
    known = _run("run", "--root", str(folder), "--readout", "string_parse")
    assert known.exit_code == 0 and "Readout string_parse: not available" in known.output


def test_a_file_that_is_no_record_is_refused(folder: Path):
    path = write_decisions(folder / "d.parquet", decision_rows(), cell=CELL)
    other = folder / "r.parquet"
    other.write_text("no parquet")
    with pytest.raises(AuditError, match="the record file is not a readable Parquet file"):
        read_asked(path, other)
    with pytest.raises(AuditError, match="is not there"):
        read_asked(folder / "none.parquet")


def _run(*words: str):
    app = Typer()
    app.command()(command)
    return CliRunner().invoke(app, words)
