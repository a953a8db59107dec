"""The authors' further files: every format on its sample, and what is refused."""

import json

import pytest

from readout_audit.contracts import QUESTIONS
from readout_audit.corrections.schema import CORRECTIONS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.scores.confusion import Confusion
from readout_audit.sources.predictions import (
    check_questions,
    check_summary,
    matrix,
    read_dryrun,
    read_predictions,
    read_summary,
)
from readout_audit.sources.published import read_published
from readout_audit.stages import build_questions, corrections_from_published, decisions_from_published
from readout_audit.stages.corrections_from_published import Source
from readout_audit.tables import registry
from readout_audit.tables.inputs import Options, RunTables, Sources

MIRROR = "mirror/published"
PREDICTIONS = ("baseline", "beta1.0", "clip_b1.0")
# Their summaries: tp, fp, tn, fn (README of the samples).
SUMMARIES = {
    "baseline": (1174, 182, 1318, 326),
    "beta1.0": (1118, 121, 1379, 382),
    "clip_b1.0": (1115, 114, 1386, 385),
}


def head(shared, name):
    return shared / MIRROR / f"head_{name}.json"


@pytest.mark.parametrize("name", PREDICTIONS)
def test_prediction_samples(shared, name):
    rows = read_predictions(head(shared, f"pope_full_adversarial_{name}_predictions"))
    assert [row.question_id for row in rows] == [str(number) for number in range(1, 16)]
    assert [row.label for row in rows[:3]] == ["yes", "no", "yes"]
    assert rows[10].question == "Is there an umbrella in the imange?"
    assert {row.decision for row in rows} <= {"yes", "no"}


def test_ablation_sample_has_whole_numbers_as_ids_and_mended_spelling(shared):
    rows = read_predictions(head(shared, "ablation_a_magnitude_predictions"))
    assert rows[10][:2] == ("11", "Is there an umbrella in the image?")
    # Positives 1 3 5 7 9 11 13 15 (5 missed), negatives 2 4 6 8 10 12 14 (8 called yes).
    assert matrix(rows) == Confusion(tp=7, fp=1, tn=6, fn=1)


@pytest.mark.parametrize("name", PREDICTIONS)
def test_summaries(shared, name):
    summary = read_summary(head(shared, f"pope_full_adversarial_{name}_summary"))
    assert tuple(summary[cell] for cell in ("tp", "fp", "tn", "fn")) == SUMMARIES[name]
    rows = read_predictions(head(shared, f"pope_full_adversarial_{name}_predictions"))
    with pytest.raises(AuditError, match="its summary says n_total 3000, the rows say 15; fetch both again"):
        check_summary(rows, summary, head(shared, name))


def test_token_audit_samples(shared, tmp_path):
    """The heads are cut, so their summaries contradict them; the rows themselves are what is tested."""
    for name, readouts in (
        (
            "llava16_mistral_pope_adversarial_3000q_paper_template_token_audit",
            {"legacy_2tok", "legacy_8tok", "dynamic_single", "string_parse"},
        ),
        (
            "llava-hf_llava-v1.6-mistral-7b-hf_pope_adversarial_500q_native_chat_template_token_audit",
            {"legacy_2tok", "legacy_8tok", "dynamic_single", "string_parse"},
        ),
        ("pope_popular_2tok_vs_8tok", {"legacy_2tok", "legacy_8tok"}),
    ):
        with pytest.raises(AuditError, match="the summary says rows"):
            read_published(head(shared, name))
        document = json.loads(head(shared, name).read_text())
        path = tmp_path / f"{name}.json"
        path.write_text(
            json.dumps({"summary": {"n": len(document["results"])}, "results": document["results"]})
        )
        rows = read_published(path)
        assert len(rows) == (20 if name.endswith("8tok") else 15) and set(rows[0].decisions) == readouts
        assert rows[0].first_token_id in {5592, 1770, 3869, 1939}


def test_dry_run(shared):
    ids = read_dryrun(head(shared, "llava-hf_llava-v1.6-mistral-7b-hf_tokenizer_dryrun"))
    # The paper's Table 10, and the sets of the authors' results file.
    assert ids == {
        "yes": [5081],
        "Yes": [5592],
        " yes": [28705, 5081],
        " Yes": [28705, 5592],
        "no": [708],
        "No": [1770],
        " no": [28705, 708],
        " No": [28705, 1770],
        "single:yes": [5081, 5592],
        "single:no": [708, 1770],
    }


def written(folder, content):
    path = folder / "file.json"
    path.write_text(json.dumps(content))
    return path


