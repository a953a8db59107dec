"""The decide stage: records spread over the question rows, null where a source cannot say, refusals."""

import time

import numpy as np
import pytest
from readout_tables import NO_FORMS, YES_FORMS, full_records, metadata, questions, records, sets

from readout_audit.contracts import QUESTIONS, RECORDS, decisions_schema
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata, write_table
from readout_audit.stages.decide import run

CELL = {"dataset": "toy", "model": "toy", "precision": "fp32", "template": "paper", "source": "inference"}


def write(tmp_path, table, meta, asked):
    write_table(tmp_path / "r.parquet", table, RECORDS, meta)
    write_table(tmp_path / "q.parquet", asked, QUESTIONS)
    return tmp_path / "r.parquet", tmp_path / "q.parquet", tmp_path / "d.parquet"


def test_decisions_in_question_order_with_repeats(tmp_path):
    meta = metadata([1939, 3869], single=sets([3869], [1939]))
    table = records(
        [[1.0, 2.0], [2.0, 1.0], None], new_text=["Yes", "No", None], argmax_id=[3869, 1939, None]
    )
    asked = questions(["u1", "u0", "u0", "u2"], ["a", "a", "b", "b"], ["no", "yes", "yes", "no"])
    files = write(tmp_path, table, meta, asked)
    run(*files, ["dynamic_single", "string_parse", "vocab_scan"], CELL)
    names = ["dynamic_single", "string_parse", "vocab_scan"]
    decided = read_table(files[2], decisions_schema(names), "decisions")
    assert decided["uid"].to_pylist() == ["u1", "u0", "u0", "u2"]
    assert decided["question_id"].to_pylist() == ["1", "2", "3", "4"]
    assert decided["dynamic_single"].to_pylist() == ["no", "yes", "yes", "invalid"]
    assert decided["dynamic_single.margin"].to_pylist() == [-1.0, 1.0, 1.0, None]
    assert decided["dynamic_single.tie"].to_pylist() == [False, False, False, None]
    assert decided["string_parse"].to_pylist() == ["no", "yes", "yes", "invalid"]
    assert decided["string_parse.tie"].to_pylist() == [None] * 4
    assert decided["vocab_scan"].to_pylist() == [None] * 4
    assert decided["first_token_id"].to_pylist() == [1939, 3869, 3869, None]
    assert decided["order_known"].to_pylist() == [True] * 4


def test_the_output_says_what_each_readout_read(tmp_path):
    meta = metadata([1939, 3869, 5], single=sets([3869, 5], [1939]))
    files = write(tmp_path, records([[0.0, 1.0, 2.0]]), meta, questions(["u0"], ["a"], ["yes"]))
    run(*files, ["dynamic_single", "string_parse", "legacy_2tok"], CELL)
    described = table_metadata(
        read_table(files[2], decisions_schema(["dynamic_single", "string_parse", "legacy_2tok"]), "d")
    )
    assert described["cell"] == CELL and described["record_settings_id"] == "s1"
    single = described["readouts"]["dynamic_single"]
    assert single["available"] and single["kind"] == "logit" and "Listing 1" in single["source"]
    assert single["ids"] == {"yes": [5, 3869], "no": [1939]}
    assert single["pieces"] == {"5": None, "3869": "▁Yes", "1939": "▁No"}
    assert described["readouts"]["string_parse"]["strings"] == {"yes": ["yes"], "no": ["no"]}
    legacy = described["readouts"]["legacy_2tok"]
    assert not legacy["available"] and "name no reference model" in legacy["why_not"]


def test_only_the_splits_of_the_run_are_decided(tmp_path):
    meta = metadata([1939, 3869], single=sets([3869], [1939]))
    # u9, which only split c asks, is not among the records: a run of a and b does not need it.
    asked = questions(["u0", "u1", "u0", "u9"], ["a", "a", "b", "c"], ["yes"] * 4)
    files = write(tmp_path, records([[1.0, 2.0], [2.0, 1.0]]), meta, asked)
    for splits, expected in ((["b"], ["b"]), (["b", "a"], ["a", "a", "b"])):
        run(*files, ["dynamic_single"], CELL, splits)
        decided = read_table(files[2], decisions_schema(["dynamic_single"]), "d")
        assert decided["split"].to_pylist() == expected
    with pytest.raises(
        AuditError, match=r"no questions of split hard \(there are a, b, c\); name other splits"
    ):
        run(*files, ["dynamic_single"], CELL, ["a", "hard"])


@pytest.mark.parametrize(("expected", "level"), [(False, "WARNING"), (True, "INFO")])
def test_a_readout_that_misses_what_is_emitted_is_named_and_warned_of(tmp_path, caplog, expected, level):
    ids = sorted([*YES_FORMS.values(), *NO_FORMS.values()])
    legacy = {"model": "llava-1.5-7b", "yes": YES_FORMS, "no": NO_FORMS}
    meta = metadata(ids, legacy=legacy, single=sets([3869], [1939]))
    pieces = ["▁Yes", "▁No", "▁No", "▁The", None]
    logits = [[0.0] * 8, [0.0] * 8, [0.0] * 8, [0.0] * 8, None]
    table = records(logits, argmax_id=[3869, 1939, 1939, 450, None], argmax_text=pieces)
    files = write(tmp_path, table, meta, questions(["u0", "u1"], ["a", "a"], ["yes", "no"]))
    names = ["legacy_2tok", "dynamic_single", "string_parse"]
    with caplog.at_level("INFO", logger="readout_audit"):
        run(*files, names, CELL, expect_excluded=expected)
    meta = table_metadata(read_table(files[2], decisions_schema(names), "d"))
    assert meta["expect_excluded"] is expected
    assert meta["readouts"]["legacy_2tok"]["coverage"] == {
        "questions": 4,
        "outside": 4,
        "excluded": [
            {"id": 1939, "piece": "▁No", "says": "no", "count": 2},
            {"id": 3869, "piece": "▁Yes", "says": "yes", "count": 1},
        ],
        "foreign": {},
    }
    single = meta["readouts"]["dynamic_single"]["coverage"]
    assert single["excluded"] == [] and single["outside"] == 1
    assert "coverage" not in meta["readouts"]["string_parse"]
    [record] = [record for record in caplog.records if "did not select" in record.message]
    assert record.levelname == level
    assert (
        "legacy_2tok compares candidates that the decoder did not select on 3 of 4 questions"
        in record.message
    )
    assert ("expect_excluded: true" in record.message) is not expected


