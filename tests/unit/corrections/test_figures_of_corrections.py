"""Figures of corrections and of the probe: they draw, the same each time, also of nothing."""

import pytest
from matplotlib.text import Text

from corrections.made import CELL, FIGURES
from corrections.run_files import empty_run, make_run, run_tables
from readout_audit.figures import registry, style
from readout_audit.figures.figure_07_corrections import points_of
from readout_audit.figures.figure_09_logit_gap import gaps
from readout_audit.figures.measured import answer_panels, panels
from readout_audit.tables.inputs import Options, RunTables, Sources


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run"))


def drawn(name, run, path=None):
    with style.house_style():
        figure = registry.get(name)(run)
        if path is None:
            figure.draw_without_rendering()
        else:
            style.save(figure, path, "pdf")
        return figure


def texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.mark.parametrize("name", FIGURES)
def test_same_data_same_bytes(sources, tmp_path, name):
    shown = texts(drawn(name, run_tables(sources), tmp_path / "a.pdf"))
    drawn(name, run_tables(sources), tmp_path / "b.pdf")
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()
    assert any("a-model" in text for text in shown)


@pytest.mark.parametrize("name", FIGURES)
def test_no_rows_say_so(tmp_path, name):
    (why,) = texts(drawn(name, empty_run(tmp_path)))
    assert "nothing to show here" in why


@pytest.mark.parametrize("name", FIGURES)
def test_a_split_the_run_lacks_leaves_its_panel_empty(sources, name):
    options = Options(splits=("popular", "random", "adversarial"))
    shown = texts(drawn(name, RunTables(sources, options)))
    assert any("a-model" in text for text in shown)


def test_a_line_between_signs_is_explained_where_one_is_drawn(sources):
    # The run's model has few layers: effects are written into the map, and no line is drawn.
    figure = drawn("figure_layer_windows", run_tables(sources))
    maps = [axes for axes in figure.axes if axes.images]
    lines = any(axes.collections for axes in maps)
    assert maps
    assert not lines
    assert not any("where the sign changes" in text for text in texts(figure))


def test_two_cells_are_two_blocks(sources, tmp_path):
    hostile = "a $x^2$ \\frac{1}{0} <b>"
    other = make_run(tmp_path, seed=1, images=6, cell=CELL | {"model": hostile}, resamples=0)
    both = Sources(
        **{
            kind: (*getattr(sources, kind), *getattr(other, kind))
            for kind in ("corrections", "sweeps", "probe", "probe_windows")
        }
    )
    run = run_tables(both)
    assert [one.cell.model for one in panels(run, "corrections")] == ["a-model", hostile]
    for name in ("figure_07_corrections", "figure_08_attention"):
        shown = " ".join(texts(drawn(name, run)))
        assert "a-model" in shown and hostile in shown


def test_the_order_of_all_splits_is_said(sources):
    options = Options(splits=("random", "popular"))  # none is called adversarial: the last is the hardest
    shown = texts(drawn("figure_07_corrections", RunTables(sources, options)))
    assert any(text.replace("\n", " ").startswith("In the order of F1 on popular. Bars:") for text in shown)


def test_points_and_gaps_are_those_of_the_files(sources):
    run = run_tables(sources)
    rows = panels(run, "corrections")[0].by_split["random"]
    points = {point.key: point for point in points_of(rows)}
    assert ("clip_b32", "1.5") in points and ("midpoint", "none") in points
    assert points["cls_code", "1.0"].f1 == points["cls_code", "1.0"].baseline
    answers = answer_panels(run)[0].by_split["random"]
    assert sum(len(values) for values in gaps(answers).values()) == len(answers) == 60
