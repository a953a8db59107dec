"""The parts of the page, each against values worked out by hand."""

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scores.decision_files import row, write_decisions

from readout_audit.claims.table import STATUSES
from readout_audit.errors import AuditError
from readout_audit.report.charts import Pair, dumbbells
from readout_audit.report.claims import VERDICTS, merged, read_claims
from readout_audit.report.grid import Column, Mark, grid
from readout_audit.report.inputs import Files, RunData
from readout_audit.report.markdown_tables import read_markdown_table
from readout_audit.report.page import build_page
from readout_audit.report.pictures import read_picture
from readout_audit.report.run_folder import find_run
from readout_audit.report.scripts import scripts_table
from readout_audit.report.text import code, flat, listed, minus, of, percent, points, visible
from readout_audit.stages import concatenate_scores, score
from readout_audit.tables.base import Column as TableColumn
from readout_audit.tables.base import Table, text_column
from readout_audit.tables.render import one_line, to_markdown
from report.small_run import CELL, PAIR, READOUTS, hostile_table, make_run, write_png


def test_words_between_backticks_are_code_and_lone_backticks_stay():
    assert code("if it holds `yes` or `isn't`") == "if it holds <code>yes</code> or <code>isn&#39;t</code>"
    assert code('pieces "`" and "▁`" < 2\n') == "pieces &#34;`&#34; and &#34;▁`&#34; &lt; 2\\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ▁Yes é 中 🙂", "plain ▁Yes é 中 🙂"),
        ("a\nb\tc\r", "a\\nb\\tc\\r"),
        ("yes\u202eon", "yes[U+202E]on"),
        ("\x00\x1b[31m", "[U+0000][U+001B][31m"),
        ("\udc80", "[U+DC80]"),  # a byte of a file name that is no UTF-8
        ("\u2028\u200b", "[U+2028][U+200B]"),
    ],
)
def test_visible(text: str, shown: str):
    assert visible(text) == shown
    assert visible(shown) == shown


@given(st.text())
def test_visible_text_can_be_written_and_is_one_line(text: str):
    shown = visible(text)
    shown.encode("utf-8")
    assert len(shown.splitlines()) <= 1 or "\x85" in shown


def test_numbers_in_words():
    assert points(Fraction(1969, 32130)) == "6.13"
    assert (
        points(Fraction(-1, 8000)) == "−0.01"
    )  # -0.0125 points: the half goes away from zero at two decimals
    assert points(None) == "undefined"
    assert percent(Fraction(924, 3000)) == "30.8%"
    assert of(0, 0) == "0 of 0"
    assert of(1, 3) == "1 of 3 (33.3%)"
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"


def test_flat_leaves_no_value_out_and_no_cell_empty():
    value = {"a": {"b": [1, 2]}, "c": None, "d": [{"e": True}, [3]], "f": "", "g": {}}
    assert flat(value) == {"a.b": "1, 2", "c": "none", "d[0].e": "yes", "d[1]": "3", "f": "none", "g": "none"}


def test_a_key_with_a_space_at_its_end_is_quoted():
    assert flat({"encode": {" NO": [220, 45], "NO": [45]}}) == {'encode." NO"': "220, 45", "encode.NO": "45"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-3.42 to -1.10", "−3.42 to −1.10"),
        ("0.1033", "0.1033"),
        ("1-2", "1-2"),
        ("fp-16", "fp-16"),
        ("-", "-"),
        ("2.7e-06", "2.7e-06"),
    ],
)
def test_a_hyphen_that_begins_a_number_becomes_a_minus_sign(text: str, shown: str):
    assert minus(text) == shown


def test_grid_refuses_a_short_row():
    with pytest.raises(ValueError, match="a row has 1 cells, not 2"):
        grid((Column("a"), Column("b")), [["1"]])


def test_groups_span_their_columns():
    table = grid((Column("a"), Column("b", group="g"), Column("c", group="g"), Column("d")), [])
    assert [(group.name, group.span) for group in table.groups] == [("", 1), ("g", 2), ("", 1)]
    assert grid((Column("a"),), []).groups == ()


def test_dumbbells_place_values_on_a_common_axis():
    chart = dumbbells([Pair("x", Fraction(4, 5), Fraction(7, 10), "10.00")], ("eight", "two"))
    # Axis from 0.65 to 0.85: half a mark beyond the values, widened to the next mark.
    assert [tick.text for tick in chart.ticks] == ["0.65", "0.70", "0.75", "0.80", "0.85"]
    by_text = {tick.text: tick.x for tick in chart.ticks}
    (line,) = chart.lines
    assert line.before_x == by_text["0.80"]
    assert line.after_x == by_text["0.70"]
    assert (line.left, line.right) == ("0.7000", "0.8000")
    assert "x: eight 0.8000, two 0.7000" in chart.description


