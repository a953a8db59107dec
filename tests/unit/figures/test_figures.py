"""Figures: what is drawn, that the same data give the same bytes, and that nothing at all still draws."""

import dataclasses
import json
import subprocess
import sys
from fractions import Fraction

import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from PIL import Image
from tables.paper_run import (
    EIGHT,
    LLAVA,
    OPTIONS,
    TRANSITIONS,
    TWO,
    decision_rows,
    paper_scores,
    run_of,
    score_row,
    write_decisions,
    write_scores,
)

from readout_audit.errors import AuditError
from readout_audit.figures import registry, style
from readout_audit.figures.common import cell_title
from readout_audit.figures.figure_01_decision_path import MOST_CELLS
from readout_audit.figures.figure_05_first_tokens import place
from readout_audit.figures.figure_06_samples import read_picture
from readout_audit.figures.figure_07_published import IMPOSSIBLE, published_points
from readout_audit.figures.running import running_rate
from readout_audit.stages import draw_figures
from readout_audit.tables.common import hardest_split
from readout_audit.tables.inputs import ORDER, SOURCES, CellKey, Options, Sources

HOSTILE = CellKey("demo", "a $x^2$ \\frac{1}{0} <b> & %_\n\u202e", "fp32", "authors", "inference")
ONE = Options(splits=("only one",))
SMALL = {"random": {"yes": (2, 0, 1, 0), "no": (1, 0, 2, 0)}}
NOTHING = {"random": {"yes": (0, 0, 0, 0), "no": (0, 0, 0, 0)}}
ALL_NO = {"random": {"yes": (0, 0, 0, 3), "no": (0, 0, 0, 3)}}


def texts(figure):
    """Every text of a figure that is not empty."""
    return [text.get_text() for text in figure.findobj(Text)]


def drawn(name, run):
    with style.house_style():
        figure = registry.get(name)(run)
        figure.canvas.draw()
        return figure


def published(tmp_path, transitions=TRANSITIONS, cell=LLAVA, **more):
    """A run of decisions in their order, with scores."""
    cell = cell._replace(source="published")
    rows = decision_rows(cell, transitions, tokens=(3869, 1939), order_known=True)
    scores = write_scores(tmp_path, paper_scores(cell))
    return Sources(scores=scores, decisions=(write_decisions(tmp_path, rows, cell),), **more)


def run_on(sources, options=OPTIONS):
    return run_of(
        options, **{field.name: getattr(sources, field.name) for field in dataclasses.fields(sources)}
    )


def test_figure_2_shows_the_papers_counts(tmp_path):
    shown = texts(drawn("figure_02_confusion", run_of(scores=write_scores(tmp_path, paper_scores()))))
    for box in ("TP\n1,438\n95.9%", "FP\n842\n56.1%", "FN\n62\n4.1%", "TN\n658\n43.9%"):
        assert box in shown
    for box in ("TP\n1,174\n78.3%", "FP\n182\n12.1%", "FN\n326\n21.7%", "TN\n1,318\n87.9%"):
        assert box in shown
    title = "llava-1.5-7b · adversarial"
    assert {f"{title}\n{TWO}, F1 0.7608", f"{title}\n{EIGHT}, F1 0.8221", "read as", "label"} <= set(shown)


def test_figure_2_shows_what_is_neither(tmp_path):
    rows = [
        score_row(LLAVA, "pope", "adversarial", TWO, tp=1, fp=0, tn=1, fn=0, unparsed_pos=1, invalid_neg=1),
        score_row(LLAVA, "pope", "adversarial", EIGHT, tp=None),
    ]
    shown = texts(drawn("figure_02_confusion", run_of(scores=write_scores(tmp_path, rows))))
    assert "neither\n1\n50.0%" in shown
    assert "not available from this source" in shown


