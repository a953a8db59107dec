"""The tables and figures of the matrix and the audit, from a small run whose every number is counted by hand."""

import csv
import io
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
import yaml
from audit.cells import write_cell
from matplotlib.figure import Figure
from matplotlib.text import Text
from scores.decision_files import row, table_7_rows, write_decisions

from readout_audit.config.wiring import Wiring
from readout_audit.contracts import decisions_schema
from readout_audit.errors import AuditError
from readout_audit.figures import registry as figures
from readout_audit.figures import style
from readout_audit.figures.figure_ranking import (
    draw_panel,
    f1_of,
    model_intervals,
    places,
    ranked_panels,
    verdict,
)
from readout_audit.figures.figure_variance import HIGHER, factor_names, share_of, shown_scopes
from readout_audit.fileio import table_metadata, write_table
from readout_audit.matrix.ranking import Order
from readout_audit.scores.confusion import Confusion
from readout_audit.stages import (
    concatenate_scores,
    readout_matrix,
    score,
    settings_audit,
    variance_components,
)
from readout_audit.tables import registry as tables
from readout_audit.tables.inputs import CellKey, Options, RunTables, Sources
from readout_audit.tables.readout_scores import first_cells
from readout_audit.tables.render import to_csv, to_latex, to_markdown
from readout_audit.tables.table_disagreements import MOST, OTHERS

OPTIONS = Options(splits=("random",), readout_from="a", readout_to="b")

# Labels yes yes no no. F1 of m at fp32: a 1, b 2/3; at nf4: a 4/5, b 2/3. Of k: a 2/3, b 1; nf4: a 2/3, b 4/5.
ANSWERS = {
    ("m", "fp32"): {"a": "yynn", "b": "ynnn"},
    ("m", "nf4"): {"a": "yyyn", "b": "ynnu"},
    ("k", "fp32"): {"a": "ynnn", "b": "yynn"},
    ("k", "nf4"): {"a": "ynnn", "b": "yyyn"},
}


def make_run(
    folder: Path, decisions: list[Path], resamples: int = 60, options: Options = OPTIONS
) -> RunTables:
    """Run the stages on decision files and return what tables and figures read."""
    scores, pairs, listings = [], [], []
    for path in decisions:
        outputs = [path.with_suffix(f".{kind}") for kind in ("scores", "pairs", "list", "csv")]
        score.run(path, outputs[0], resamples=resamples)
        readout_matrix.run(path, *outputs[1:], resamples=resamples)
        scores.append(outputs[0])
        pairs.append(outputs[1])
        listings.append(outputs[2])
    concatenate_scores.run(scores, folder / "scores")
    settings_audit.run(decisions, folder / "audit", gap_pair=("a", "b"), resamples=resamples)
    sources = Sources(
        scores=folder / "scores",
        readout_pairs=tuple(pairs),
        readout_disagreements=tuple(listings),
        settings_audit=folder / "audit",
    )
    return RunTables(sources, options)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunTables:
    folder = tmp_path_factory.mktemp("run")
    paths = [
        write_cell(folder, answers, model=model, precision=precision)
        for (model, precision), answers in ANSWERS.items()
    ]
    made = make_run(folder, paths)
    variance_components.run(paths, folder / "variance", ["a", "b"], resamples=60)
    return RunTables(replace(made.sources, variance=folder / "variance"), OPTIONS)


def rows_of(name: str, run: RunTables) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(tables.get(name)(run)))))


def notes_of(name: str, run: RunTables) -> str:
    return "\n".join(tables.get(name)(run).all_notes())


def one(rows: list[dict[str, str]], **values: str) -> dict[str, str]:
    found = [row for row in rows if all(row[name] == value for name, value in values.items())]
    assert len(found) == 1
    return found[0]


