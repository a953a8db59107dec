"""Cells compared answer by answer: hand counts, references, releases, and what cannot be paired."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scores.decision_files import row, table_7_rows, write_decisions

from audit.cells import write_cell
from readout_audit.audit.asked import match, read_asked
from readout_audit.audit.comparisons import Pair, wanted
from readout_audit.audit.schema import COMPARISONS, GAP, MODEL, REFERENCE
from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata, write_table
from readout_audit.scores.bootstrap import resampled_totals
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.intervals import score_intervals
from readout_audit.scores.labels import label_sets
from readout_audit.scores.table import count_scores, score_table
from readout_audit.stages import settings_audit


def audit(tmp_path: Path, paths: list[Path], **options: object) -> list[dict]:
    output = tmp_path / "audit.parquet"
    settings_audit.run(paths, output, **options)
    return read_table(output, COMPARISONS, "the audit").to_pylist()


def one(rows: list[dict], **wanted_values: str) -> dict:
    found = [row for row in rows if all(row[name] == value for name, value in wanted_values.items())]
    assert len(found) == 1
    return found[0]


CELL = {"dataset": "d", "model": "m", "precision": "fp32", "template": "t", "source": "inference"}


def test_wanted_pairs() -> None:
    cells = [
        CELL,
        CELL | {"precision": "nf4"},
        CELL | {"precision": "nf4", "template": "u"},
        CELL | {"model": "k"},
        CELL | {"model": "k", "precision": "nf4"},
        CELL | {"dataset": "e"},
    ]
    assert list(wanted(cells)) == [
        Pair(0, 0, REFERENCE),
        Pair(1, 0, "precision"),
        Pair(2, 0, "precision + template"),
        Pair(3, 3, REFERENCE),
        Pair(4, 3, "precision"),
        Pair(5, 0, "dataset"),
        Pair(3, 0, MODEL),
        Pair(4, 1, MODEL),
    ]


def test_changed_answers_by_hand(tmp_path: Path) -> None:
    # Labels yes yes no no. Reference: TP 1, FN 1, FP 0, TN 2 -> F1 2/3. nf4: TP 2, FP 1 and one unparsed -> 4/5.
    paths = [write_cell(tmp_path, {"a": "ynnn"}), write_cell(tmp_path, {"a": "yyyu"}, precision="nf4")]
    rows = audit(tmp_path, paths)
    same = one(rows, precision="fp32")
    assert (same["varied"], same["n"], same["changed"], same["delta"]) == (REFERENCE, 4, 0, 0.0)
    found = one(rows, precision="nf4")
    assert (found["varied"], found["reference_precision"], found["reference_model"]) == (
        "precision",
        "fp32",
        "m",
    )
    assert (found["n"], found["changed"], found["no_to_yes"], found["yes_to_no"]) == (4, 3, 2, 0)
    assert (found["value"], found["reference_value"]) == (float(Fraction(4, 5)), float(Fraction(2, 3)))
    assert found["delta"] == float(Fraction(4, 5) - Fraction(2, 3))
    assert (found["near_ties"], found["changed_near_ties"], found["delta_low"]) == (None, None, None)


def test_gap_by_hand(tmp_path: Path) -> None:
    # fp32: a 2/3, b 1 -> gap -1/3. nf4: a 1, b 2/3 (TP 1, FN 1) -> gap 1/3; the gap moved by 2/3.
    paths = [
        write_cell(tmp_path, {"a": "ynnn", "b": "yynn"}),
        write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}, precision="nf4"),
    ]
    found = one(audit(tmp_path, paths, gap_pair=("a", "b"), resamples=50), precision="nf4", readout=GAP)
    assert (found["value"], found["reference_value"]) == (float(Fraction(1, 3)), float(Fraction(-1, 3)))
    assert found["delta"] == float(Fraction(2, 3))
    assert (found["n"], found["changed"]) == (None, None)
    assert found["delta_low"] is not None and found["delta_low"] <= found["delta"] <= found["delta_high"]


def test_same_answers_have_a_paired_interval_of_zero(tmp_path: Path) -> None:
    paths = [write_cell(tmp_path, {"a": "ynny"}, precision=precision) for precision in ("fp32", "bf16")]
    found = one(audit(tmp_path, paths, resamples=100), precision="bf16")
    assert (found["changed"], found["delta"], found["delta_low"], found["delta_high"]) == (0, 0.0, 0.0, 0.0)


def test_resamples_without_an_f1_are_counted(tmp_path: Path) -> None:
    """All valid answers of the second setting are about one of two images: draws without it have no F1."""
    paths = [write_cell(tmp_path, {"a": "ynyn"}), write_cell(tmp_path, {"a": "yiyi"}, precision="nf4")]
    found = one(audit(tmp_path, paths, resamples=400, seed=3), precision="nf4")
    missed = int((resampled_totals(np.eye(2, dtype=np.int64), 400, 3)[:, 0] == 0).sum())
    assert 60 < missed < 140
    assert found["delta_undefined"] == missed
    assert found["delta_low"] is not None


def test_interval_is_drawn_as_the_scores_are(tmp_path: Path) -> None:
    """Against a reference that answers no throughout (F1 0), the interval is that of the score itself."""
    paths = [write_cell(tmp_path, {"a": "nnnn"}), write_cell(tmp_path, {"a": "ynyn"}, precision="nf4")]
    found = one(audit(tmp_path, paths, resamples=300, seed=7), precision="nf4")
    decisions = read_decisions(paths[1])
    sets = label_sets(decisions, None)
    scores = count_scores(decisions, sets)
    score = score_table(scores, score_intervals(decisions, sets, scores, 300, 7).columns).to_pylist()[0]
    assert (found["delta_low"], found["delta_high"]) == (score["f1_low"], score["f1_high"])


def test_models_are_compared_where_asked_alike(tmp_path: Path) -> None:
    paths = [
        write_cell(tmp_path, {"a": "yynn", "b": "nnnn"}, model="m"),
        write_cell(tmp_path, {"a": "yyyn"}, model="k"),
    ]
    rows = audit(tmp_path, paths, resamples=50)
    found = one(rows, varied=MODEL)  # readout b is the first model's alone
    assert (found["model"], found["reference_model"], found["readout"]) == ("k", "m", "a")
    assert (found["changed"], found["no_to_yes"], found["delta"]) == (1, 1, float(Fraction(4, 5) - 1))
    assert found["delta_low"] is not None


def test_releases_match_by_question(tmp_path: Path) -> None:
    """The second release asks one question of the first in other words; only the others are paired."""
    first = write_cell(tmp_path, {"a": "ynnn"})
    other = write_cell(tmp_path, {"a": "nnny"}, dataset="e")
    table = pa.parquet.read_table(other)
    rows = table.to_pylist()
    rows[0] |= {"uid": "another", "question": "Is there a thing in the imange?"}
    other = write_decisions(tmp_path / "e.parquet", rows[::-1], cell=CELL | {"dataset": "e"})
    found = one(audit(tmp_path, [first, other], resamples=20), dataset="e")
    assert (found["varied"], found["n"], found["changed"], found["no_to_yes"]) == ("dataset", 3, 1, 1)
    assert found["delta"] == float(Fraction(0) - Fraction(2, 3))
    assert found["delta_low"] is not None


def test_other_images_have_no_paired_interval(tmp_path: Path) -> None:
    first = write_cell(tmp_path, {"a": "yynn"})
    rows = [row("random", i, "yes", image=f"other {i % 2}.jpg", a="yes") for i in range(4)]
    other = write_decisions(tmp_path / "e.parquet", rows, cell=CELL | {"dataset": "e"})
    found = one(audit(tmp_path, [first, other], resamples=20), dataset="e")
    assert (found["n"], found["changed"], found["delta"], found["delta_low"]) == (0, 0, 0.0, None)


def test_a_question_asked_twice_in_a_split_is_matched_once(tmp_path: Path) -> None:
    rows = [row("random", i, "yes", item="cup", a=answer) for i, answer in enumerate(["yes", "no"])]
    paths = [
        write_decisions(tmp_path / f"{p}.parquet", rows, cell=CELL | {"precision": p})
        for p in ("fp32", "nf4")
    ]
    cells = read_asked(paths, (), None, 2)
    here, there = match(*cells, "pope", "random")
    assert here.tolist() == there.tolist() == [0]


@pytest.mark.parametrize("metadata", [{"joint": False}, {}])
def test_counts_cannot_be_paired(tmp_path: Path, metadata: dict) -> None:
    paths = [
        write_decisions(tmp_path / f"{p}.parquet", table_7_rows(), cell=CELL | {"precision": p}, **metadata)
        for p in ("fp32", "nf4")
    ]
    found = one(audit(tmp_path, paths, resamples=20), precision="nf4", split="random", readout="legacy_2tok")
    assert (found["n"], found["changed"], found["delta_low"]) == (None, None, None)
    assert found["value"] == float(Fraction(2 * 1441, 2 * 1441 + 491 + 59))


def write_records(path: Path, decisions: Path, logits: list[list[float]], **meta: object) -> Path:
    """Write records of the questions of a decision file, with candidates 7 (yes) and 8 (no)."""
    rows = [
        dict.fromkeys(RECORDS.names)
        | {
            "uid": one["uid"],
            "image": one["image"],
            "question": one["question"],
            "prompt": "p",
            "status": "ok",
        }
        | {"candidate_logits": values}
        for one, values in zip(pa.parquet.read_table(decisions).to_pylist(), logits, strict=True)
    ]
    about = {"candidate_ids": [7, 8], "settings": {"compute_dtype": "float16"}, "settings_id": "s"} | meta
    write_table(path, pa.Table.from_pylist(rows[::-1], RECORDS), RECORDS, about)
    return path


def logit_cell(tmp_path: Path, logits: list[list[float]], **cell: str) -> tuple[Path, Path]:
    letters = "".join("y" if yes > no else "n" for yes, no in logits)
    path = write_cell(tmp_path, {"a": letters}, **cell)
    rows = [
        one | {"a.margin": yes - no, "a.tie": yes == no}
        for one, (yes, no) in zip(pa.parquet.read_table(path).to_pylist(), logits, strict=True)
    ]
    about = {"available": True, "ids": {"yes": [7], "no": [8]}}
    metadata = {"cell": CELL | cell, "readouts": {"a": about}, "record_settings_id": "s"}
    write_decisions(path, rows, **metadata)
    return path, write_records(path.with_suffix(".records.parquet"), path, logits)


STEP = 2**-6  # of float16 between 16 and 32


def test_near_ties_of_changed_answers(tmp_path: Path) -> None:
    before = [[20, 20], [20, 21], [22, 20], [20, 24]]
    after = [[20 + STEP, 20], [21, 20], [22, 20], [20, 24]]
    cells = [logit_cell(tmp_path, before), logit_cell(tmp_path, after, precision="fp16")]
    paths, records = (list(files) for files in zip(*cells, strict=True))
    rows = audit(tmp_path, paths, records=records)
    # Two answers change; the first is within two steps here and there, the second one whole logit away.
    found = one(rows, precision="fp16")
    assert (found["changed"], found["near_ties"], found["changed_near_ties"]) == (2, 1, 1)
    assert one(rows, precision="fp32")["near_ties"] == 1
    wider = one(audit(tmp_path, paths, records=records, within=64), precision="fp16")
    assert (wider["near_ties"], wider["changed_near_ties"]) == (2, 2)
    assert one(audit(tmp_path, paths), precision="fp16")["near_ties"] is None


def test_records_of_another_run_are_refused(tmp_path: Path) -> None:
    path, records = logit_cell(tmp_path, [[20, 20], [20, 21], [22, 20], [20, 24]])
    write_records(records, path, [[20, 20], [20, 21], [22, 20], [20, 24]], settings_id="other")
    with pytest.raises(AuditError, match="their settings differ; make it again"):
        audit(tmp_path, [path], records=[records])
    with pytest.raises(AuditError, match="1 decision files and 2 record files"):
        audit(tmp_path, [path], records=[records, records])


def test_records_that_lack_a_question_are_refused(tmp_path: Path) -> None:
    path, records = logit_cell(tmp_path, [[20, 20], [20, 21], [22, 20], [20, 24]])
    table = pa.parquet.read_table(records)
    write_table(records, table.slice(0, 3), RECORDS, table_metadata(table))
    with pytest.raises(AuditError, match=r"1 rows of .* are not there"):
        audit(tmp_path, [path], records=[records])


def test_a_cell_twice_and_no_cell_are_refused(tmp_path: Path) -> None:
    path = write_cell(tmp_path, {"a": "yynn"})
    with pytest.raises(AuditError, match="a second decision file of d/m/fp32/t/inference"):
        audit(tmp_path, [path, path])
    with pytest.raises(AuditError, match="no decision files to compare"):
        audit(tmp_path, [])