def test_figure_4_names_the_last_values_of_every_curve(tmp_path):
    shown = texts(drawn("figure_04_running_splits", run_on(published(tmp_path))))
    for value in ("0.452", "0.434", "0.411", "0.760", "0.707", "0.644"):
        assert value in shown
    assert "adversarial (n = 3,000)" in shown
    assert shown.count("0.500") == 3


def test_figures_of_a_stream_need_its_order(tmp_path):
    rows = decision_rows(LLAVA, SMALL, tokens=None, order_known=False)
    run = run_of(decisions=(write_decisions(tmp_path, rows),))
    assert any(
        "does not know the order" in text for text in texts(drawn("figure_03_running_adversarial", run))
    )
    assert ORDER in registry.entry("figure_03_running_adversarial").needs
    assert ORDER in registry.entry("figure_04_running_splits").needs


def test_figure_5_writes_every_count(tmp_path):
    (axes,) = drawn("figure_05_first_tokens", run_on(published(tmp_path))).axes
    shown = [text.get_text() for text in axes.texts]
    for count in ("1,356", "1,303", "1,234", "1,644", "1,697", "1,766"):
        assert count in shown
    assert shown.count("0") == 3  # the other tokens, by split
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "▁Yes (3869)",
        "▁No (1939)",
        "any other token",
    ]
    axis, silent = axes.get_xlabel().split("\n", 1)
    assert axis.startswith("answers that begin with the token (log scale")
    assert silent.startswith("No answer began with ")
    assert silent.count("(") == 6  # the other six of eight ids


def test_figure_1_counts_what_each_readout_reads(tmp_path):
    shown = texts(drawn("figure_01_decision_path", run_on(published(tmp_path))))
    assert any(text.endswith("reads 9,000 of 9,000 emitted tokens") for text in shown)
    assert any(text.endswith("reads 0 of 9,000 emitted tokens") for text in shown)
    assert "▁Yes  (3869)\n3,893" in shown
    assert "every other id\n0" in shown


def questions(rows):
    """Give made rows a question and a picture's name."""
    for number, row in enumerate(rows):
        row |= {"question": f"Is there a thing {number} in the image?", "image": f"{number}.png"}
    return rows


def test_figure_6_takes_two_of_each_outcome_preferred_ones_first(tmp_path):
    cell = LLAVA._replace(source="published")
    rows = questions(decision_rows(cell, {"adversarial": SMALL["random"]}, tokens=None, order_known=True))
    Image.new("L", (30, 20), 200).save(tmp_path / "0.png")
    (tmp_path / "1.png").write_text("no picture", encoding="utf-8")
    # Alternating labels: 1 TP, 2 FP, 3 TP, 4 TN, 5 FN, 6 TN.
    sources = Sources(decisions=(write_decisions(tmp_path, rows, cell),), images=tmp_path)
    options = dataclasses.replace(OPTIONS, samples=("3", "6"))
    shown = texts(drawn("figure_06_samples", run_on(sources, options)))
    titles = [text for text in shown if ", id " in text]
    assert titles == ["TP, id 3", "FP, id 2", "TN, id 6", "FN, id 5", "TP, id 1", "TN, id 4"]
    assert shown.count("no such answer") == 2
    assert shown.count("picture\nnot at hand") == 5  # all but 0.png, which is question 1's
    assert any("label no, read yes" in text for text in shown)


def test_a_question_without_text_is_no_sample(tmp_path):
    rows = decision_rows(LLAVA, SMALL, tokens=None, order_known=False)
    shown = texts(drawn("figure_06_samples", run_of(decisions=(write_decisions(tmp_path, rows),))))
    assert any("no questions behind single rows" in text for text in shown)


def test_pictures_are_made_small_and_square_and_never_followed_elsewhere(tmp_path):
    Image.new("CMYK", (900, 300)).save(tmp_path / "wide.jpg")
    inside = tmp_path / "inside"
    inside.mkdir()
    picture = read_picture(tmp_path, "wide.jpg")
    assert picture is not None
    assert picture.shape[0] == picture.shape[1] <= 400
    for name in ("../wide.jpg", "missing.png", "", None, "inside"):
        assert read_picture(inside, name) is None
    assert read_picture(None, "wide.jpg") is None