def test_readout_matrix_by_hand(run: RunTables) -> None:
    rows = rows_of("table_readout_matrix", run)
    assert len(rows) == 8
    a = one(rows, model="m", precision="nf4", readout="a")
    assert (a["n"], a["F1"], a["yes-rate"], a["unparsed"]) == ("4", "0.8000", "0.7500", "0")
    b = one(rows, model="m", precision="nf4", readout="b")
    assert (b["F1"], b["yes-rate"], b["unparsed"]) == ("0.6667", "0.2500", "1")
    # y y y n against y n n u: three questions; a readout does not meet itself.
    assert (a["read differently by: a"], a["read differently by: b"]) == ("–", "3")
    assert (b["read differently by: a"], b["read differently by: b"]) == ("3", "–")
    assert " to " in a["F1 95%"]


def test_readout_matrix_without_pairs_or_intervals(tmp_path: Path) -> None:
    decisions = write_decisions(tmp_path / "counts.parquet", table_7_rows(), joint=False)
    made = make_run(tmp_path, [decisions], resamples=0)
    first = rows_of("table_readout_matrix", made)[0]
    assert (first["F1 95%"], first["read differently by: legacy_2tok"]) == ("not_available", "not_available")
    assert rows_of("table_disagreements", made) == []


def test_a_readout_that_one_model_lacks(tmp_path: Path) -> None:
    paths = [write_cell(tmp_path, {"a": "yynn", "b": "yynn"}), write_cell(tmp_path, {"a": "yynn"}, model="k")]
    made = make_run(tmp_path, paths, resamples=0)
    assert one(rows_of("table_readout_matrix", made), model="k")["read differently by: b"] == "not_run"


def test_disagreements_by_hand(run: RunTables) -> None:
    rows = rows_of("table_disagreements", run)
    assert {(row["model"], row["precision"]) for row in rows} == {("m", "fp32"), ("k", "fp32")}
    m = one(rows, model="m")
    assert (m["read as: yes"], m["read as: no"], m["read as: neither"]) == ("a", "b", "none")
    counts = [m[f"questions: {name}"] for name in ("all", "label yes", "label no")]
    assert counts == ["1", "1", "0"]
    assert m["example"] == "1.jpg: Is there a thing random 1 in the image?"
    assert "first setting" in notes_of("table_disagreements", run)


def test_rare_ways_are_counted_together(tmp_path: Path) -> None:
    names = [f"r{index:02}" for index in range(MOST + 3)]
    rows = [
        row("random", number, "yes", **{name: "no" if name == names[number] else "yes" for name in names})
        for number in range(len(names))
    ]
    made = make_run(tmp_path, [write_decisions(tmp_path / "many.parquet", rows)], resamples=0)
    found = rows_of("table_disagreements", made)
    assert len(found) == MOST + 1
    rest = one(found, **{"read as: yes": OTHERS})
    assert (rest["questions: all"], rest["questions: label yes"]) == ("3", "3")


def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script> | \\input{x} $1$ & \n#"
    rows = [row("random", 1, "yes", a="yes", b="no") | {"question": hostile}]
    table = tables.get("table_disagreements")(
        make_run(tmp_path, [write_decisions(tmp_path / "d.parquet", rows)], resamples=0)
    )
    assert "<script>" not in to_markdown(table) and "&lt;script&gt;" in to_markdown(table)
    assert "\\input" not in to_latex(table)


def test_settings_audit_by_hand(run: RunTables) -> None:
    rows = rows_of("table_settings_audit", run)
    assert len(rows) == 4 * 3  # models are compared elsewhere
    reference = one(rows, model="m", precision="fp32", readout="a")
    assert (reference["F1"], reference["ΔF1"], reference["differs in"]) == (
        "1.0000",
        "reference",
        "reference",
    )
    changed = one(rows, model="m", precision="nf4", readout="a")
    assert (changed["F1"], changed["ΔF1"], changed["differs in"]) == ("0.8000", "-0.2000", "precision")
    against = [
        changed[f"against the reference: {name}"]
        for name in ("questions", "changed", "no to yes", "yes to no", "of changed, near-tied")
    ]
    assert against == ["4", "1", "1", "0", "not_available"]
    assert changed["near-tied"] == "not_available"
    # m: the gap is 1 - 2/3 at fp32 and 4/5 - 2/3 at nf4.
    gap = one(rows, model="m", precision="nf4", readout="gap")
    assert (gap["F1"], gap["ΔF1"]) == ("0.1333", "-0.2000")
    assert gap["against the reference: questions"] == gap["near-tied"] == "–"
    notes = notes_of("table_settings_audit", run)
    assert "The largest move of a setting is -0.2000 (m, precision: nf4, t, d, under a)" in notes
    assert "the largest move of the readout is 0.3333 (m, fp32, t, d: from b to a)" in notes
    assert "m: the gap lies between 0.1333 and 0.3333 over 2 settings." in notes


