"""The authors' 9,000 published decisions, counted and printed: Tables 1, 2, 7 and 13 and the last rates of Figure 4."""

import json
from fractions import Fraction

import pytest

from readout_audit.figures.running import running_rate
from readout_audit.stages import measure_gap, score
from readout_audit.tables import registry

from .paper_run import EIGHT, LLAVA, SPLITS, TRANSITIONS, TWO, run_of, write_decisions
from .test_core_tables import TABLE_2, cells

PUBLISHED = LLAVA._replace(source="published")


@pytest.fixture(scope="module")
def run(shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    rows = []
    for split in SPLITS:
        path = shared / "mirror" / "published" / "experiments" / f"pope_{split}_2tok_vs_8tok.json"
        for record in json.loads(path.read_text(encoding="utf-8"))["results"]:
            rows.append(
                {
                    "dataset": PUBLISHED.dataset,
                    "split": split,
                    "question_id": str(record["question_id"]),
                    "label": record["label"],
                    "first_token_id": record["top_token_id"],
                    "order_known": True,
                    TWO: record["pred_2tok"],
                    EIGHT: record["pred_8tok"],
                }
            )
    decisions = write_decisions(folder, rows, PUBLISHED)
    score.run(decisions, folder / "scores.parquet")
    measure_gap.run(decisions, folder / "transitions.parquet", folder / "gap.parquet", [(EIGHT, TWO)])
    return run_of(
        decisions=(decisions,),
        scores=folder / "scores.parquet",
        transitions=(folder / "transitions.parquet",),
        gap=(folder / "gap.parquet",),
    )


def test_table_1(run):
    found = cells(registry.get("table_01_first_tokens")(run), by=["token id"])
    assert {token[0] for token, row in found.items() if row["total"] != "0"} == {"3869", "1939", "all"}
    assert [found["3869",][split] for split in SPLITS] == ["1356", "1303", "1234"]


def test_table_2(run):
    for split, row in cells(registry.get("table_02_protocols")(run), by=["split"]).items():
        assert " ".join(list(row.values())[8:]) == TABLE_2[split[0]]


def test_table_7_cell_by_cell(run):
    found = cells(registry.get("table_07_transitions")(run), by=["split", "label"])
    for split, by_label in TRANSITIONS.items():
        for label, counts in by_label.items():
            row = found[split, label]
            assert [int(row[move]) for move in ("yes→yes", "yes→no", "no→yes", "no→no")] == list(counts)
            assert row["left out"] == "0"


def test_table_13(run):
    found = cells(registry.get("table_13_confusion")(run), by=["split"])
    assert [int(found["random",][name]) for name in ("TP", "FP", "TN", "FN")] == [1191, 43, 1457, 309]


def test_the_yes_rate_at_question_600_is_not_yet_the_one_it_settles_at(run):
    # The paper: 0.452 by question 600. The stream itself: 275/600, which is 0.458.
    (decisions,) = run.decisions.values()
    rows = decisions.rows
    curve = running_rate(rows.loc[rows["split"] == "adversarial", EIGHT])
    assert curve is not None
    assert curve.rate[599] == 275 / 600
    assert curve.last == Fraction(1356, 3000)
