"""Two runs, question by question."""

import csv
import json
from pathlib import Path

import pytest
from scores.decision_files import row
from scores.published import write_published
from typer import Typer
from typer.testing import CliRunner

from compare.runs import TEMPLATE, answer, made_settings, write_cell, write_manifest, write_records
from readout_audit.compare.cells import match_cells, one_pair
from readout_audit.compare.cli import compare
from readout_audit.compare.comparison import Comparison, compare_runs
from readout_audit.compare.output import as_json, as_lines, flips_csv, scores_csv
from readout_audit.compare.pairing import OTHER_PROMPT, REWORDED, SAME
from readout_audit.errors import AuditError
from readout_audit.report.run_folder import find_run

LIMIT = 2 * 2**-6  # two steps of fp16 between 16 and 32


def compared(root: Path, *runs: str, **options: bool) -> Comparison:
    first, second = (find_run(run, root) for run in runs)
    return compare_runs(first, second, **options)


def two_runs(root: Path) -> Comparison:
    """Five questions: one flip that is a near-tie, one that is not, one to unparsed, two alike."""
    a = [
        answer("s", 1, "yes", "yes", 0.01),
        answer("s", 2, "no", "no", -1.0),
        answer("s", 3, "yes", "yes", 3.0),
        answer("s", 4, "no", "no", -2.0),
        answer("s", 5, "yes", "no", -4.0),
    ]
    b = [
        answer("s", 1, "yes", "no", -0.02),
        answer("s", 2, "no", "yes", 1.0),
        answer("s", 3, "yes", "yes", 3.0),
        answer("s", 4, "no", "no", -2.5),
        answer("s", 5, "yes", "unparsed", None),
    ]
    write_cell(root, "a", a)
    write_cell(root, "b", b)
    return compared(root, "a", "b")


def test_flips_are_counted_with_their_margins(tmp_path: Path):
    (cell,) = two_runs(tmp_path).cells
    (flips,) = cell.flips
    assert (flips.shared, flips.differing, flips.yes_to_no, flips.no_to_yes) == (5, 3, 1, 1)
    assert flips.limit == LIMIT
    assert flips.near == 1  # |0.01| and |-0.02| are within 0.03125; |±1| are not; no margin is not
    # Shifts of the four with both margins: 0.03, 2, 0, 0.5; median (0.03 + 0.5) / 2.
    assert flips.moved == 3
    assert flips.median_shift == pytest.approx(0.265, abs=1e-6)
    assert flips.largest_shift == 2.0


def test_flips_are_listed(tmp_path: Path):
    (cell,) = two_runs(tmp_path).cells
    listed = [(flip.question_id_a, flip.answer_a, flip.answer_b, flip.near_tie) for flip in cell.listed]
    assert listed == [("1", "yes", "no", True), ("2", "no", "yes", False), ("5", "no", "unparsed", False)]
    assert cell.listed[2].margin_a == -4.0
    assert cell.listed[2].margin_b is None


def test_scores_stand_side_by_side(tmp_path: Path):
    (cell,) = two_runs(tmp_path).cells
    (sides,) = cell.sides
    # A: TP 2, FP 0, TN 2, FN 1. B: TP 1, FP 1, TN 1, FN 1 and one unparsed positive.
    assert tuple(sides.all_a)[:5] == (2, 0, 2, 1, 0)
    assert tuple(sides.all_b)[:5] == (1, 1, 1, 1, 1)
    assert sides.shared_a == sides.all_a
    text = "\n".join(as_lines(two_runs(tmp_path)))
    assert "F1 0.8000 | 0.4000 (−40.00 points)" in text  # 4/5 and 2/5
    assert "3 of 5 (60.0%) answered differently; yes→no 1, no→yes 1; 1 of them near-ties" in text


def test_the_same_run_twice_has_nothing_to_tell(tmp_path: Path):
    write_cell(tmp_path, "a", [answer("s", 1, "yes", "yes", 1.0), answer("t", 2, "no", "no", -1.0)])
    comparison = compared(tmp_path, "a", "a")
    (cell,) = comparison.cells
    assert cell.differs == ()
    assert cell.listed == ()
    assert all(flips.differing == 0 and flips.moved == 0 for flips in cell.flips)
    assert "nothing that is recorded differs" in "\n".join(as_lines(comparison))