def row(number, label="yes", prediction="yes", question="Is there a cup in the image?", **more):
    return {
        "question_id": number,
        "question": question,
        "label": label,
        "prediction": prediction,
        **more,
    }


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "a list of rows is expected"),
        ([], "a list of rows is expected"),
        ([3], "row 1: a JSON object is expected"),
        ([row(True)], "row 1: question_id must be"),
        ([row(1.5)], "row 1: question_id must be"),
        ([row("")], "row 1: question_id must be"),
        ([row(1, label="Yes")], "row 1: label must be yes or no, not 'Yes'"),
        ([row(1), row(2, prediction=None)], "row 2: prediction must be a text, not None"),
        ([row(1, question=7)], "row 1: question must be a text"),
        ([row(1), row("1")], "question_id 1 stands twice"),
    ],
)
def test_broken_predictions_are_refused(tmp_path, content, said):
    with pytest.raises(AuditError, match=said):
        read_predictions(written(tmp_path, content))


def test_free_text_is_read_as_the_authors_do_and_errors_are_invalid(tmp_path):
    texts = ["yes.", "no, there is not", "i cannot tell", "error", "", "yesterday"]
    rows = read_predictions(written(tmp_path, [row(n, prediction=text) for n, text in enumerate(texts)]))
    assert [one.decision for one in rows] == ["yes", "no", "unparsed", "invalid", "unparsed", "unparsed"]


SUMMARY = {"split": "s", "tp": 2, "fp": 1, "tn": 1, "fn": 0, "n_total": 5, "n_valid": 4, "n_errors": 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"split": None}, "an object with split and counts is expected"),
        ({"tp": True}, "tp must be a count, not True"),
        ({"fn": -1}, "fn must be a count, not -1"),
        ({"tp": 3}, "tp, fp, tn and fn do not add up to n_valid"),
        ({"n_total": 6}, "n_valid and n_errors do not add up to n_total"),
    ],
)
def test_broken_summaries_are_refused(tmp_path, change, said):
    assert read_summary(written(tmp_path, SUMMARY)) == SUMMARY
    with pytest.raises(AuditError, match=said):
        read_summary(written(tmp_path, SUMMARY | change))


def test_summary_must_be_that_of_its_rows(tmp_path):
    rows = read_predictions(
        written(
            tmp_path,
            [
                row(1),
                row(2),
                row(3, label="no"),
                row(4, label="no", prediction="no"),
                row(5, prediction="error"),
            ],
        )
    )
    check_summary(rows, SUMMARY, tmp_path)
    with pytest.raises(AuditError, match="says tp 1, the rows say 2"):
        check_summary(rows, SUMMARY | {"tp": 1, "fn": 1}, tmp_path)


def test_questions_must_be_those_of_the_release(tmp_path):
    asked = {"1": ("Is there an egg in the imange?", "yes"), "2": ("Is there a cup in the image?", "no")}
    same = read_predictions(
        written(tmp_path, [row(1, question="Is there an egg in the image?"), row(2, label="no")])
    )
    assert check_questions(same, asked, tmp_path, "s") == 1
    for rows, said in (
        ([row(3)], "question_id 3 is not in split s"),
        ([row(2)], "question_id 2 has another label than in split s"),
        ([row(2, label="no", question="Is there a cap in the image?")], "question_id 2 has another text"),
    ):
        with pytest.raises(AuditError, match=said):
            check_questions(read_predictions(written(tmp_path, rows)), asked, tmp_path, "s")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"yes_form_to_ids": None}, "yes_form_to_ids or dynamic_yes_ids is missing"),
        ({"dynamic_no_ids": []}, "no_form_to_ids or dynamic_no_ids is missing"),
        ({"yes_form_to_ids": {"aye": [1]}}, "'aye' must be one of the eight forms"),
        ({"dynamic_yes_ids": [7]}, r"dynamic_yes_ids is \[7\], but its forms of one token give \[1\]"),
    ],
)
def test_broken_dry_runs_are_refused(tmp_path, change, said):
    good = {
        "yes_form_to_ids": {"yes": [1], " yes": [9, 1]},
        "no_form_to_ids": {"no": [2]},
        "dynamic_yes_ids": [1],
        "dynamic_no_ids": [2],
    }
    assert read_dryrun(written(tmp_path, good))["single:yes"] == [1]
    with pytest.raises(AuditError, match=said):
        read_dryrun(written(tmp_path, good | change))


# The stage, on the real 3,000 adversarial questions and decisions.