def test_figure_10_draws_a_line_for_each_use_of_an_id(tmp_path):
    token_map = {
        "model": "tiny",
        "encode": {"yes": [7], " yes": [1, 7], "NO": [9]},
        "pieces": {"1": "▁", "7": "▁yes", "9": "▁NO"},
    }
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(token_map), encoding="utf-8")
    figure = drawn("figure_10_encodings", run_of(tokens=(path,)))
    panel = figure.axes[0]
    assert len(panel.lines) == 3
    assert {"7  ▁yes", "1  ▁", '"yes"', '" yes"'} <= {text.get_text() for text in panel.texts}
    assert panel.get_title() == "tiny (vocabulary)\n2 forms, 2 ids"


def test_the_running_rate_leaves_invalid_rows_out():
    curve = running_rate(pd.Series(["yes", "invalid", "no", None, "unparsed", "yes"]))
    assert curve is not None
    assert curve.asked.tolist() == [1, 2, 3, 4]
    assert curve.rate.tolist() == [1, 1 / 2, 1 / 3, 2 / 4]
    assert (curve.n, curve.last) == (4, Fraction(1, 2))


def test_a_long_stream_is_thinned_and_keeps_its_ends():
    curve = running_rate(pd.Series(["yes"] * 9999 + ["no"]))
    assert curve is not None
    assert len(curve.asked) == 3000
    assert (curve.asked[0], curve.asked[-1], curve.rate[-1]) == (1, 10000, 0.9999)


def test_no_valid_answer_has_no_rate():
    assert running_rate(pd.Series(["invalid", None], dtype=object)) is None


@pytest.mark.parametrize(("count", "at"), [(0, 0), (1, 1), (10, 2), (1000, 4)])
def test_the_log_axis_has_a_place_for_zero(count, at):
    assert place(count) == pytest.approx(at)


@pytest.mark.parametrize("name", sorted(registry.FIGURES))
@pytest.mark.parametrize("transitions", [SMALL, NOTHING, ALL_NO], ids=["small", "no rows", "all no"])
def test_every_figure_draws_little_and_nothing(name, transitions, tmp_path):
    cell = HOSTILE._replace(source="published")
    rows = decision_rows(cell, transitions, tokens=(3869, 1939), order_known=True)
    scores = [
        score_row(cell, "pope", "random", readout, tp=0, fp=0, tn=3 * (transitions is ALL_NO), fn=0)
        for readout in (TWO, EIGHT)
    ]
    sources = Sources(
        scores=write_scores(tmp_path, scores if rows else []),
        decisions=(write_decisions(tmp_path, rows, cell),),
    )
    assert drawn(name, run_on(sources, Options(splits=("random",)))).findobj(Text)


@pytest.mark.parametrize("name", sorted(registry.FIGURES))
def test_a_split_nobody_asked_still_draws(name, tmp_path):
    drawn(name, run_on(published(tmp_path, SMALL), ONE))


@pytest.mark.parametrize("name", sorted(registry.FIGURES))
def test_needs_are_kinds_of_file(name):
    assert set(registry.entry(name).needs) <= {*SOURCES, ORDER}
    assert registry.entry(name).module.endswith(name)


def test_an_unknown_figure_is_one_sentence():
    with pytest.raises(AuditError, match="no figure 'figure_99'"):
        registry.get("figure_99")


