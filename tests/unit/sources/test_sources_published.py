import json
from collections import Counter

import pytest

from readout_audit.contracts import QUESTIONS, decisions_schema
from readout_audit.datasets.parse import parse_questions
from readout_audit.datasets.questions import build_question_table
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata, write_table
from readout_audit.sources.published import join_published, read_published
from readout_audit.stages import build_questions, decisions_from_published

ASKED = [
    {"question_id": 1, "image": "a.jpg", "text": "Is there a dog in the image?", "label": "yes"},
    {"question_id": 2, "image": "a.jpg", "text": "Is there a cat in the image?", "label": "no"},
    {"question_id": 3, "image": "b.jpg", "text": "Is there a cow in the image?", "label": "no"},
]


def record(question_id, label, two, eight, token):
    return {
        "question_id": question_id,
        "label": label,
        "pred_2tok": two,
        "pred_8tok": eight,
        "top_token_id": token,
    }


GOOD = [
    record("2", "no", "yes", "no", 1939),
    record(1, "yes", "yes", "yes", 3869),
    record(3, "no", "no", "no", 1939),
]


@pytest.fixture
def file(tmp_path):
    def write(records, **summary):
        path = tmp_path / "published.json"
        path.write_text(json.dumps({"summary": {"n": len(records), **summary}, "results": records}))
        return path

    return write


@pytest.fixture
def questions(tmp_path):
    parsed = parse_questions(json.dumps(ASKED).encode(), "q")
    path = tmp_path / "questions.parquet"
    write_table(path, build_question_table("r1", "coco", {"random": parsed, "popular": parsed}), QUESTIONS)
    return path


def joined(path, questions, split="random"):
    return join_published({split: read_published(path)}, read_table(questions, QUESTIONS, "q")).to_pylist()


def test_rows_keep_the_published_order_and_take_the_question_along(file, questions):
    rows = joined(file(GOOD), questions)
    assert [row["question_id"] for row in rows] == ["2", "1", "3"]
    assert [row["question"] for row in rows] == [ASKED[1]["text"], ASKED[0]["text"], ASKED[2]["text"]]
    assert [row["object"] for row in rows] == ["cat", "dog", "cow"]
    assert [(row["legacy_8tok"], row["legacy_2tok"]) for row in rows] == [
        ("no", "yes"),
        ("yes", "yes"),
        ("no", "no"),
    ]
    assert {row["order_known"] for row in rows} == {True}
    assert [row["first_token_id"] for row in rows] == [1939, 3869, 1939]


def test_error_row_is_invalid_under_every_readout(file, questions):
    rows = joined(file([*GOOD[:2], {"question_id": 3, "label": "no", "error": "image missing"}]), questions)
    assert (rows[2]["legacy_8tok"], rows[2]["legacy_2tok"], rows[2]["first_token_id"]) == (
        "invalid",
        "invalid",
        None,
    )


def test_token_audit_format_and_unknown_is_unparsed(file, questions):
    audit = {
        "question_id": "1",
        "label": "yes",
        "top_token_id": 5592,
        "top_token_str": "Yes",
        "pred_legacy_2tok": "yes",
        "pred_legacy_8tok": "no",
        "pred_dynamic_single": "yes",
        "pred_string_parse": "unknown",
        "decoded_response": "Maybe ",
    }
    (row,) = joined(file([audit]), questions)
    assert row["dynamic_single"] == "yes"
    assert row["string_parse"] == "unparsed"


def test_label_of_another_release_is_refused(file, questions):
    path = file([GOOD[0], record(1, "no", "yes", "yes", 3869), record(3, "yes", "no", "no", 1939)])
    with pytest.raises(AuditError, match=r"random: 2 of 3 labels differ .* \(first at question_id 1\)"):
        joined(path, questions)


def test_unknown_id_and_split_are_refused(file, questions):
    with pytest.raises(AuditError, match="random, question_id 9: not in the question table"):
        joined(file([record(9, "no", "no", "no", 1)]), questions)
    with pytest.raises(
        AuditError, match="split hard of the published decisions is not in the question table"
    ):
        joined(file(GOOD), questions, split="hard")


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([], "no row has a decision"),
        ([{"question_id": 1, "label": "yes"}], "no row has a decision"),
        ([*GOOD, record("3", "no", "no", "no", 1)], "question_id 3 stands twice"),
        ([*GOOD, 7], "result 4: a JSON object is expected"),
        ([*GOOD, record(None, "no", "no", "no", 1)], "result 4: question_id must be"),
        ([*GOOD, record(True, "no", "no", "no", 1)], "result 4: question_id must be"),
        ([*GOOD, record(4, "No", "no", "no", 1)], "result 4: label must be yes or no, not 'No'"),
        ([*GOOD, record(4, "no", "maybe", "no", 1)], "result 4: pred_2tok must be yes, no or unknown"),
        ([*GOOD, record(4, "no", None, "no", 1)], "result 4: pred_2tok must be yes, no or unknown"),
        ([*GOOD, record(4, "no", "no", "no", "1")], "result 4: top_token_id must be a token id"),
        ([*GOOD, record(4, "no", "no", "no", 2**31)], "result 4: top_token_id must be a token id"),
        ([*GOOD, record(4, "no", "no", "no", -1)], "result 4: top_token_id must be a token id"),
    ],
)
def test_bad_record_is_named(file, records, said):
    with pytest.raises(AuditError) as caught:
        read_published(file(records))
    assert said in str(caught.value)


def test_file_cut_short_is_refused(file):
    with pytest.raises(AuditError, match="the summary says rows 4, the rows say 3"):
        read_published(file(GOOD, n=4))