@settings(max_examples=40)
@given(st.lists(st.tuples(st.fractions(0, 1), st.fractions(0, 1)), min_size=1, max_size=5))
def test_dumbbells_stay_inside_the_picture(values: list[tuple[Fraction, Fraction]]):
    chart = dumbbells([Pair("x", a, b, "") for a, b in values], ("a", "b"))
    xs = [x for line in chart.lines for x in (line.before_x, line.after_x)] + [tick.x for tick in chart.ticks]
    assert min(xs) >= 0
    assert max(xs) <= chart.width
    assert 2 <= len(chart.ticks) <= 8
    assert all(0 < line.y < chart.height for line in chart.lines)


def test_markdown_table_comes_back_as_it_was(folder: Path):
    path = folder / "table_02_x.md"
    path.write_text(to_markdown(hostile_table()), encoding="utf-8")
    read = read_markdown_table(path)
    table = hostile_table()
    assert (read.number, read.name, read.title) == (2, "table_02_x", one_line(table.title))
    assert read.table.rows == tuple(tuple(one_line(text) for text in row) for row in table.texts())
    assert [column.name for column in read.table.columns] == [one_line(table.columns[0].name), "P", "R"]
    assert one_line(table.notes[0]) in read.table.notes


@settings(max_examples=50)
@given(st.lists(st.text(min_size=1).filter(lambda text: one_line(text)), min_size=1, max_size=4))
def test_any_text_survives_the_markdown_table(tmp_path_factory: pytest.TempPathFactory, texts: list[str]):
    path = tmp_path_factory.mktemp("t") / "t.md"
    columns = (text_column("a"), TableColumn("b", 2))
    table = Table(
        1, "t", texts[0], columns, tuple((text, Fraction(1, 3)) for text in texts), "1", (texts[-1],)
    )
    path.write_text(to_markdown(table), encoding="utf-8")
    read = read_markdown_table(path)
    assert read.table.rows == tuple((one_line(text), "0.33") for text in texts)
    assert read.title == one_line(texts[0])


def test_tables_beyond_the_paper_stand_after_its_own(tmp_path: Path):
    columns = (text_column("a"), TableColumn("b", 2))
    read = []
    for number, name in ((None, "table_best_beta"), (13, "table_13_confusion"), (2, "table_02_protocols")):
        path = tmp_path / f"{name}.md"
        path.write_text(to_markdown(Table(number, name, "words", columns, (("x", Fraction(1, 3)),), "1", ())))
        read.append(read_markdown_table(path))
    assert [one.heading for one in sorted(read, key=lambda one: one.place)] == [
        "Table 2. words",
        "Table 13. words",
        "words",
    ]


@pytest.mark.parametrize(
    "text", ["", "no table", "**Table 1.** t\n\n| a |\n", "**Table 1.** t\n\n| a |\n| - |\n| 1 | 2 |"]
)
def test_other_markdown_is_refused(folder: Path, text: str):
    path = folder / "t.md"
    path.write_text(text)
    with pytest.raises(AuditError, match=r"t\.md: .*make it again"):
        read_markdown_table(path)


def test_verdicts_are_those_of_the_claims_table():
    assert tuple(VERDICTS) == STATUSES
    assert len({verdict.mark.word for verdict in VERDICTS.values()}) == len(STATUSES)
    assert len({verdict.mark.sign for verdict in VERDICTS.values()}) == len(STATUSES)
    assert all(isinstance(verdict.mark, Mark) for verdict in VERDICTS.values())


def test_only_rows_with_one_reason_are_merged():
    base = {
        "section": "s",
        "status": "differs",
        "note": "why",
        "reproduced": "",
        "claim": "a",
        "published": "1",
    }
    rows = [
        base,
        base | {"claim": "b", "published": "2"},
        base | {"claim": "c", "note": ""},
        base | {"note": ""},
    ]
    assert [row["claim"] for row in merged(rows)] == ["a; b", "c", "a"]
    assert merged(rows)[0]["published"] == "1; 2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,section\n", "must have the columns"),
        (
            "id,section,claim,published,reproduced,decimals,status,source,note\na,b\n",
            "too many or too few cells",
        ),
        (
            "id,section,claim,published,reproduced,decimals,status,source,note\na,b,c,1,1,0,fine,s,\n",
            "unknown status 'fine'",
        ),
    ],
)
def test_other_claims_are_refused(folder: Path, text: str, message: str):
    path = folder / "claims.csv"
    path.write_text(text)
    with pytest.raises(AuditError, match=message):
        read_claims(path, [])


def test_picture_is_carried_in_the_page(folder: Path):
    picture = read_picture(write_png(folder / "figure_03_running_adversarial.png", 40, 30))
    assert (picture.title, picture.width, picture.height) == ("Figure 3", 40, 30)
    assert picture.uri.startswith("data:image/png;base64,iVBOR")


