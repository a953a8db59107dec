from collections import Counter

import pyarrow.parquet as pq
import pytest

from readout_audit.claims.numbers import COLUMNS, read_numbers
from readout_audit.contracts import decisions_schema, readouts_of
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.sources.counts import PairedCount, marginal_counts, paired_counts, paired_decisions
from readout_audit.sources.readouts import describe_readout
from readout_audit.stages import decisions_from_counts

# Table 7 of the paper: split -> label -> (yes>yes, no>yes, no>no); yes>no is zero everywhere.
TABLE_7 = {
    "adversarial": {"yes": (1174, 264, 62), "no": (182, 660, 658)},
    "popular": {"yes": (1191, 250, 59), "no": (112, 567, 821)},
    "random": {"yes": (1191, 250, 59), "no": (43, 448, 1009)},
}


# Finding of the audit: each printed row of Table 4 has exactly one matrix (tp, fp); None where F1 stands alone.
ONE_MATRIX = {
    "llava-1.6-mistral-7b": {"dynamic_single": [(1334, 297), (1330, 141), (1330, 73)], "string_parse": None},
    "mplug-owl2-llama2-7b": {
        "legacy_2tok": [(1421, 744), (1421, 605), (1421, 436)],
        "legacy_8tok": [(1343, 514), (1344, 390), (1344, 243)],
    },
    "instructblip-vicuna-7b": {
        "legacy_2tok": [(1481, 1206), (1475, 1079), (1475, 900)],
        "dynamic_single": [(1277, 344), (1268, 197), (1268, 109)],
        "string_parse": [(1500, 1500)] * 3,
    },
    "qwen2-vl-7b-instruct": {
        "legacy_2tok": [(1493, 1481), (1500, 1497), (1500, 1500)],
        "dynamic_single": [(1178, 108), (1161, 46), (1161, 17)],
        "legacy_8tok": [(0, 1), (0, 0), (0, 0)],
    },
}


@pytest.fixture
def numbers(root):
    return root / "resources/paper/numbers.csv"


@pytest.fixture
def written(numbers, tmp_path):
    output = tmp_path / "d.parquet"
    decisions_from_counts.run(numbers, "llava-1.5-7b", output)
    return read_table(output, decisions_schema(["legacy_2tok", "legacy_8tok"]), "the decisions")


def test_rows_realise_table_7_cell_by_cell(written):
    rows = written.to_pylist()
    counted = Counter((r["split"], r["label"], r["legacy_8tok"], r["legacy_2tok"]) for r in rows)
    expected = {}
    for split, labels in TABLE_7.items():
        for label, (yes_yes, no_yes, no_no) in labels.items():
            expected |= {
                (split, label, "yes", "yes"): yes_yes,
                (split, label, "no", "yes"): no_yes,
                (split, label, "no", "no"): no_no,
            }
    assert counted == expected
    assert len(rows) == 9000


def test_first_tokens_are_table_1s(written):
    tokens = Counter((r["split"], r["first_token_id"]) for r in written.to_pylist())
    assert tokens == {
        ("adversarial", 3869): 1356,
        ("adversarial", 1939): 1644,
        ("popular", 3869): 1303,
        ("popular", 1939): 1697,
        ("random", 3869): 1234,
        ("random", 1939): 1766,
    }


def test_made_rows_claim_no_question_and_no_order(written):
    rows = written.to_pylist()
    assert {r["uid"] for r in rows} == {r["image"] for r in rows} == {r["question"] for r in rows} == {None}
    assert {r["order_known"] for r in rows} == {False}
    assert {r["legacy_8tok.margin"] for r in rows} == {r["legacy_2tok.tie"] for r in rows} == {None}
    ids = [r["question_id"] for r in rows if r["split"] == "random"]
    assert ids == [str(number) for number in range(1, 3001)]


@pytest.mark.parametrize("model", ["llava-1.5-7b", *ONE_MATRIX])
def test_only_the_splits_of_the_run_are_made(numbers, tmp_path, model):
    output = tmp_path / "d.parquet"
    decisions_from_counts.run(numbers, model, output, splits=["popular"])
    assert Counter(pq.read_table(output)["split"].to_pylist()) == {"popular": 3000}
    with pytest.raises(AuditError, match="hard"):
        decisions_from_counts.run(numbers, model, output, splits=["hard"])


