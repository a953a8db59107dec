"""The stages: from records and signals, and from the authors' own file, to the probe's tables."""

import json
import math

import numpy as np
import pytest
from corrections.made import (
    CELL,
    decision,
    record,
    signal,
    world,
    write_decisions,
    write_records,
    write_signals,
)
from scipy import stats

from readout_audit.contracts import QUESTIONS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata, write_table
from readout_audit.probe.published import read_diagnostic
from readout_audit.probe.statistics import cohens_d
from readout_audit.stages import probe, probe_published

HEAD = "mirror/published/head_ugaa_full_adversarial_3000q_diagnostic.json"


def outputs(folder):
    return probe.Outputs(*(folder / f"{name}.parquet" for name in probe.Outputs._fields))


def run(folder, records, signals, decisions, **more):
    out = outputs(folder)
    probe.run(
        write_records(folder / "r.parquet", records),
        None if signals is None else write_signals(folder / "s.parquet", signals),
        write_decisions(folder / "d.parquet", decisions),
        out,
        **({"resamples": 0} | more),
    )
    return read(out)


def read(out):
    return {
        name: read_table(path, schema, name)
        for name, path, schema in zip(out._fields, out, probe.SCHEMAS, strict=True)
    }


def frame(table):
    return table.to_pandas()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return run(tmp_path_factory.mktemp("probe"), *world(images=20), resamples=60)


def test_one_row_per_answer(made):
    rows = frame(made["probe"])
    assert len(rows) == 120
    assert set(rows["pass"]) == {"instrumented"}
    assert ((rows["yes_logit"] > rows["no_logit"]) == (rows["answer"] == "yes")).all()
    assert (rows["main_answer"] == rows["answer"]).all()  # the made passes are one
    assert rows["attention_image"].notna().all() and rows["excluded_yes_rank"].between(1, 4).all()


def test_groups_add_up(made):
    rows = frame(made["groups"]).query("signal == 'gap'")
    for _, split in rows.groupby("split"):
        n = split.set_index("group")["n"]
        assert n["all"] == n["correct"] + n["wrong"] == n[["tp", "tn", "fp", "fn"]].sum()
        assert (split["mean_low"] <= split["mean"]).all()


def test_comparisons_are_those_of_the_answers(made):
    single, found = frame(made["probe"]), frame(made["comparisons"])
    row = found.query("split == 'random' and signal == 'gap' and group_a == 'tp'").iloc[0]
    gap = (single["yes_logit"] - single["no_logit"]).abs()
    tp, fn = (gap[(single["split"] == "random") & (single["outcome"] == name)] for name in ("tp", "fn"))
    assert row["p"] == pytest.approx(stats.mannwhitneyu(tp, fn, alternative="two-sided").pvalue)
    assert row["d"] == pytest.approx(cohens_d(tp.to_numpy(), fn.to_numpy()))
    assert row["family_size"] == 7
    assert row["p_corrected"] == pytest.approx(min(1, 7 * row["p"]))
    assert np.isnan(row["matched_difference"])
    attention = found.query(
        "split == 'random' and signal == 'attention_image' and group_a == 'correct'"
    ).iloc[0]
    assert attention["family_size"] == 3
    assert attention["matched_low"] <= attention["matched_difference"] <= attention["matched_high"]


def test_windows_mark_the_chosen_layers(made):
    rows = frame(made["windows"])
    assert len(rows) == 2 * 2 * 6
    chosen = rows[rows["chosen"]]
    assert set(zip(chosen["start"], chosen["end"], strict=True)) == {(1, 3)}
    found = frame(made["comparisons"]).query("group_a == 'correct' and signal == 'attention_image'")
    same = chosen[chosen["signal"] == "attention_image"]
    assert same["d"].tolist() == pytest.approx(found["d"].tolist())


def test_excluded_rows_of_every_outcome(made):
    rows = frame(made["excluded"])
    assert len(rows) == 2 * 5 * 3
    assert set(rows["excluded"]) == {"legacy_2tok"}
    assert table_metadata(made["excluded"])["excluded"]["ids"] == {"yes": [3], "no": [8]}