def test_a_setting_without_an_f1_has_no_difference_and_says_undefined(tmp_path: Path) -> None:
    """No valid answer leaves nothing to count: F1 is zero to zero."""
    paths = [
        write_cell(tmp_path, {"a": answers, "b": "ynnn"}, precision=precision)
        for precision, answers in (("fp32", "yynn"), ("nf4", "iiii"))
    ]
    changed = one(rows_of("table_settings_audit", make_run(tmp_path, paths)), precision="nf4", readout="a")
    assert (changed["F1"], changed["ΔF1"], changed["ΔF1 95%"]) == ("undefined",) * 3


def test_an_interval_of_a_setting_says_how_many_resamples_have_no_f1(tmp_path: Path) -> None:
    """All valid answers of the second setting are about one of two images: a quarter of the draws miss it."""
    paths = [
        write_cell(tmp_path, {"a": answers, "b": "ynnn"}, precision=precision)
        for precision, answers in (("fp32", "ynyn"), ("nf4", "yiyi"))
    ]
    run = make_run(tmp_path, paths, resamples=200)
    changed = one(rows_of("table_settings_audit", run), precision="nf4", readout="a")
    left_out = re.search(r" to [\d.-]+ \(undefined in (\d+) of 200 resamples\)$", changed["ΔF1 95%"])
    assert left_out is not None and 30 < int(left_out[1]) < 70
    assert "undefined: the ratio is zero to zero" in notes_of("table_settings_audit", run)


def test_variance_by_hand(run: RunTables) -> None:
    rows = rows_of("table_variance", run)
    assert {row["models"] for row in rows} == {"m", "k", "all models"}
    # m, in fifteenths: 15 10 | 12 10. Sum 47, squares 569 - 2209/4 = 67/4. Readout (27, 20): 49/4; precision
    # (25, 22): 9/4; both: 9/4.
    readout, precision, both = (row for row in rows if row["models"] == "m")
    assert (readout["factor"], precision["factor"], both["factor"]) == (
        "readout",
        "precision",
        "readout × precision",
    )
    assert [row["share"] for row in (readout, precision, both)] == ["0.7313", "0.1343", "0.1343"]
    assert (readout["F1s"], readout["degrees of freedom"]) == ("4", "1")
    # Along the readout: 5/15 at fp32, 2/15 at nf4.
    reach = [readout[f"range of F1 along the factor: {name}"] for name in ("mean", "largest", "from to")]
    assert reach == ["0.2333", "0.3333", "b to a (fp32)"]
    assert both["range of F1 along the factor: mean"] == "–"
    notes = notes_of("table_variance", run)
    assert "balanced factorial ANOVA" in notes and "m: " in notes and "readout (a, b)" in notes


def test_first_cells_are_one_per_model() -> None:
    cells = [
        CellKey("d", model, precision, "t", "inference") for model in "mk" for precision in ("fp32", "nf4")
    ]
    assert first_cells(cells) == [cells[0], cells[2]]


# Figures


def drawn(name: str, run: RunTables) -> Figure:
    with style.house_style():
        figure: Figure = figures.get(name)(run)
        figure.canvas.draw()
        return figure


def texts(figure: Figure) -> str:
    return "\n".join(text.get_text() for text in figure.findobj(Text))


def test_matrix_figure_says_how_far_the_readout_moves_f1(run: RunTables) -> None:
    shown = texts(drawn("figure_readout_matrix", run))
    assert "m: from the lowest to the highest of 2 readouts F1 moves 33.3 points on random\n(b to a)" in shown
    assert "k: from the lowest to the highest of 2 readouts F1 moves 33.3 points on random\n(a to b)" in shown
    assert "random (n = 4)" in shown and "25.0%" in shown  # one of four questions
    assert "read differently, random (n = 4)" in shown


