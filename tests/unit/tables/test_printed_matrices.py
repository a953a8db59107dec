"""Every printed row of scores against the matrices that the paper's own prose, or a hand count, gives it."""

import pytest

from readout_audit.tables import registry

from .paper_run import run_of


@pytest.fixture(scope="module")
def table(root):
    return registry.get("table_printed_matrices")(run_of(claims=root / "resources/paper/numbers.csv"))


@pytest.fixture(scope="module")
def rows(table):
    names = [column.heading for column in table.columns]
    return {(row[0], row[1]): dict(zip(names, row, strict=True)) for row in table.texts()}


def test_rows_stand_in_the_order_of_the_papers_tables(table):
    sections = list(dict.fromkeys(row[0] for row in table.rows))
    assert sections == ["Table 2", "Table 4", "Table 8", "Table 11", "Table 13", "Figure 2"]


@pytest.mark.parametrize(
    ("model", "readout", "split", "matrix"),
    [
        # With the authors' precision, recall and yes-rate every row has exactly one (TP, FP).
        ("llava-1.6-mistral-7b", "dynamic single-token", "adversarial", "(1334, 297)"),
        ("llava-1.6-mistral-7b", "dynamic single-token", "random", "(1330, 73)"),
        ("mplug-owl2-llama2-7b", "two-token", "adversarial", "(1421, 744)"),
        ("mplug-owl2-llama2-7b", "eight-token", "popular", "(1344, 390)"),
        ("instructblip-vicuna-7b", "two-token", "random", "(1475, 900)"),
        ("qwen2-vl-7b-instruct", "eight-token", "adversarial", "(0, 1)"),
        ("qwen2-vl-7b-instruct", "dynamic single-token", "popular", "(1161, 46)"),
    ],
)
def test_table_4_is_fixed_by_the_results_file(rows, model, readout, split, matrix):
    row = rows["Table 4", f"{readout} readout, {model}, {split}"]
    assert (row["matrices that give: all of it"], row["(TP, FP)"]) == ("1", matrix)
    assert int(row["matrices that give: F1 alone"]) > 1


def test_f1_alone_says_how_many_matrices_fit(rows):
    row = rows["Table 4", "eight-token readout, llava-1.5-7b, adversarial"]
    # 2TP / (TP + FP + 1500) prints 0.8221: counted one by one over TP and FP.
    fits = sum(0.82205 <= 2 * tp / (tp + fp + 1500) <= 0.82215 for tp in range(1501) for fp in range(1501))
    assert row["matrices that give: F1 alone"] == row["matrices that give: all of it"] == str(fits)
    assert (row["(TP, FP)"], row["printed: P"]) == ("several", "–")


def test_rows_without_a_matrix_say_what_cannot_hold_together(rows):
    impossible = {key for key, row in rows.items() if row["(TP, FP)"] == "none"}
    assert len(impossible) == 6
    assert {section for section, _ in impossible} == {"Table 8"}
    row = rows["Table 8", "CLS similarity, eight-token rule, adversarial"]
    assert "precision 0.8963 and recall 0.7460 have no common matrix" in row["what cannot hold together"]


def test_the_first_500_have_250_of_each_label(rows):
    key = "dynamic single-token readout, native chat template, first 500 adversarial questions, llava-1.6-mistral-7b"
    row = rows["Table 11", key]
    # 197 / 207 = 0.9517 and 197 / 250 = 0.788.
    assert (row["questions of each label"], row["(TP, FP)"]) == ("250", "(197, 10)")


def test_printed_cells_are_held_against_the_label_counts(rows):
    assert rows["Table 13", "eight-token rule, random"]["(TP, FP)"] == "(1191, 43)"