def test_same_inputs_same_bytes(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        run(tmp_path / name, *world(images=4), resamples=20)
    for one, other in zip(outputs(tmp_path / "a"), outputs(tmp_path / "b"), strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_the_instrumented_pass_may_answer_otherwise(tmp_path):
    rows = run(
        tmp_path,
        [record(1, "a.jpg", [0.0, 2.0, 0.0, 1.0]), record(2, "a.jpg", [0.0, 1.0, 0.0, 2.0])],
        [
            signal(1, "a.jpg", answer_candidate_logits=[0.0, 1.5, 0.0, 1.5]),
            signal(2, "a.jpg", answer_candidate_logits=[0.0, 1.0, 0.0, 2.0]),
        ],
        [decision(1, "a.jpg", "yes"), decision(2, "a.jpg", "no")],
    )
    first = frame(rows["probe"]).iloc[0]
    assert (first["answer"], first["tie"], first["main_answer"], first["main_gap"]) == (
        "no",
        True,
        "yes",
        1.0,
    )
    # The excluded logits are of the main records, where both answers are right.
    excluded = frame(rows["excluded"]).set_index(["outcome", "side"])["n"]
    assert (excluded["tp", "yes"], excluded["fn", "yes"]) == (1, 0)


def test_rows_the_pass_did_not_answer_are_left_out(tmp_path):
    records, signals, decisions = world(images=2)
    signals[0] = {key: signals[0][key] for key in ("uid", "image", "status")}
    found = run(tmp_path, records, signals, decisions)
    assert len(frame(found["probe"])) == len(records) - 1


def test_records_alone_have_gaps_and_excluded_logits(tmp_path):
    records, _, decisions = world(images=6)
    found = run(tmp_path, records, None, decisions)
    assert set(frame(found["probe"])["pass"]) == {"main"}
    rows = frame(found["comparisons"])
    assert set(rows[rows["status"] == "ok"]["signal"]) == {"gap"}
    assert set(rows[rows["status"] != "ok"]["reason"]) <= {"the signal is null on every answer"}
    assert not len(found["windows"]) and len(found["excluded"])


def test_signals_without_the_answer_say_so(tmp_path):
    records, signals, decisions = world(images=2)
    bare = [{key: row[key] for key in ("uid", "image", "status")} for row in signals]
    found = run(tmp_path, records, bare, decisions)
    assert not len(found["probe"])
    why = table_metadata(found["probe"])["not_available"]
    assert why["legacy_8tok, random"] == "no question has logits of the instrumented pass"


def test_a_gap_pair_that_compares_no_largest_logits_leaves_the_excluded_ids_out(tmp_path):
    found = run(tmp_path, *world(images=20), excluded="string_parse")
    notes = table_metadata(found["probe"])
    assert "'string_parse' does not compare those" in notes["not_available"]["string_parse"]
    assert notes["excluded"] == {"readout": "string_parse", "ids": None}
    assert found["probe"].num_rows


def diagnostic(folder, rows, **summary):
    path = folder / "diagnostic.json"
    path.write_text(json.dumps({"summary": {"split": "adversarial", **summary}, "results": rows}))
    return path


def result(number, label="yes", yes=2.0, no=1.0, **more):
    gap = yes - no
    answer = "yes" if gap > 0 else "no"
    return {
        "label": label,
        "prediction": answer,
        "baseline_prediction": answer,
        "yes_raw": yes,
        "no_raw": no,
        "gap_raw": gap,
        "grounding": 0.07,
        "clip_l_max_sim": 0.15,
        "visual_span": [1, 577],
        "question_id": str(number),
        **more,
    }


def test_the_authors_file_is_read(shared):
    found = read_diagnostic(shared / HEAD)
    assert (found.split, len(found.question_ids), found.errors) == ("adversarial", 15, [])
    assert found.settings["positions"] == [[1, 577]]
    assert found.settings["layers"] == [14, 20]
    first = found.answers
    assert (first.yes_logit[0], first.no_logit[0], first.gap[0]) == (25.3125, 23.859375, 1.453125)
    assert first.signals["attention_window"][0] == pytest.approx(0.0711822658777237, abs=0)
    assert first.outcome[:3] == ["tp", "tn", "tp"]
    raw = json.loads((shared / HEAD).read_text())["results"]
    assert [row["baseline_prediction"] for row in raw] == np.where(first.yes, "yes", "no").tolist()


def test_the_statistics_run_on_the_authors_rows(shared, tmp_path):
    ids = read_diagnostic(shared / HEAD).question_ids
    rows = json.loads((shared / HEAD).read_text())["results"]
    questions(tmp_path / "q.parquet", ids, [row["label"] for row in rows])
    path = diagnostic(tmp_path, rows, n_total=15, n_valid=15)
    probe_published.run(
        path, tmp_path / "q.parquet", outputs(tmp_path), CELL | {"source": "published"}, resamples=50
    )
    found = read(outputs(tmp_path))
    assert table_metadata(found["groups"])["attention_window"] == [1, 577]
    assert len(found["probe"]) == 15
    groups = frame(found["groups"])
    assert groups.query("signal == 'clip_l' and group == 'all'")["n"].item() == 15
    assert not len(found["windows"]) and not len(found["excluded"])
    attention = frame(found["comparisons"]).query("signal == 'attention_image'")
    assert set(attention["status"]) == {"not_available"}


def test_a_file_that_was_cut_is_refused(shared, tmp_path):
    # The sample is the authors' file cut after 15 rows, under its whole summary.
    with pytest.raises(
        AuditError, match=r"the summary says n_total 3000, the rows say 15; fetch the file again"
    ):
        probe_published.run(shared / HEAD, tmp_path / "q.parquet", outputs(tmp_path), CELL)


def test_a_summary_of_other_answers_is_refused(tmp_path):
    path = diagnostic(tmp_path, [result(1), result(2, yes=0.0)], tp=2, fn=0)
    with pytest.raises(AuditError, match="the summary says tp 2, the rows say 1"):
        probe_published.run(path, tmp_path / "q.parquet", outputs(tmp_path), CELL)


def test_error_rows_are_counted_by_the_summary(tmp_path):
    rows = [result(1), {"question_id": "2", "label": "no", "error": "out of memory"}]
    path = diagnostic(tmp_path, rows, n_total=2, n_valid=1, n_errors=0)
    with pytest.raises(AuditError, match="the summary says n_errors 0, the rows say 1"):
        read_diagnostic(path).check_summary(path)
    path = diagnostic(tmp_path, rows, n_total=2, n_valid=1, n_errors=1, tp=1, fn=0)
    read_diagnostic(path).check_summary(path)


def questions(path, ids, labels):
    rows = [
        {
            "uid": str(number),
            "dataset": "d",
            "split": "adversarial",
            "question_id": question_id,
            "image": f"{number // 6}.jpg",
            "image_namespace": "coco",
            "question": "Is there a thing in the image?",
            "label": label,
        }
        for number, (question_id, label) in enumerate(zip(ids, labels, strict=True))
    ]
    table = type(QUESTIONS.empty_table()).from_pylist(rows, schema=QUESTIONS)
    write_table(path, table, QUESTIONS)


def test_other_labels_are_another_release(tmp_path):
    path = diagnostic(tmp_path, [result(1)])
    questions(tmp_path / "q.parquet", ["1"], ["no"])
    with pytest.raises(AuditError, match="question 1 has another label"):
        probe_published.run(path, tmp_path / "q.parquet", outputs(tmp_path), CELL)
    questions(tmp_path / "q.parquet", ["2"], ["yes"])
    with pytest.raises(AuditError, match="1 questions of the diagnostic file, such as 1, are not in split"):
        probe_published.run(path, tmp_path / "q.parquet", outputs(tmp_path), CELL)


def test_what_is_missing_upstream_is_null(tmp_path):
    rows = [
        result(1, grounding=math.nan),
        result(2, clip_l_max_sim=None),
        {"question_id": "3", "label": "no", "error": "out of memory"},
    ]
    found = read_diagnostic(diagnostic(tmp_path, rows))
    assert np.isnan(found.answers.signals["attention_window"]).tolist() == [True, False]
    assert np.isnan(found.answers.signals["clip_l"]).tolist() == [False, True]
    assert found.errors == ["3"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (result(1, gap_raw=0.5), "gap_raw is not yes_raw minus no_raw"),
        (result(1, baseline_prediction="no"), "the prediction is not the sign of gap_raw"),
        (result(1, label="maybe"), "label 'maybe' is neither yes nor no"),
        (result(1, yes_raw="25"), "yes_raw is '25', not a number"),
        (result(1, yes_raw=math.inf), "yes_raw is inf, not a number"),
        (result(1, yes_raw=True), "yes_raw is True, not a number"),
        (result(1, visual_span=577), "visual_span is 577, not two positions"),
        ({"label": "yes"}, "no question_id"),
    ],
)
def test_damage_is_named(tmp_path, row, message):
    with pytest.raises(AuditError, match=f"result 1: {message}"):
        read_diagnostic(diagnostic(tmp_path, [row]))


def test_other_json_is_refused(tmp_path):
    path = tmp_path / "list.json"
    path.write_text("[]")
    with pytest.raises(AuditError, match="this is none"):
        read_diagnostic(path)
    path.write_text('{"results": []}')
    with pytest.raises(AuditError, match="the summary is missing"):
        read_diagnostic(path)
    with pytest.raises(AuditError, match="stands twice"):
        read_diagnostic(diagnostic(tmp_path, [result(1), result(1)]))