def test_bytes_are_the_same_in_another_process_and_hold_no_date(tmp_path):
    sources = published(tmp_path, SMALL)
    files = {
        attempt: {suffix: tmp_path / attempt / f"f.{suffix}" for suffix in ("pdf", "png")} for attempt in "ab"
    }
    draw_figures.run("figure_04_running_splits", sources, Options(splits=("random",)), files["a"])
    arguments = ["--name", "figure_04_running_splits", "--options", '{"splits":["random"]}']
    arguments += ["--decisions", str(sources.decisions[0])]
    for suffix, path in files["b"].items():
        arguments += [f"--{suffix}", str(path)]
    subprocess.run([sys.executable, "-m", "readout_audit.stages.draw_figures", *arguments], check=True)
    pdf, png = (path.read_bytes() for path in files["a"].values())
    assert [pdf, png] == [path.read_bytes() for path in files["b"].values()]
    assert pdf.startswith(b"%PDF")
    assert b"CreationDate" not in pdf
    assert png.startswith(b"\x89PNG")
    assert b"Matplotlib" not in pdf + png


def test_hardest_split_and_titles():
    assert hardest_split(Options(splits=("adversarial", "random"))) == "adversarial"
    assert hardest_split(Options(splits=("easy", "hard"))) == "hard"
    other = LLAVA._replace(precision="bf16")
    assert cell_title(LLAVA, [LLAVA]) == "llava-1.5-7b"
    assert cell_title(other, [LLAVA, other]) == "llava-1.5-7b · bf16"
    paper = LLAVA._replace(template="paper")
    assert cell_title(paper, [LLAVA, paper]) == "llava-1.5-7b · prompt paper"
    assert style.describe(["a" * 50, "b" * 20], width=60) == "a" * 50 + "\n" + "b" * 20


def test_neighbouring_marks_differ_in_lightness_and_in_every_other_way():
    # Contrast of 1.5 is what two greys need to be told apart side by side; dash, marker and hatch differ too.
    for first, second in zip(style.MARKS, style.MARKS[1:], strict=False):
        low, high = sorted(style.luminance(to_rgb(look.colour)) for look in (first, second))
        assert (high + 0.05) / (low + 0.05) > 1.5
    for attribute in style.Mark._fields:
        assert len({str(getattr(look, attribute)) for look in style.MARKS}) == len(style.MARKS)


@pytest.mark.parametrize("share", [0, 0.25, 0.5, 0.56, 0.75, 1])
def test_text_on_a_tint_is_readable(share):
    assert style.contrast(style.tint(share), to_rgb(style.INK)) > 7


def test_tints_fall_in_lightness_far_enough_to_be_told_apart_in_grey():
    lightness = [style.luminance(style.tint(step / 10)) for step in range(11)]
    assert lightness == sorted(lightness, reverse=True)
    assert style.contrast(style.tint(0), style.tint(1)) > 2


def test_matrices_of_several_models_stand_in_one_grid(tmp_path):
    """A model with answers that are neither yes nor no has a third column, and no other size."""
    other = LLAVA._replace(model="another")
    unclear = score_row(other, "pope", "adversarial", EIGHT, tp=1, fp=0, tn=1, fn=0, unparsed_pos=1)
    rows = [*paper_scores(), *paper_scores(other), unclear]
    rows = [row for row in rows if row is unclear or (row["model"], row["readout"]) != ("another", EIGHT)]
    figure = drawn("figure_02_confusion", run_of(scores=write_scores(tmp_path, rows)))
    figure.canvas.draw()
    sizes = {
        (axes.get_subplotspec().get_topmost_subplotspec().get_gridspec().get_geometry())
        for axes in figure.axes
    }
    assert sizes == {(2, 2)}
    assert "legacy_8tok, F1 0.8221" in "\n".join(texts(figure))


def test_figure_10_of_printed_numbers_shows_both_vocabularies_and_no_empty_panel(root):
    figure = drawn("figure_10_encodings", run_of(claims=root / "resources/paper/numbers.csv"))
    titles = [axes.get_title() for axes in figure.axes]
    assert [title.partition(" ")[0] for title in titles] == ["llava-1.5-7b", "llava-1.6-mistral-7b"]
    assert "looked up as pieces" in titles[0] and "8 forms, 8 ids" in titles[0]
    assert "8 forms, 5 ids" in titles[1]