def test_summary_must_count_the_tokens_of_its_rows(file):
    read_published(file(GOOD, top_tokens_generated={"1939": 2, "3869": 1, "3582": 0}))
    with pytest.raises(AuditError, match="first tokens"):
        read_published(file(GOOD, top_tokens_generated={"1939": 1, "3869": 2}))
    listed = [
        {"token_id": 1939, "count": 2, "decoded": "No"},
        {"token_id": 3869, "count": 1, "decoded": "Yes"},
    ]
    read_published(file(GOOD, top_token_counts=listed))
    with pytest.raises(AuditError, match="first tokens"):
        read_published(file(GOOD, top_token_counts=listed[:1]))


@pytest.mark.parametrize(
    "summary", [{"top_token_counts": [3]}, {"top_token_counts": [{}]}, {"top_tokens_generated": {"Yes": 1}}]
)
def test_summary_of_another_form_is_one_sentence(file, summary):
    with pytest.raises(AuditError, match="the summary has another form"):
        read_published(file(GOOD, **summary))


def test_summary_must_count_the_yes_answers_of_its_rows(file):
    read_published(file(GOOD, eval_2token={"yes_predictions": 2}, eval_8token={"yes_predictions": 1}))
    with pytest.raises(AuditError, match="legacy_8tok yes answers 2, the rows say 1"):
        read_published(file(GOOD, eval_8token={"yes_predictions": 2}))


def test_real_token_audit_of_another_model(shared, file):
    """The first 15 records of a real audit: the summary is of 3,000, so as it stands it is refused."""
    name = "head_llava16_mistral_pope_adversarial_3000q_paper_template_token_audit.json"
    path = shared / "mirror/published" / name
    with pytest.raises(AuditError, match="the summary says rows 3000, the rows say 15"):
        read_published(path)
    rows = read_published(file(json.loads(path.read_text())["results"]))
    assert {row.first_token_id for row in rows} == {1770, 5592}
    # Copied ids say yes to everything, or no to everything; the model's own ids follow its answers.
    assert {row.decisions["legacy_2tok"] for row in rows} == {"yes"}
    assert {row.decisions["legacy_8tok"] for row in rows} == {"no"}
    for row in rows:
        assert row.decisions["dynamic_single"] == row.decisions["string_parse"]
        assert (row.decisions["dynamic_single"] == "yes") == (row.first_token_id == 5592)


@pytest.mark.parametrize(
    "text", ["[]", '{"results": 3}', '{"results": [{"pred_2tok": "yes"}', "", "nonsense"]
)
def test_another_form_is_one_sentence(tmp_path, text):
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(AuditError, match=r"p\.json: "):
        read_published(path)


def test_stage_counts_questions_without_a_record(tmp_path, file, questions):
    output = tmp_path / "d.parquet"
    decisions_from_published.run({"random": file(GOOD[:2])}, questions, output, dataset="r1")
    metadata = table_metadata(read_table(output, decisions_schema(["legacy_2tok", "legacy_8tok"]), "d"))
    assert metadata["questions_without_a_record"] == {"random": 1}
    assert metadata["rows"] == {"random": 2}
    assert metadata["question_ids"] == {"random": ["numbers", "texts"]}  # "2" and 1
    assert metadata["cell"]["source"] == "published"
    assert str(tmp_path) not in json.dumps(metadata)


def test_the_9000_real_decisions_are_table_7(shared, root, tmp_path):
    mirror = shared / "mirror"
    asked = tmp_path / "q.parquet"
    build_questions.run(
        dataset="coco-2023-10",
        namespace="coco",
        files={
            s: mirror / f"pope/coco-2023-10/coco_pope_{s}.json" for s in ("adversarial", "popular", "random")
        },
        sha256={},
        known=[],
        output=asked,
        report=tmp_path / "q.json",
    )
    files = {
        s: mirror / f"published/experiments/pope_{s}_2tok_vs_8tok.json"
        for s in ("adversarial", "popular", "random")
    }
    output = tmp_path / "d.parquet"
    decisions_from_published.run(files, asked, output)
    table = read_table(output, decisions_schema(["legacy_2tok", "legacy_8tok"]), "d")
    assert table_metadata(table)["question_ids"] == {
        "adversarial": ["texts"],
        "popular": ["numbers"],
        "random": ["numbers"],
    }
    rows = table.to_pylist()
    counted = Counter((r["split"], r["label"], r["legacy_8tok"], r["legacy_2tok"]) for r in rows)
    assert counted["adversarial", "no", "no", "yes"] == 660
    assert counted["adversarial", "yes", "no", "yes"] == 264
    assert counted["popular", "no", "no", "yes"] == 567
    assert counted["random", "no", "no", "yes"] == 448
    assert sum(n for (_, _, eight, two), n in counted.items() if (eight, two) == ("yes", "no")) == 0
    # The adversarial file is of 2023-10: joined to it, 57 questions carry the misspelling.
    assert sum("imange" in r["question"] for r in rows) == 57
    other = {"adversarial": mirror / "pope/coco-2023-08/coco_pope_adversarial.json"}
    build_questions.run(
        dataset="coco-2023-08",
        namespace="coco",
        files=other,
        sha256={},
        known=[],
        output=asked,
        report=tmp_path / "r.json",
    )
    with pytest.raises(AuditError, match="belong to another release"):
        decisions_from_published.run(
            {"adversarial": files["adversarial"]}, asked, output, dataset="coco-2023-08"
        )
    with pytest.raises(AuditError, match="not the questions of coco-2023-10"):
        decisions_from_published.run(files, asked, output)
