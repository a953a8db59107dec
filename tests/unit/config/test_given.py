"""A run on files made elsewhere: what they leave out is said before the first job."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from readout_audit.config.given import unanswered
from readout_audit.config.plan import Plan
from readout_audit.errors import AuditError

QUESTIONS = [("a", "random"), ("b", "random"), ("a", "popular"), ("c", "popular")]
"""(uid, split): both splits ask a."""


def plan(folder: Path, splits: list[str], *, measured: bool = False) -> Plan:
    """Return the parts of a plan that are read: one cell, its signals if measured."""
    return Plan(
        {
            "run": "r",
            "records_from": "files",
            "records_folder": str(folder),
            "datasets": ["d"],
            "splits": splits,
            "models": ["m"],
            "precisions": ["fp32"],
            "templates": ["t"],
            "extra_cells": [],
            "known_models": {"m": {"adapter": "generic"}},
            "signals": {"compute": measured, "models": ["m"]},
        }
    )


def given(folder: Path, questions: list[tuple[str, str]], answered: str, kind: str = "records") -> Path:
    """Write a question table and a file of answers with one row for each letter."""
    uids, splits = zip(*questions, strict=True)
    for path, columns in (
        (folder / "questions/d.parquet", {"uid": uids, "split": splits}),
        (folder / f"{kind}/d/m/fp32/t.parquet", {"uid": list(answered)}),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)
    return folder


def test_whole_files_are_taken(tmp_path):
    folder = given(tmp_path, QUESTIONS, "abc")
    assert list(unanswered(plan(folder, ["random", "popular"]))) == []


def test_a_split_that_was_never_asked(tmp_path):
    folder = given(tmp_path, QUESTIONS, "abc")
    (sentence,) = unanswered(plan(folder, ["random", "adversarial"]))
    assert sentence == (
        f"splits names adversarial, but {folder}/questions/d.parquet has questions of random, popular alone; name those "
        "splits, or take the files of a run that asked the others."
    )


def test_records_of_some_splits_only(tmp_path):
    folder = given(tmp_path, QUESTIONS, "ab")
    (sentence,) = unanswered(plan(folder, ["random", "popular"]))
    assert (
        "records/d/m/fp32/t.parquet lacks 1 of the 4 questions of the splits that are named (popular: 1)"
        in sentence
    )
    assert list(unanswered(plan(folder, ["random"]))) == []


def test_signals_of_some_questions_only(tmp_path):
    given(tmp_path, QUESTIONS, "abc")
    folder = given(tmp_path, QUESTIONS, "c", "signals")
    assert list(unanswered(plan(folder, ["random"]))) == []
    (sentence,) = unanswered(plan(folder, ["random"], measured=True))
    assert "signals/d/m/fp32/t.parquet lacks 2 of the 2 questions" in sentence


def test_a_file_of_another_kind(tmp_path):
    folder = given(tmp_path, QUESTIONS, "abc")
    (folder / "records/d/m/fp32/t.parquet").write_text("no table", encoding="utf-8")
    with pytest.raises(AuditError, match=r"t\.parquet is no Parquet file with the columns uid"):
        list(unanswered(plan(folder, ["random"])))
    pq.write_table(pa.table({"other": ["a"]}), folder / "questions/d.parquet")
    with pytest.raises(AuditError, match=r"d\.parquet is no Parquet file with the columns uid and split"):
        list(unanswered(plan(folder, ["random"])))