def test_what_was_set_differently_is_named(tmp_path: Path):
    rows = [answer("s", 1, "yes", "yes", 1.0)]
    for run, precision, engine in (("a", "fp16", "sequential"), ("b", "bf16", "batched")):
        settings = made_settings(precision, engine={"name": engine})
        readouts = {"r": {"ids": {"yes": [1 if run == "a" else 7], "no": [2]}}}
        write_cell(tmp_path, run, rows, precision=precision, settings=settings, readouts=readouts)
        cell = f"d/m/{precision}/t"
        write_records(tmp_path, run, {rows[0]["uid"]: "p"}, cell, versions={"torch": "2"}, model="m")
        write_manifest(tmp_path, run, f"gpu of {run}", cell)
    (cell,) = compared(tmp_path, "a", "b").cells
    assert set(cell.differs) == {
        ("precision", "fp16", "bf16"),
        ("settings.precision", "fp16", "bf16"),
        ("settings.compute_dtype", "float16", "bfloat16"),
        ("settings.engine.name", "sequential", "batched"),
        ("readout.r.ids.yes", "1", "7"),
        ("device", "gpu of a", "gpu of b"),
    }
    assert cell.flips[0].limit == 2 * 2**-3  # the coarser arithmetic of the two


def test_a_release_with_other_spelling_is_not_pooled(tmp_path: Path):
    spelt = answer("s", 1, "yes", "yes", 1.0, item="apple")
    misspelt = {
        **answer("s", 1, "yes", "no", -1.0, item="apple"),
        "question": "Is there an apple in the imange?",
    }
    misspelt["uid"] = "0" * 32
    same = answer("s", 2, "no", "no", -1.0, item="cup")
    write_cell(tmp_path, "new", [spelt, same])
    write_cell(tmp_path, "old", [misspelt, same], dataset="d2")
    (cell,) = compared(tmp_path, "new", "old").cells
    (rows,) = cell.rows
    assert (rows.same, rows.reworded, rows.only_a, rows.only_b) == (1, 1, 0, 0)
    by_group = {flips.group: (flips.shared, flips.differing) for flips in cell.flips}
    assert by_group == {SAME: (1, 0), REWORDED: (1, 1)}
    assert ("dataset", "d", "d2") in cell.differs
    # F1 on the question asked alike is 0/0 there: one negative answered no.
    assert cell.sides[0].shared_a.f1 is None
    assert "on the questions asked alike undefined | undefined (undefined points)" in "\n".join(
        as_lines(compared(tmp_path, "new", "old"))
    )


def test_question_ids_join_nothing(tmp_path: Path):
    a = [answer("s", 1, "yes", "yes", item="cat"), answer("s", 2, "no", "no", item="dog")]
    b = [answer("s", 2, "yes", "yes", item="cat"), answer("s", 1, "no", "no", item="dog")]
    write_cell(tmp_path, "a", a)
    write_cell(tmp_path, "b", b)
    (cell,) = compared(tmp_path, "a", "b").cells
    assert (cell.rows[0].same, cell.flips[0].differing) == (2, 0)


def test_labels_that_differ_are_counted_and_each_run_keeps_its_own(tmp_path: Path):
    write_cell(tmp_path, "a", [answer("s", 1, "yes", "yes")])
    write_cell(tmp_path, "b", [answer("s", 1, "no", "yes")])
    (cell,) = compared(tmp_path, "a", "b").cells
    assert cell.rows[0].labels_differ == 1
    assert (cell.sides[0].shared_a.tp, cell.sides[0].shared_b.fp) == (1, 1)
    assert "1 labelled differently" in "\n".join(as_lines(compared(tmp_path, "a", "b")))


def test_questions_asked_twice_or_by_one_run_have_no_partner(tmp_path: Path):
    twice = [answer("s", 1, "yes", "yes", item="cat"), answer("s", 2, "yes", "no", item="cat")]
    write_cell(tmp_path, "a", [*twice, answer("s", 3, "no", "no", item="cup"), answer("only", 4, "no", "no")])
    write_cell(
        tmp_path, "b", [answer("s", 1, "yes", "yes", item="cat"), answer("s", 3, "no", "no", item="cup")]
    )
    (cell,) = compared(tmp_path, "a", "b").cells
    (rows,) = cell.rows
    assert (rows.same, rows.only_a, rows.only_b) == (1, 2, 1)
    assert cell.only_splits == ("only",)