def test_matrix_figure_says_where_f1_is_undefined(tmp_path: Path) -> None:
    rows = [
        row("random", n, label, a=label, b="unparsed") for n, label in enumerate(["yes", "yes", "no", "no"])
    ]
    shown = texts(
        drawn(
            "figure_readout_matrix",
            make_run(tmp_path, [write_decisions(tmp_path / "d.parquet", rows)], resamples=0),
        )
    )
    assert "undefined" in shown.splitlines() and "100.0%" in shown


def test_matrix_figure_of_one_readout_and_of_counts(tmp_path: Path) -> None:
    made = make_run(tmp_path, [write_cell(tmp_path, {"a": "yynn"})], resamples=0)
    assert "one readout on random" in texts(drawn("figure_readout_matrix", made))
    counted = make_run(tmp_path, [write_decisions(tmp_path / "joint.parquet", table_7_rows())], resamples=0)
    assert {row["example"] for row in rows_of("table_disagreements", counted)} == {"not_available"}
    counts = make_run(
        tmp_path, [write_decisions(tmp_path / "counts.parquet", table_7_rows(), joint=False)], resamples=0
    )
    assert "which answers belong together" in texts(drawn("figure_readout_matrix", counts))


def test_ranking_figure_shows_the_change_of_order(run: RunTables) -> None:
    (panel,) = ranked_panels(run)
    assert panel.setting == ("d", "fp32", "t", "inference")
    assert (list(panel.models), panel.readouts, panel.split) == (["m", "k"], ["a", "b"], "random")
    figure = drawn("figure_ranking", run)
    shown = texts(figure)
    assert "random (n = 4): the one pair of models changes order with the readout" in shown
    assert {"1.000", "0.667"} <= set(shown.split("\n"))
    (axes,) = figure.axes
    ranks = [list(line.get_ydata()) for line in axes.lines if len(line.get_ydata()) == 2]
    assert ranks == [[1.0, 2.0], [2.0, 1.0]]


def test_intervals_of_models_stand_both_ways_round(run: RunTables) -> None:
    found = model_intervals(run, ("d", "fp32", "t", "inference"))["random"]
    low, high = found["k", "m", "a"]
    assert low is not None and high is not None
    assert found["m", "k", "a"] == (-high, -low)


def test_one_model_is_not_ranked(tmp_path: Path) -> None:
    made = make_run(tmp_path, [write_cell(tmp_path, {"a": "yynn", "b": "ynnn"})], resamples=0)
    assert "nothing to rank" in texts(drawn("figure_ranking", made))


def test_verdicts() -> None:
    steady = Order("m", "k", ("a", "b"), (), ())
    turning = Order("m", "k", ("a",), ("b",), ())
    surely = turning._replace(first_surely=("a",), second_surely=("b",))
    assert verdict([steady], [steady], True) == "every readout puts the models in the same order"
    one = "the one pair of models changes order with the readout"
    assert verdict([turning], [turning], True) == f"{one}, 0 beyond sampling"
    assert verdict([turning], [turning], False) == one
    two = "1 of 2 pairs of models change order with the readout, 1 beyond sampling"
    assert verdict([steady, surely], [steady, surely], True) == two


def test_changes_by_readouts_that_miss_the_answers_are_told_apart() -> None:
    steady = Order("m", "k", ("a", "b"), (), ())
    turning = Order("m", "k", ("a",), ("b",), ())
    only = "only by readouts that miss what a model writes (open marks)"
    assert verdict([turning], [steady], False) == f"the order changes in the one pair of models,\nand {only}"
    both = verdict([turning, turning], [turning, steady], False)
    assert both == f"1 of 2 pairs of models change order with the readout;\n1 more {only}"


def test_a_readout_that_misses_a_models_answers_has_an_open_mark_and_turns_no_order(run: RunTables) -> None:
    (panel,) = ranked_panels(run)
    missing = panel._replace(missing=frozenset({("k", "b")}))
    # k's 1 under b, which puts it ahead of m, is left out.
    assert f1_of(missing, sound=True) == {
        "m": {"a": 1, "b": Fraction(2, 3)},
        "k": {"a": Fraction(2, 3)},
    }
    axes = Figure().subplots()
    draw_panel(axes, missing)
    assert [line.get_markerfacecolor() for line in axes.lines].count("white") == 1