def test_metadata_names_cell_ids_and_pieces(written):
    metadata = table_metadata(written)
    assert metadata["cell"] == {
        "dataset": "coco-2023-10",
        "model": "llava-1.5-7b",
        "precision": "nf4",
        "template": "authors",
        "source": "counts",
    }
    assert metadata["joint"] is True
    assert readouts_of(written) == ["legacy_2tok", "legacy_8tok"]
    eight = metadata["readouts"]["legacy_8tok"]
    assert eight["ids"] == {"yes": [3582, 3869, 4874, 8241], "no": [694, 1217, 1939, 3782]}
    assert metadata["readouts"]["legacy_2tok"]["pieces"] == {"3582": "yes", "1217": "no"}


def test_model_without_printed_transitions_is_refused(numbers):
    with pytest.raises(AuditError, match="unheard-of: the printed numbers have no paired counts"):
        paired_counts(read_numbers(numbers), "unheard-of")
    with pytest.raises(AuditError, match="unheard-of: no scores of it are printed"):
        marginal_counts(read_numbers(numbers), "unheard-of")


@pytest.mark.parametrize("model", ONE_MATRIX)
def test_printed_scores_fix_one_matrix_per_readout(numbers, tmp_path, model):
    output = tmp_path / "d.parquet"
    decisions_from_counts.run(numbers, model, output)
    table = pq.read_table(output)
    metadata = table_metadata(table)
    assert metadata["joint"] is False
    for readout, cells in ONE_MATRIX[model].items():
        if cells is None:
            assert metadata["readouts"][readout]["available"] is False
            assert (
                "138 confusion matrices give the printed f1 on adversarial"
                in metadata["readouts"][readout]["why_not"]
            )
            assert table[readout].null_count == len(table)
            continue
        for split, (tp, fp) in zip(("adversarial", "popular", "random"), cells, strict=True):
            rows = [r for r in table.to_pylist() if r["split"] == split]
            called = Counter(r["label"] for r in rows if r[readout] == "yes")
            assert (called["yes"], called["no"], len(rows)) == (tp, fp, 3000)
            assert Counter(r["label"] for r in rows) == {"yes": 1500, "no": 1500}


def test_contradictory_scores_make_no_decisions(numbers, tmp_path):
    text = numbers.read_text(encoding="utf-8").replace(",0.8179,4,", ",0.8180,4,")
    (tmp_path / "n.csv").write_text(text, encoding="utf-8")
    with pytest.raises(
        AuditError, match="adversarial, dynamic_single: no confusion matrix gives the printed"
    ):
        decisions_from_counts.run(tmp_path / "n.csv", "llava-1.6-mistral-7b", tmp_path / "d.parquet")


def test_pieces_are_given_only_where_the_vocabulary_is_llamas():
    assert describe_readout("legacy_2tok", "s", "llava-1.6-mistral-7b")["pieces"] == {}
    assert describe_readout("legacy_2tok", "s", "llava-1.6-mistral-7b")["ids"] == {
        "yes": [3582],
        "no": [1217],
    }


def test_a_count_of_zero_makes_no_row():
    counts = [PairedCount("random", "yes", "no", "yes", 2), PairedCount("random", "yes", "yes", "no", 0)]
    assert paired_decisions(counts, "d")["legacy_2tok"].to_pylist() == ["yes", "yes"]


def test_numbers_file_is_refused_for_each_kind_of_fault(tmp_path):
    columns = ",".join(COLUMNS)

    def refused(*rows, header=columns):
        path = tmp_path / "n.csv"
        path.write_text("\n".join([header, *rows]) + "\n")
        with pytest.raises(AuditError) as caught:
            read_numbers(path)
        return str(caught.value)

    def row(identity="a", printed="0.50", decimals="2", origin="paper"):
        return f"{identity},Table 1,claim,{printed},{decimals},{origin},,,,,,,"

    assert "row 2: '0.5' does not have 2 decimals" in refused(row(printed="0.5"))
    assert "row 2: origin must be one of" in refused(row(origin="hearsay"))
    assert "row 2: decimals must be a whole number or empty" in refused(row(decimals="two"))
    assert "the id a stands twice" in refused(row(), row())
    assert "row 2: the number of cells is not 13" in refused("a,b")
    assert "the columns must be id, section" in refused(row(), header="id,claim")
    with pytest.raises(AuditError, match="cannot be read"):
        read_numbers(tmp_path / "none.csv")