@pytest.mark.parametrize(
    ("values", "placed"),
    [
        ([], []),
        ([0.5], [0.5]),
        ([0.5, 0.45], [0.55, 0.45]),
        ([0.99, 1.0], [0.9, 1.0]),
        ([0.0, 0.0, 0.0], [0.0, 0.1, 0.2]),
    ],
)
def test_labels_are_spread_within_their_ends(values, placed):
    assert style.spread(values, gap=0.1, low=0, high=1) == pytest.approx(placed)


def test_too_many_labels_share_the_room_evenly():
    assert style.spread([0.5] * 3, gap=0.9, low=0, high=1) == pytest.approx([0, 0.5, 1])


def test_figure_7_as_published_tells_which_rows_no_matrix_gives(root):
    run = run_of(claims=root / "resources/paper/numbers.csv")
    points = {point.label: point for point in published_points(run)}
    impossible = {label for label, point in points.items() if point.family == IMPOSSIBLE}
    assert len(points) == 10
    assert impossible == {
        *(
            "CLIP-L/14-336 certainty",
            "magnitude",
            "CLS similarity",
            "object-noun CLIP",
            "uniform",
            "VCD noise",
        )
    }
    assert (points["no correction"].f1, points["CLIP-B/32 certainty, β 1.0"].precision) == (0.8221, 0.9072)
    shown = texts(drawn("figure_07_published", run))
    # The largest F1 of a correction comes first, with its printed digits.
    assert "CLIP-B/32 certainty, β 1.0  1" in shown
    assert "0.8171" in shown
    assert any("claims: false" in text for text in texts(drawn("figure_07_published", run_of())))


def run_of_models(tmp_path, count):
    """The published decisions as those of several models."""
    models = [LLAVA._replace(model=f"model-{number}", source="published") for number in range(count)]
    rows = {one: decision_rows(one, SMALL, tokens=(3869, 7), order_known=True) for one in models}
    paths = []
    for one, made in rows.items():
        (tmp_path / one.model).mkdir()
        paths.append(write_decisions(tmp_path / one.model, made, one))
    return run_of(decisions=tuple(paths))


def test_figure_1_shows_further_cells_two_in_a_row_and_names_what_neither_reads(tmp_path):
    figure = drawn("figure_01_decision_path", run_of_models(tmp_path, 4))
    figure.canvas.draw()
    assert [axes.get_title(loc="left") for axes in figure.axes] == [f"model-{number}" for number in range(4)]
    left = [round(axes.get_position().x0, 2) for axes in figure.axes]
    assert left[0] == left[1] == left[3] < left[2]
    shown = texts(figure)
    assert any(text.startswith("every other id: not recorded (7)\n") for text in shown)
    assert sum("legacy_8tok reads" in text for text in shown) == 3
    assert figure.get_size_inches()[1] < 9


def test_figure_1_is_never_taller_than_a_page_and_says_what_it_leaves_out(tmp_path):
    figure = drawn("figure_01_decision_path", run_of_models(tmp_path, MOST_CELLS + 2))
    assert len(figure.axes) == MOST_CELLS
    assert any("2 more are left out here; Table 1 has them all." in text for text in texts(figure))


def test_matrices_of_many_models_stand_two_models_to_a_row(tmp_path):
    models = [LLAVA._replace(model=f"model-{number}") for number in range(5)]
    rows = [row for one in models for row in paper_scores(one)]
    figure = drawn("figure_02_confusion", run_of(scores=write_scores(tmp_path, rows)))
    shape = figure.axes[0].get_subplotspec().get_gridspec().get_geometry()
    assert shape == (3, 4)
    assert sum(axes.axison for axes in figure.axes) == 10


def test_figure_5_draws_the_tokens_that_neither_readout_reads(tmp_path):
    (axes,) = drawn("figure_05_first_tokens", run_of_models(tmp_path, 1)).axes
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[-2:] == ["not recorded (7)", "any other token"]
