"""The score stage on small decision files."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from readout_audit.contracts import QUESTIONS, SCORES, decisions_schema
from readout_audit.datasets.questions import question_uid
from readout_audit.errors import AuditError
from readout_audit.exact import round_half_up
from readout_audit.fileio import read_table, table_metadata, write_table
from readout_audit.scores.confusion import Confusion
from readout_audit.stages import concatenate_scores, score
from scores.decision_files import CELL, NAMESPACE, row, write_decisions


def scored(tmp_path, rows, *, metadata=None, **options):
    """Score rows; return {(labels, split, readout, subset): row} and the metadata."""
    decisions = write_decisions(tmp_path / "decisions.parquet", rows, **(metadata or {}))
    score.run(decisions, tmp_path / "scores.parquet", **options)
    table = read_table(tmp_path / "scores.parquet", SCORES, "scores")
    keyed = {(r["labels"], r["split"], r["readout"], r["subset"]): r for r in table.to_pylist()}
    assert len(keyed) == len(table)
    return keyed, table_metadata(table)


def matrix(row):
    return Confusion(**{name: row[name] for name in Confusion._fields})


def test_table_7_through_the_stage(table_7, tmp_path):
    score.run(table_7, tmp_path / "scores.parquet")
    rows = {
        (r["split"], r["readout"]): r
        for r in read_table(tmp_path / "scores.parquet", SCORES, "scores").to_pylist()
    }
    assert matrix(rows["adversarial", "legacy_2tok"])[:4] == (1438, 842, 658, 62)
    pooled = rows["pooled", "legacy_8tok"]
    assert (pooled["n"], pooled["tp"], pooled["fp"]) == (9000, 1174 + 1191 + 1191, 182 + 112 + 43)
    macro = rows["macro", "legacy_8tok"]
    assert macro["f1"] == pytest.approx((2348 / 2856 + 2382 / 2803 + 2382 / 2734) / 3, abs=1e-15)
    assert macro["n"] is None and macro["tp"] is None
    # Which question is which is not known from printed counts.
    assert rows["distinct", "legacy_8tok"]["f1"] is None
    assert rows["adversarial", "legacy_8tok"]["ties"] is None
    assert str(round_half_up(matrix(rows["random", "legacy_2tok"]).f1, 4)) == "0.8397"


def test_columns_beside_the_primary_figures(tmp_path):
    rows = [
        row("s", 1, "yes", r="yes", **{"r.tie": False}),
        row("s", 2, "yes", r="no", **{"r.tie": True}),
        row("s", 3, "no", r="no", **{"r.tie": True}),
        row("s", 4, "no", r="unparsed", **{"r.tie": False}),
        row("s", 5, "yes", r="unparsed", **{"r.tie": False}),
        row("s", 6, "no", r="invalid"),
    ]
    keyed, _ = scored(tmp_path, rows)
    one = keyed["pope", "s", "r", "all"]
    assert (one["n"], one["ties"]) == (6, 2)
    assert one["f1"] == pytest.approx(2 / 4)  # TP 1, misses 2
    assert one["f1_ties_yes"] == pytest.approx(4 / 6)  # TP 2, FP 1, misses 1
    assert one["f1_ties_no"] == one["f1"]
    assert one["f1_ties_excluded"] == pytest.approx(2 / 3)  # TP 1, misses 1
    assert one["f1_parsed_only"] == pytest.approx(2 / 3)  # TP 1, FN 1
    assert one["accuracy"] == pytest.approx(2 / 5)
    assert one["accuracy_parsed_only"] == pytest.approx(2 / 3)
    assert one["yes_rate"] == pytest.approx(1 / 5)
    assert one["f1_low"] is None


def test_first_questions_follow_the_order_of_the_release(tmp_path):
    rows = [row("s", n, "yes", r="yes" if n < 3 else "no") for n in range(5)]
    keyed, _ = scored(tmp_path, rows, first=[3, 5, 9])
    assert keyed["pope", "s", "r", "first_3"]["tp"] == 3
    assert keyed["pope", "s", "r", "first_5"]["tp"] == 3 and keyed["pope", "s", "r", "first_5"]["fn"] == 2
    assert ("pope", "s", "r", "first_9") not in keyed
    unordered = [one | {"order_known": False} for one in rows]
    keyed, _ = scored(tmp_path, unordered, first=[3])
    assert ("pope", "s", "r", "first_3") not in keyed


def test_distinct_counts_each_question_once(tmp_path):
    rows = [
        row("a", 1, "yes", item="cat", r="yes"),
        row("a", 2, "no", item="dog", r="yes"),
        row("b", 1, "yes", item="cat", r="yes"),
        row("b", 2, "no", item="cow", r="no"),
    ]
    keyed, metadata = scored(tmp_path, rows)
    assert matrix(keyed["pope", "distinct", "r", "all"]) == Confusion(1, 1, 1, 0)
    assert keyed["pope", "pooled", "r", "all"]["n"] == 4
    assert metadata["rows_that_contradict_the_same_question"] == {}
    rows[2]["r"] = "no"  # the same question answered otherwise: no single answer to count
    keyed, metadata = scored(tmp_path, rows)
    assert keyed["pope", "distinct", "r", "all"]["n"] is None
    assert metadata["rows_that_contradict_the_same_question"] == {"pope": {"r": 1}}


def test_what_the_source_does_not_have_gets_no_row_but_a_word(tmp_path):
    rows = [
        row("a", 1, "yes", full="yes", never=None, partly="yes"),
        row("b", 1, "yes", full="yes", never=None, partly=None),
    ]
    keyed, metadata = scored(tmp_path, rows, metadata={"readouts": {"never": {"why_not": "no logits"}}})
    assert {key[2] for key in keyed} == {"full", "partly"}
    assert {key[1] for key in keyed if key[2] == "partly"} == {"a"}
    assert metadata["not_available"]["never"]["why"] == "no logits"
    assert metadata["not_available"]["partly"]["splits"] == ["b"]


def labels_file(path, rows):
    """Write a label set: (split, image, object, label)."""
    table = [
        {
            "uid": question_uid(NAMESPACE, image, f"Is there a {item}?"),
            "dataset": "other",
            "split": split,
            "question_id": str(number),
            "image": image,
            "image_namespace": NAMESPACE,
            "object": item,
            "question": f"Is there a {item}?",
            "label": label,
        }
        for number, (split, image, item, label) in enumerate(rows)
    ]
    write_table(path, pa.Table.from_pylist(table, schema=QUESTIONS), QUESTIONS)
    return path


def test_another_label_set_joins_on_image_and_object(tmp_path):
    rows = [
        row("a", 1, "yes", image="1.jpg", item="cat", r="yes"),
        row("a", 2, "no", image="1.jpg", item="dog", r="yes"),
        row("a", 3, "no", image="2.jpg", item="cat", r="no"),
    ]
    # Another order, other ids and another wording; one object relabelled, one dropped.
    file = labels_file(tmp_path / "l.parquet", [("z", "1.jpg", "dog", "yes"), ("z", "1.jpg", "cat", "yes")])
    keyed, metadata = scored(tmp_path, rows, relabel={"re": [file]})
    assert matrix(keyed["re", "a", "r", "all"]) == Confusion(2, 0, 0, 0)
    assert matrix(keyed["pope", "a", "r", "all"]) == Confusion(1, 1, 1, 0)
    assert metadata["labels"]["re"] == {"rows": 2, "left_out": {"no label in re": {"a": 1}}}


def test_labels_of_other_images_of_the_same_name_do_not_join(tmp_path):
    rows = [row("a", 1, "yes", image="1.jpg", item="cat", r="yes")]
    file = labels_file(tmp_path / "l.parquet", [("a", "1.jpg", "cat", "no")])
    table = pq.read_table(file)
    other = table.set_column(5, QUESTIONS.field("image_namespace"), pa.array(["elsewhere"]))
    write_table(file, other, QUESTIONS)
    keyed, metadata = scored(tmp_path, rows, relabel={"re": [file]})
    assert keyed["re", "a", "r", "all"]["n"] == 0
    assert metadata["labels"]["re"]["left_out"] == {"re is about other images": {"a": 1}}


def test_contradicting_labels_are_refused(tmp_path):
    file = labels_file(tmp_path / "l.parquet", [("a", "1.jpg", "cat", "no"), ("b", "1.jpg", "cat", "yes")])
    with pytest.raises(AuditError, match="row 2 labels 'cat'"):
        scored(tmp_path, [row("a", 1, "yes", r="yes")], relabel={"re": [file]})
    with pytest.raises(AuditError, match="name of the decision file's own labels"):
        scored(tmp_path, [row("a", 1, "yes", r="yes")], relabel={"pope": [file]})


BAD = {
    "unknown decision": ([row("a", 1, "yes", r="maybe")], {}, "row 1, column r: 'maybe'"),
    "unknown label": ([row("a", 1, "perhaps", r="yes")], {}, "row 1, column label: 'perhaps'"),
    "half a split": (
        [row("a", 1, "yes", r="yes"), row("a", 2, "yes", r=None)],
        {},
        "empty on 1 of the 2 rows",
    ),
    "a split named as an aggregate": ([row("macro", 1, "yes", r="yes")], {}, "name of an aggregate"),
    "no cell": ([row("a", 1, "yes", r="yes")], {"cell": {}}, "does not name the cell .dataset"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_decision_files_are_refused(tmp_path, case):
    rows, metadata, message = BAD[case]
    with pytest.raises(AuditError, match=message):
        scored(tmp_path, rows, metadata=metadata)
    assert not (tmp_path / "scores.parquet").exists()


def test_a_file_that_is_not_there_or_no_parquet_is_named(tmp_path):
    with pytest.raises(AuditError, match="is not there"):
        score.run(tmp_path / "none.parquet", tmp_path / "out.parquet")
    (tmp_path / "junk.parquet").write_text("junk")
    with pytest.raises(AuditError, match=r"junk\.parquet"):
        score.run(tmp_path / "junk.parquet", tmp_path / "out.parquet")


def test_a_decision_file_without_rows_scores_nothing(tmp_path):
    schema = decisions_schema(["r"])
    write_table(tmp_path / "d.parquet", schema.empty_table(), schema, {"cell": CELL})
    score.run(tmp_path / "d.parquet", tmp_path / "out.parquet")
    table = read_table(tmp_path / "out.parquet", SCORES, "scores")
    assert all(value is None or value == 0 for name in ("n", "f1") for value in table[name].to_pylist())


def test_concatenation_keeps_every_row_once(table_7, tmp_path):
    score.run(table_7, tmp_path / "a.parquet")
    other = write_decisions(
        tmp_path / "d.parquet", [row("s", 1, "yes", r="yes")], cell=CELL | {"model": "other"}
    )
    score.run(other, tmp_path / "b.parquet")
    concatenate_scores.run([tmp_path / "a.parquet", tmp_path / "b.parquet"], tmp_path / "all.parquet")
    together = read_table(tmp_path / "all.parquet", SCORES, "scores").to_pylist()
    parts = [
        r for name in "ab" for r in read_table(tmp_path / f"{name}.parquet", SCORES, "scores").to_pylist()
    ]
    assert together == parts
    with pytest.raises(AuditError, match="two score files hold"):
        concatenate_scores.run([tmp_path / "a.parquet"] * 2, tmp_path / "all.parquet")
    with pytest.raises(AuditError, match="no score files"):
        concatenate_scores.run([], tmp_path / "all.parquet")