@pytest.fixture(scope="module")
def main_run(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    release = shared / "mirror/pope/coco-2023-10/coco_pope_adversarial.json"
    build_questions.main(
        [
            *("--dataset", "coco-2023-10", "--namespace", "coco", "--split", f"adversarial={release}"),
            *("--output", str(folder / "q.parquet"), "--report", str(folder / "q.json")),
        ]
    )
    files = {"adversarial": shared / MIRROR / "experiments/pope_adversarial_2tok_vs_8tok.json"}
    decisions_from_published.run(files, folder / "q.parquet", folder / "d.parquet")
    return folder


def as_predictions(folder, answers):
    """Write answers to the adversarial questions as the authors' file of a corrected run has them."""
    asked = read_table(folder / "q.parquet", QUESTIONS, "q").to_pylist()
    rows = [
        row(one["question_id"], one["label"], answer, one["question"])
        for one, answer in zip(asked, answers(asked), strict=False)
    ]
    path = folder / f"{answers.__name__}.json"
    path.write_text(json.dumps(rows))
    return path


def entropy(asked):
    """The counts of the paper's entropy row: 1,118 true and 121 false positives."""
    left = {"yes": 1118, "no": 121}
    for one in asked:
        left[one["label"]] -= 1
        yield "yes" if left[one["label"]] >= 0 else "no"


def first_hundred(asked):
    for one in asked[:100]:
        yield one["label"]


def test_a_published_correction_is_scored_like_a_runs_own(main_run, shared, root, tmp_path):
    sources = [
        Source(
            "entropy",
            "adversarial",
            as_predictions(main_run, entropy),
            head(shared, "pope_full_adversarial_beta1.0_summary"),
            "entropy_code",
            1.0,
        ),
        Source("few", "adversarial", as_predictions(main_run, first_hundred), None, "magnitude_code", 1.0),
    ]
    output = tmp_path / "c.parquet"
    corrections_from_published.run(sources, main_run / "d.parquet", output, resamples=200)
    table = read_table(output, CORRECTIONS, "c")
    (found,) = table.to_pylist()
    assert (found["method"], found["strength"], found["labels"]) == ("entropy_code", 1.0, "pope")
    assert [found[name] for name in ("n", "tp", "fp", "tn", "fn")] == [3000, 1118, 121, 1379, 382]
    assert (found["baseline_tp"], found["baseline_fp"]) == (1174, 182)
    assert found["delta_f1"] == pytest.approx(2 * 1118 / (1118 + 121 + 1500) - 2348 / 2856, abs=1e-12)
    assert found["delta_f1_low"] < found["delta_f1"] < found["delta_f1_high"]
    assert found["yes_to_no"] - found["no_to_yes"] == 1356 - 1239
    shown = registry.get("table_08_published")(
        RunTables(
            Sources(corrections=(output,), claims=root / "resources/paper/numbers.csv"),
            Options(splits=("adversarial",)),
        )
    )
    assert (
        "few: published for 100 of 3,000 questions, TP 50, FP 0, F1 1.0000; too few for its row."
        in shown.notes
    )
    assert any(row[0] == "entropy" and row[-1] == "reproduced" for row in shown.rows)
    few = table_metadata(table)["published"]["few"]
    assert (few["answered"], few["questions"], few["tp"], few["fp"]) == (100, 3000, 50, 0)


def test_a_file_that_its_summary_contradicts_makes_nothing(main_run, shared, tmp_path):
    source = Source(
        "entropy",
        "adversarial",
        as_predictions(main_run, entropy),
        head(shared, "pope_full_adversarial_clip_b1.0_summary"),
        "entropy_code",
        1.0,
    )
    with pytest.raises(AuditError, match="its summary says tp 1115, the rows say 1118"):
        corrections_from_published.run([source], main_run / "d.parquet", tmp_path / "c.parquet")
    assert not (tmp_path / "c.parquet").exists()


def test_the_ablation_sample_belongs_to_the_release_but_for_its_spelling(main_run, shared, tmp_path):
    source = Source(
        "magnitude",
        "adversarial",
        head(shared, "ablation_a_magnitude_predictions"),
        None,
        "magnitude_code",
        1.0,
    )
    corrections_from_published.run([source], main_run / "d.parquet", tmp_path / "c.parquet")
    table = read_table(tmp_path / "c.parquet", CORRECTIONS, "c")
    assert table.num_rows == 0
    about = table_metadata(table)["published"]["magnitude"]
    assert (about["answered"], about["spelt_otherwise"]) == (15, 1)


def test_the_uncorrected_run_once_more_is_counted_beside_the_main_one(main_run, shared, root, tmp_path):
    def again(asked):
        """The main run's answers, but for the first question, which it answers yes."""
        published = json.loads(
            (shared / MIRROR / "experiments/pope_adversarial_2tok_vs_8tok.json").read_text()
        )["results"]
        by_id = {str(one["question_id"]): one["pred_8tok"] for one in published}
        for number, one in enumerate(asked):
            yield "no" if number == 0 else by_id[one["question_id"]]

    source = Source("baseline", "adversarial", as_predictions(main_run, again), None, None, None)
    corrections_from_published.run([source], main_run / "d.parquet", tmp_path / "c.parquet")
    table = registry.get("table_08_published")(
        RunTables(
            Sources(corrections=(tmp_path / "c.parquet",), claims=root / "resources/paper/numbers.csv"),
            Options(splits=("adversarial",)),
        )
    )
    # TP 1,174 less the first question's: F1 2346 / (1173 + 182 + 1500) = 0.8217.
    assert (
        "baseline: the uncorrected run once more, TP 1,173, FP 182, F1 0.8217; it answers 1 of 3,000 questions "
        "otherwise than the main run."
    ) in table.notes