def test_readouts_of_one_run_are_named(tmp_path: Path):
    write_cell(tmp_path, "a", [{**answer("s", 1, "yes", "yes"), "extra": "no"}])
    write_cell(tmp_path, "b", [answer("s", 1, "yes", "yes")])
    (cell,) = compared(tmp_path, "a", "b").cells
    assert cell.only_readouts == ("extra",)
    assert {flips.readout for flips in cell.flips} == {"r"}
    assert "one run alone has readout extra" in "\n".join(as_lines(compared(tmp_path, "a", "b")))


class TestPrompts:
    ROWS = (answer("s", 1, "yes", "yes", 1.0, item="cat"), answer("s", 2, "no", "no", -1.0, item="dog"))

    def test_other_templates_are_refused(self, tmp_path: Path):
        write_cell(tmp_path, "a", list(self.ROWS))
        other = {"template": {**TEMPLATE, "suffix": " Answer yes or no only."}}
        write_cell(tmp_path, "b", list(self.ROWS), settings=other)
        with pytest.raises(AuditError, match=r"asked no question with the same prompt .*--other-prompts"):
            compared(tmp_path, "a", "b")
        (cell,) = compared(tmp_path, "a", "b", other_prompts=True).cells
        assert {flips.group for flips in cell.flips} == {OTHER_PROMPT}
        assert cell.rows[0].same == 0

    def test_exact_prompts_decide_question_by_question(self, tmp_path: Path):
        write_cell(tmp_path, "a", list(self.ROWS))
        write_cell(tmp_path, "b", list(self.ROWS))
        uids = [one["uid"] for one in self.ROWS]
        write_records(tmp_path, "a", dict.fromkeys(uids, "Q: x\nA:"))
        write_records(tmp_path, "b", {uids[0]: "Q: x\nA:", uids[1]: "Q: x A:"})
        (cell,) = compared(tmp_path, "a", "b").cells
        assert (cell.rows[0].same, cell.rows[0].other_prompt) == (1, 1)
        assert "1 question asked alike, 1 with another prompt" in "\n".join(
            as_lines(compared(tmp_path, "a", "b"))
        )

    def test_prompts_that_all_differ_are_quoted(self, tmp_path: Path):
        write_cell(tmp_path, "a", list(self.ROWS))
        write_cell(tmp_path, "b", list(self.ROWS))
        uids = [one["uid"] for one in self.ROWS]
        write_records(tmp_path, "a", dict.fromkeys(uids, "one\n"))
        write_records(tmp_path, "b", dict.fromkeys(uids, "two"))
        with pytest.raises(AuditError, match=r'\("one\\n" and "two"\)'):
            compared(tmp_path, "a", "b")

    def test_unrecorded_prompts_go_by_the_template_name(self, tmp_path: Path):
        write_cell(tmp_path, "a", list(self.ROWS), settings={})
        write_cell(tmp_path, "b", list(self.ROWS), settings={}, template="t2")
        with pytest.raises(AuditError, match="template t and template t2"):
            compared(tmp_path, "a", "b")


def test_questions_that_nobody_shares_are_refused(tmp_path: Path):
    write_cell(tmp_path, "a", [answer("s", 1, "yes", "yes", item="cat")])
    write_cell(tmp_path, "b", [answer("s", 1, "yes", "yes", item="dog")])
    write_cell(tmp_path, "c", [answer("other", 1, "yes", "yes", item="cat")])
    for other in "bc":
        with pytest.raises(AuditError, match="share no question of a common split"):
            compared(tmp_path, "a", other)


def test_questions_that_are_all_reworded_are_refused(tmp_path: Path):
    one = answer("s", 1, "yes", "yes", item="cat")
    write_cell(tmp_path, "a", [one])
    write_cell(tmp_path, "b", [{**one, "uid": "0" * 32, "question": "Can you see a cat?"}])
    with pytest.raises(AuditError, match="never in the same words"):
        compared(tmp_path, "a", "b")