def test_what_is_no_png_is_refused(folder: Path):
    path = folder / "figure_01_x.png"
    path.write_text("<svg onload=alert(1)>")
    with pytest.raises(AuditError, match="this is no PNG file"):
        read_picture(path)


def test_run_is_found_by_name_and_by_path(folder: Path):
    decisions = folder / "results" / "demo" / "decisions" / "d" / "m" / "fp32" / "t.v1.parquet"
    decisions.parent.mkdir(parents=True)
    decisions.touch()
    for run in ("demo", str(folder / "results" / "demo")):
        found = find_run(run, folder)
        assert found.name == "demo"
        assert list(found.cells()) == ["d/m/fp32/t.v1"]
        assert found.file("decisions", "d/m/fp32/t.v1") == decisions
        assert found.file("records", "d/m/fp32/t.v1") is None


def test_unknown_run_names_those_there_are(folder: Path):
    (folder / "results" / "demo" / "decisions").mkdir(parents=True)
    with pytest.raises(AuditError, match="the runs there are demo"):
        find_run("paper", folder)
    with pytest.raises(AuditError, match="this run has no decisions"):
        find_run("demo", folder)


MISSED = {
    "questions": 4,
    "outside": 3,
    "excluded": [{"id": 7, "piece": "<b>Yes", "says": "yes", "count": 3}],
    "foreign": {"3582": "▁estab"},
}


@pytest.mark.parametrize("expected", [False, True])
def test_a_readout_that_misses_emitted_tokens_is_told_and_warned_of(folder: Path, expected: bool):
    described = {name: dict(one) for name, one in READOUTS.items()}
    described["legacy_2tok"]["coverage"] = MISSED
    described["legacy_8tok"]["coverage"] = {"questions": 4, "outside": 0, "excluded": [], "foreign": {}}
    files = make_run(folder, readouts=described, expect_excluded=expected)
    page = build_page("r", RunData(files, PAIR))
    told = "on up to 3 of 4 (75.0%) questions"
    assert (told in page) is not expected
    assert "1 readout of logits misses an emitted yes or no" in page
    assert ("which the run names on purpose" in page) is expected
    assert "<b>Yes" not in page and "&lt;b&gt;Yes" in page and "3582 &#34;▁estab&#34;" in page


def test_nothing_is_said_where_the_source_does_not_tell_the_first_tokens(folder: Path):
    page = build_page("r", RunData(make_run(folder), PAIR))
    assert 'class="warning"' not in page and "Emitted tokens that a readout misses" in page


def test_files_that_write_ids_in_different_ways_are_told_apart(folder: Path):
    forms = {"adversarial": ["texts"], "popular": ["numbers"], "random": ["numbers"]}
    page = build_page("r", RunData(make_run(folder, question_ids=forms), PAIR))
    assert "write question ids of adversarial as texts and popular and random as numbers: a sign" in page
    (folder / "alike").mkdir()
    alike = {split: ["texts"] for split in forms}
    same = build_page("r", RunData(make_run(folder / "alike", question_ids=alike), PAIR))
    assert "write question ids" not in same


def test_the_scripts_own_figures_stand_beside_ours(folder: Path):
    """One positive of two is answered "yes." at length: lmms-eval drops it, and so finds an F1 of 1."""
    about = {
        name: {"available": True, "kind": "string", "source": "s"}
        for name in ("lmms_eval", "vlmevalkit", "a")
    }
    rows = [
        {
            **row("random", n, label, "0.jpg", "dog", lmms_eval=said, vlmevalkit=said, a=said),
            "dataset": CELL["dataset"],
        }
        for n, (label, said) in enumerate([("yes", "yes"), ("yes", "unparsed"), ("no", "no"), ("no", "no")])
    ]
    decisions = write_decisions(folder / "d.parquet", rows, cell=CELL, readouts=about)
    score.run(decisions, folder / "s.parquet", relabel={}, resamples=0)
    concatenate_scores.run([folder / "s.parquet"], folder / "scores.parquet")
    data = RunData(Files(scores=folder / "scores.parquet", decisions=(decisions,)), PAIR)
    table = scripts_table(data, data.cells[0])
    assert [column.name for column in table.columns][3:8] == [
        "accuracy",
        "precision",
        "recall",
        "f1",
        "yes-ratio",
    ]
    # Ours: tp 1, one missed: 2/3. VLMEvalKit counts the unparsed one as a no, and prints no yes-ratio.
    assert table.rows == (
        ("random", "lmms_eval", "0.6667", "0.7500", "1.0000", "1.0000", "1.0000", "0.5000", "1"),
        ("random", "vlmevalkit", "0.6667", "0.7500", "1.0000", "0.5000", "0.6667", "not reported", "1"),
    )
    assert scripts_table(RunData(make_run(folder), PAIR), data.cells[0]) is None
