"""Two releases of the same questions, small enough to count by hand."""

import csv
import dataclasses
from pathlib import Path

from compare.runs import answer, write_cell
from readout_audit.compare.releases import CHANGED, RELEASES, confusion
from readout_audit.fileio import read_table
from readout_audit.report.releases import counts, examples, name, pairs, sentences
from readout_audit.scores.confusion import Confusion
from readout_audit.stages import compare_releases
from readout_audit.tables import registry
from readout_audit.tables.inputs import Options, RunTables, Sources


def cell(root: Path, release: str) -> Path:
    return root / f"results/run/decisions/{release}/m/fp16/t.parquet"


def reworded(one: dict, number: int) -> dict:
    """The same picture and object, misspelt: another text, so another uid."""
    return one | {"question": one["question"].replace("image?", "imange?"), "uid": f"{number:032d}"}


def compared(root: Path, first: list[dict], second: list[dict]) -> tuple[list[dict], list[dict], Path]:
    write_cell(root, "run", first, dataset="old")
    write_cell(root, "run", second, dataset="new")
    outputs = [root / name for name in ("releases.parquet", "changes.parquet", "changes.csv")]
    compare_releases.run([(cell(root, "old"), cell(root, "new"))], *outputs)
    return (
        read_table(outputs[0], RELEASES, "r").to_pylist(),
        read_table(outputs[1], CHANGED, "c").to_pylist(),
        outputs[2],
    )


def two_releases(root: Path) -> tuple[list[dict], list[dict], Path]:
    """One question shared, two misspelt in the first (one changes its answer, nearly tied), one in the second alone."""
    apple = answer("s", 1, "yes", "yes", 3.0, item="apple")
    orange = answer("s", 2, "yes", "no", -0.01, item="orange")
    cup = answer("s", 3, "no", "no", -2.0, item="cup")
    fork = answer("s", 4, "no", "yes", 2.0, item="fork")
    mended = orange | {"r": "yes", "r.margin": 0.02}
    return compared(root, [reworded(apple, 1), reworded(orange, 2), cup], [apple, mended, cup, fork])


def test_spelling_answers_and_scores_are_counted(tmp_path: Path):
    (row,), changes, listing = two_releases(tmp_path)
    assert (row["release_a"], row["release_b"], row["split"], row["readout"]) == ("old", "new", "s", "r")
    assert (row["n_a"], row["n_b"], row["same"], row["reworded"]) == (3, 4, 1, 2)
    assert (row["misspelt_a"], row["misspelt_b"], row["only_a"], row["only_b"]) == (2, 0, 0, 1)
    assert (row["same_changed"], row["reworded_changed"]) == (0, 1)
    assert (row["reworded_yes_to_no"], row["reworded_no_to_yes"], row["reworded_near"]) == (0, 1, 1)
    assert confusion(row, "a") == Confusion(tp=1, fp=0, tn=1, fn=1)
    assert confusion(row, "b") == Confusion(tp=2, fp=1, tn=1, fn=0)
    assert confusion(row, "a", "reworded_") == Confusion(tp=1, fp=0, tn=0, fn=1)
    assert confusion(row, "b", "reworded_") == Confusion(tp=2, fp=0, tn=0, fn=0)
    (change,) = changes
    assert (change["object"], change["answer_a"], change["answer_b"], change["near_tie"]) == (
        "orange",
        "no",
        "yes",
        True,
    )
    assert change["question_a"].endswith("imange?") and change["question_b"].endswith("image?")
    with listing.open(encoding="utf-8", newline="") as stream:
        assert [line["object"] for line in csv.DictReader(stream)] == ["orange"]


def test_releases_that_agree_have_an_empty_list(tmp_path: Path):
    rows = [answer("s", 1, "yes", "yes", 1.0), answer("s", 2, "no", "no", -1.0)]
    (row,), changes, listing = compared(tmp_path, rows, rows)
    assert (row["same"], row["reworded"], row["same_changed"], changes) == (2, 0, 0, [])
    assert listing.read_text(encoding="utf-8").count("\n") == 1
    said = sentences([row], ["r"])
    assert said == (
        "On s all 2 shared questions are asked in the same words.",
        "Questions in the same words are answered alike, under every readout and on every split.",
    )


def test_a_question_in_the_same_words_that_changes_is_said_to_be_no_one_setup(tmp_path: Path):
    one = answer("s", 1, "yes", "yes", 1.0)
    (row,), _, _ = compared(tmp_path, [one], [one | {"r": "no", "r.margin": -1.0}])
    assert "were not asked by one deterministic setup" in sentences([row], ["r"])[-1]


def test_the_page_and_the_table_say_it(tmp_path: Path):
    rows, changes, _ = two_releases(tmp_path)
    ((pair, here),) = pairs(rows).items()
    assert name(pair) == "m (fp16, t): old and new"
    said = sentences(here, ["r"])
    assert (
        said[0] == "On s, 2 of 3 (66.7%) questions are asked in other words: 2 are misspelt in old, 0 in new."
    )
    assert said[1].startswith(
        "Under r 1 of 2 (50.0%) of these are answered otherwise; F1 on s goes from 0.6667 to"
    )
    assert counts(here).rows and examples(changes, pair, ["r"]) is not None
    assert examples(changes, pair, ["another"]) is None
    sources = Sources(releases=tmp_path / "releases.parquet")
    table = registry.get("table_releases")(RunTables(sources, Options(splits=("s",))))
    shown = dict(zip([column.heading for column in table.columns], table.rows[0], strict=True))
    assert (shown["in other words: misspelt in A"], shown["in other words: near-tied"]) == (2, 1)
    assert table.texts()[0][-3:] == ["0.6667", "0.8000", "0.1333"]
    assert any("1 in B alone" in note for note in table.notes)


def test_a_release_of_another_split_order_follows_the_run(tmp_path: Path):
    rows = [answer(split, 1, "yes", "yes", 1.0, item=split) for split in ("hard", "easy")]
    compared(tmp_path, rows, rows)
    sources = Sources(releases=tmp_path / "releases.parquet")
    inputs = RunTables(sources, dataclasses.replace(Options(splits=("easy", "hard"))))
    table = registry.get("table_releases")(inputs)
    assert [row[6] for row in table.rows] == ["easy", "hard"]