def test_the_decision_file_says_which_readouts_miss_what_is_written(run: RunTables, tmp_path: Path) -> None:
    decisions = write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}, model="m")
    table = pq.read_table(decisions)
    meta = table_metadata(table)
    token = {"id": 7, "piece": "Yes", "says": "yes", "count": 2}
    coverage = {"questions": 4, "outside": 2, "excluded": [token], "foreign": {}}
    meta["readouts"] = {"b": {"coverage": coverage}}
    write_table(decisions, table, decisions_schema(["a", "b"]), meta)
    known = RunTables(replace(run.sources, decisions=(decisions,)), OPTIONS)
    assert [panel.missing for panel in ranked_panels(known)] == [frozenset({("m", "b")})]
    assert "Open mark" in texts(drawn("figure_ranking", known))


def test_equal_models_share_a_rank_side_by_side(tmp_path: Path) -> None:
    paths = [write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}, model=model) for model in ("m", "k")]
    figure = drawn("figure_ranking", make_run(tmp_path, paths, resamples=0))
    (axes,) = figure.axes
    lines = [line for line in axes.lines if len(line.get_ydata()) == 2]
    # Both models' lines, and behind them a bar per readout, all at the mean of places 1 and 2.
    assert [list(line.get_ydata()) for line in lines] == [[1.5, 1.5]] * 4
    # A tenth of an inch apart, of 6.1 that two readouts share: 0.2 / 6.1 readouts, half of it to either side.
    half = 0.1 / 6.1
    assert lines[0].get_xdata() == pytest.approx([-half, 1 - half])
    assert lines[1].get_xdata() == pytest.approx([half, 1 + half])
    # One F1 for both marks, and the rank that they share on the axis.
    assert [text.get_text() for text in axes.texts] == ["1.000", "0.667"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "1.5", "2"]


def test_an_undefined_f1_has_no_rank(tmp_path: Path) -> None:
    paths = [write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}, model=model) for model in ("m", "k")]
    scores = make_run(tmp_path, paths, resamples=0)
    (panel,) = ranked_panels(scores)
    nothing = panel.models["k"]["b"]._replace(confusion=Confusion(*[0] * len(Confusion._fields)))
    axes = Figure().subplots()
    panel = panel._replace(models={**panel.models, "k": {**panel.models["k"], "b": nothing}})
    draw_panel(axes, panel)
    assert [text.get_text() for text in axes.texts].count("undefined") == 1
    # Its mark stands below the ranks, and the other model is the first of one.
    assert [label.get_text() for label in axes.get_yticklabels()] == ["1", "1.5", "2", "none"]
    levels = [[place.level for place in places(panel, model) if place] for model in ("m", "k")]
    assert levels == [[Fraction(3, 2), 1], [Fraction(3, 2), 3]]


def test_variance_figure_draws_shares_and_ranges(run: RunTables) -> None:
    figure = drawn("figure_variance", run)
    left, right = figure.axes[:2]
    dots = [line for line in left.lines if len(line.get_xdata()) == 1]
    assert [float(line.get_xdata()[0]) for line in dots] == pytest.approx([49 / 67, 9 / 67, 9 / 67])
    means = [float(line.get_xdata()[0]) for line in right.lines if line.get_marker() == style.mark(0).marker]
    assert means == pytest.approx([100 * 7 / 30, 100 * 0.1])
    assert [label.get_text() for label in left.get_yticklabels()] == [
        "readout",
        "precision",
        "readout × precision",
    ]
    assert "m · 4 values of F1" in texts(figure) and "2 precisions · 2 readouts" in texts(figure)


def test_a_scope_in_which_one_factor_varies_is_left_to_the_table() -> None:
    one = {"scope": "m", "factor": "readout", "order": 1}
    crossed = [
        {"scope": "all models", "factor": "readout", "order": 1},
        {"scope": "all models", "factor": "readout × model", "order": 2},
    ]
    assert shown_scopes([one, *crossed]) == ["all models"]
    assert shown_scopes([one]) == ["m"]
    assert shown_scopes([]) == []