def test_a_question_that_was_not_asked_stops_with_count_and_example(tmp_path):
    meta = metadata([1, 2], single=sets([1], [2]))
    asked = questions(["u0", "u7", "u8", "u8"], ["a", "a", "a", "b"], ["yes"] * 4)
    files = write(tmp_path, records([[0.0, 1.0]]), meta, asked)
    with pytest.raises(
        AuditError, match=r"2 of the 3 distinct questions .* such as question_id 2 of a \(u7.jpg"
    ):
        run(*files, ["dynamic_single"], CELL)
    assert not files[2].exists()


def test_a_uid_twice_in_the_records_stops(tmp_path):
    meta = metadata([1, 2], single=sets([1], [2]))
    table = records([[0.0, 1.0], [1.0, 0.0]], uid=["u0", "u0"])
    files = write(tmp_path, table, meta, questions(["u0"], ["a"], ["yes"]))
    with pytest.raises(AuditError, match="1 uids stand there more than once, such as u0"):
        run(*files, ["dynamic_single"], CELL)


def test_an_incomplete_cell_and_an_unrecorded_id_stop(tmp_path):
    meta = metadata([1, 2], single=sets([1], [99]))
    files = write(tmp_path, records([[0.0, 1.0]]), meta, questions(["u0"], ["a"], ["yes"]))
    with pytest.raises(AuditError, match="cell must have dataset, model"):
        run(*files, ["dynamic_single"], {"dataset": "toy"})
    with pytest.raises(AuditError, match=r"ids \[99\]"):
        run(*files, ["dynamic_single"], CELL)


def test_nine_thousand_rows_take_no_time_and_first_token_follows_theorem_1(tmp_path):
    rng = np.random.default_rng(7)
    ids = [*YES_FORMS.values(), *NO_FORMS.values()]
    logits = np.full((5127, 9000), -50.0, dtype=np.float32)
    logits[:, ids] = rng.normal(size=(5127, 8)).round(1)
    pieces = {token: form.replace(" ", "▁") for token, form in zip(ids, [*YES_FORMS, *NO_FORMS], strict=True)}
    table = full_records(
        logits,
        ids,
        argmax_text=[pieces[i] for i in logits.argmax(axis=1)],
        new_text=[pieces[i].strip("▁") for i in logits.argmax(axis=1)],
    )
    both = sets(YES_FORMS.values(), NO_FORMS.values())
    meta = metadata(
        ids, single=both, scan=both, in_context=both, legacy={"model": "m", "yes": YES_FORMS, "no": NO_FORMS}
    )
    uids = [f"u{i % 5127}" for i in range(9000)]
    files = write(tmp_path, table, meta, questions(uids, ["a"] * 9000, ["yes"] * 9000))
    names = [
        "legacy_2tok",
        "legacy_8tok",
        "dynamic_single",
        "vocab_scan",
        "set_logsumexp",
        "first_token",
        "string_parse",
    ]
    start = time.process_time()
    run(*files, names, CELL)
    assert time.process_time() - start < 1.5
    decided = read_table(files[2], decisions_schema(names), "decisions").to_pandas()
    assert (decided["first_token"] == decided["string_parse"]).all()
    assert (decided["legacy_8tok"] == decided["dynamic_single"]).all()
    differs = decided["first_token"] != decided["dynamic_single"]
    assert decided.loc[differs, "dynamic_single.tie"].all() and differs.any()


def test_label_reading_rules_see_each_question_row_and_flags_are_counted_by_split(tmp_path):
    meta = metadata([1, 2], single=sets([1], [2]))
    table = records([[0.0, 1.0], [1.0, 0.0]], new_text=["maybe", "yes"])
    # The same question with opposite labels in two splits: VCD's rule reads it twice, differently.
    asked = questions(["u0", "u0", "u1", "u1"], ["a", "b", "a", "b"], ["yes", "no", "yes", "yes"])
    files = write(tmp_path, table, meta, asked)
    run(*files, ["vcd", "pope_official", "threshold"], CELL)
    names = ["vcd", "pope_official", "threshold"]
    decided = read_table(files[2], decisions_schema(names), "d")
    assert decided["vcd"].to_pylist() == ["no", "yes", "yes", "yes"]
    described = table_metadata(decided)["readouts"]
    assert described["vcd"]["flags"] == {"label_decides": {"a": 1, "b": 1}}
    assert described["pope_official"]["flags"] == {"default_yes": {"a": 1, "b": 1}}
    assert sorted(described["threshold"]["settings"]["p_yes_cut_by_fold"]) == ["0", "1"]