def test_printed_counts_are_refused(tmp_path: Path):
    write_cell(tmp_path, "a", [row("s", 1, "yes", image=None, r="yes")], source="counts")
    with pytest.raises(AuditError, match=r"this source \(counts\) does not know which question a row is"):
        compared(tmp_path, "a", "a")


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        (["d/m/p/t"], ["d/m/p/t"], (("d/m/p/t", "d/m/p/t"),)),
        (["d/m/nf4/t"], ["d/m/bf16/t"], (("d/m/nf4/t", "d/m/bf16/t"),)),
        (["d1/m/p/t"], ["d2/m/p/t"], (("d1/m/p/t", "d2/m/p/t"),)),
        # The equal ones first, then what is left.
        (
            ["d/m/nf4/t", "d/m/fp16/t"],
            ["d/m/fp16/t", "d/m/int8/t"],
            (("d/m/nf4/t", "d/m/int8/t"), ("d/m/fp16/t",) * 2),
        ),
        # Two models, each with its own partner at another precision.
        (["d/m/a/t", "d/n/a/t"], ["d/n/b/t", "d/m/b/t"], (("d/m/a/t", "d/m/b/t"), ("d/n/a/t", "d/n/b/t"))),
        (["d/m/p/t"], ["d/n/p/t"], (("d/m/p/t", "d/n/p/t"),)),
    ],
)
def test_cells_find_their_partners(first: list[str], second: list[str], pairs: tuple):
    assert match_cells(first, second).pairs == pairs


def test_what_is_in_doubt_is_not_paired():
    matched = match_cells(["d/m/p/t", "d/m/a/t"], ["d/m/p/t", "d/m/b/t", "d/m/c/t"])
    assert matched.pairs == (("d/m/p/t", "d/m/p/t"),)
    assert (matched.only_a, matched.only_b) == (("d/m/a/t",), ("d/m/b/t", "d/m/c/t"))
    with pytest.raises(AuditError, match="name the two with --cells"):
        match_cells(["d/m/a/t"], ["d/m/b/t", "d/m/c/t"])
    with pytest.raises(AuditError, match="--cells: x is not there"):
        one_pair(("d/m/a/t", "x"), ["d/m/a/t"], ["d/m/b/t"])


def test_command_prints_and_writes(tmp_path: Path):
    two_runs(tmp_path)
    app = Typer()
    app.command()(compare)
    output = tmp_path / "out"
    words = ["a", str(tmp_path / "results" / "b"), "--root", str(tmp_path), "--output", str(output)]
    result = CliRunner().invoke(app, [*words, "--cells", "d/m/fp16/t", "d/m/fp16/t"])
    assert result.exit_code == 0
    assert "A = a, B = b" in result.output
    flips = list(csv.DictReader((output / "flips.csv").open()))
    assert [one["near_tie"] for one in flips] == ["yes", "no", "no"]
    assert flips[2]["margin_b"] == ""
    scores = list(csv.DictReader((output / "scores.csv").open()))
    assert [(one["rows"], one["f1_a"], one["f1_b"]) for one in scores] == [
        ("all", "0.800000", "0.400000"),
        ("asked_alike", "0.800000", "0.400000"),
    ]
    content = json.loads((output / "compare.json").read_text())
    assert content["cells"][0]["flips"][0]["near"] == 1


def test_outputs_do_not_depend_on_the_run(tmp_path: Path):
    first, second = two_runs(tmp_path), two_runs(tmp_path)
    assert flips_csv(first) == flips_csv(second)
    assert scores_csv(first) == scores_csv(second)
    assert as_json(first) == as_json(second)


def test_published_adversarial_and_popular_as_two_runs(shared: Path, tmp_path: Path):
    """Finding 2: two sweeps of one model, renamed to one split, share 2,245 correctly spelt questions."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from readout_audit.contracts import decisions_schema
    from readout_audit.fileio import table_metadata, write_table

    whole = pq.read_table(write_published(shared / "mirror", tmp_path / "d.parquet"))
    schema = decisions_schema(["legacy_8tok", "legacy_2tok"])
    for split in ("adversarial", "popular"):
        rows = whole.filter(pc.equal(whole["split"], split)).to_pylist()
        table = whole.from_pylist([{**one, "split": "s"} for one in rows], schema=schema)
        path = tmp_path / "results" / split / "decisions" / "coco-2023-10" / "m" / "nf4" / "t.parquet"
        write_table(path, table, schema, table_metadata(whole))
    (cell,) = compared(tmp_path, "adversarial", "popular").cells
    (rows,) = cell.rows
    assert (rows.same, rows.reworded) == (2245, 43)
    counted = {(flips.readout, flips.group): flips.differing for flips in cell.flips}
    assert counted["legacy_8tok", SAME] == 68
    assert counted["legacy_8tok", REWORDED] == 5
    eight = {flip.uid for flip in cell.listed if flip.readout == "legacy_8tok" and flip.group == SAME}
    two = {flip.uid for flip in cell.listed if flip.readout == "legacy_2tok" and flip.group == SAME}
    assert (
        len(two - eight) == 72
    )  # "differ in the eight-token answer on 68 and in the two-token answer alone on 72 more"