def test_higher_interactions_are_one_line() -> None:
    rows = [
        {"factor": "a", "order": 1, "share": 0.5},
        {"factor": "a × b", "order": 2, "share": 0.25},
        {"factor": "a × b × c", "order": 3, "share": 0.125},
        {"factor": "a × b × d", "order": 3, "share": 0.125},
    ]
    assert factor_names(rows) == ["a", "a × b", HIGHER]
    assert share_of(rows, HIGHER) == 0.25 and share_of(rows, "a × b") == 0.25
    assert share_of([{"factor": "a", "order": 1, "share": None}], "a") is None


@pytest.mark.parametrize("name", ["figure_readout_matrix", "figure_ranking", "figure_variance"])
def test_same_run_same_bytes(run: RunTables, tmp_path: Path, name: str) -> None:
    pictures = []
    for index in range(2):
        with style.house_style():
            style.save(figures.get(name)(run), tmp_path / f"{index}.pdf", "pdf")
        pictures.append((tmp_path / f"{index}.pdf").read_bytes())
    assert pictures[0] == pictures[1]


def test_files_of_another_kind_are_refused(run: RunTables) -> None:
    wrong = replace(run.sources, readout_disagreements=(run.sources.scores,))
    with pytest.raises(AuditError, match="the list of disagreements has other columns"):
        tables.get("table_disagreements")(RunTables(wrong, OPTIONS))
    missing = replace(run.sources, settings_audit=Path("nowhere.parquet"))
    with pytest.raises(AuditError, match=r"nowhere.parquet: the settings audit is not there"):
        tables.get("table_settings_audit")(RunTables(missing, OPTIONS))


def test_exact_f1_stands_behind_the_table(run: RunTables) -> None:
    """Cells are exact ratios, not the floats of the file."""
    cells = [cell for line in tables.get("table_settings_audit")(run).rows for cell in line]
    assert Fraction(4, 5) in cells and Fraction(2, 15) in cells


# The demo grid


@pytest.fixture
def grid(root: Path) -> Wiring:
    """The plan of config/demo-grid.yaml."""
    files = ("models", "templates", "datasets", "demo-grid")
    config: dict[str, object] = {}
    for name in files:
        config |= yaml.safe_load((root / f"config/{name}.yaml").read_text(encoding="utf-8"))
    return Wiring(config)


def test_tables_of_the_grid_get_their_files(grid: Wiring) -> None:
    def files(kind: str, name: str) -> dict[str, list[str]]:
        sources = {"table": grid.table_sources, "figure": grid.figure_sources}[kind]
        return sources(SimpleNamespace(**{kind: name}))

    folder = "results/demo-grid"
    assert files("table", "table_variance") == {"variance": [f"{folder}/variance.parquet"]}
    assert files("figure", "figure_variance") == {"variance": [f"{folder}/variance.parquet"]}
    ranking = files("figure", "figure_ranking")
    assert len(ranking.pop("decisions")) == len(grid.cells)
    assert files("table", "table_settings_audit") == ranking
    assert files("figure", "figure_ranking")["settings_audit"] == [f"{folder}/settings_audit.parquet"]
    pairs = files("table", "table_readout_matrix")["readout_pairs"]
    listings = files("table", "table_disagreements")["readout_disagreements"]
    assert len(pairs) == len(listings) == len(grid.cells)
    assert pairs[0] == f"{folder}/readout_pairs/{grid.cells[0].path}.parquet"


def test_the_grid_is_full(grid: Wiring) -> None:
    """Every combination is asked, so that the variance can be taken apart, and each prompt is the model's own."""
    asked = {(cell.model, cell.precision, cell.template) for cell in grid.cells}
    config = grid.config
    assert len(asked) == len(config["models"]) * len(config["precisions"]) * len(config["templates"])
    for model in config["models"]:
        texts = [config["known_templates"][model][name] for name in config["templates"]]
        assert len({str(text) for text in texts}) == len(texts)
