"""A small grid through the workflow: readouts, prompts and models, to matrix, audit, decomposition and page."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from tests.dag.conftest import copy_project, snakemake

pytestmark = [pytest.mark.dag, pytest.mark.slow]

READOUTS = ["legacy_2tok", "legacy_8tok", "dynamic_single"]
SMALL = {
    "models": ["tiny-llava", "tiny-qwen"],
    "precisions": ["fp32"],
    "readouts": READOUTS,
    "known_images": {"demo-world": {"pictures": 20}},
    "bootstrap": {"resamples": 200, "seed": 42},
}


@pytest.fixture(scope="module")
def grid(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which a small form of the shipped grid has run to its end."""
    project = copy_project(root, tmp_path_factory.mktemp("grid") / "project")
    path = project / "config/demo-grid.yaml"
    shipped = yaml.safe_load(path.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(shipped | SMALL, sort_keys=False), encoding="utf-8")
    result = snakemake(project, "all", "--cores", "2", "--configfile", "config/demo-grid.yaml")
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-5000:]
    return project


def f1(project: Path, split: str) -> np.ndarray:
    """F1 by readout, model and template, from the score table."""
    rows = pd.read_parquet(project / "results/demo-grid/scores.parquet")
    rows = rows[(rows["split"] == split) & (rows["subset"] == "all") & (rows["labels"] == "pope")]
    found = rows.set_index(["readout", "model", "template"])["f1"]
    return np.array(
        [
            [[found[r, m, t] for t in ("authors", "paper")] for m in ("tiny-llava", "tiny-qwen")]
            for r in READOUTS
        ]
    )


@pytest.mark.parametrize("split", ["random", "popular", "adversarial"])
def test_shares_are_those_of_the_scores(grid: Path, split: str) -> None:
    """The same analysis by level means, another route than the one the code takes."""
    values = f1(grid, split)
    total = ((values - values.mean()) ** 2).sum()
    rows = pd.read_parquet(grid / "results/demo-grid/variance.parquet")
    rows = rows[(rows["split"] == split) & (rows["scope"] == "all models")].set_index("factor")
    assert rows["share"].sum() == pytest.approx(1)
    for axis, factor in enumerate(("readout", "model", "template")):
        others = tuple(place for place in range(3) if place != axis)
        means = values.mean(axis=others)
        expected = values.size / len(means) * ((means - values.mean()) ** 2).sum() / total
        assert rows.loc[factor, "share"] == pytest.approx(expected), factor
    assert set(rows["cells"]) == {12}


def test_every_model_has_a_grid_of_its_own(grid: Path) -> None:
    rows = pd.read_parquet(grid / "results/demo-grid/variance.parquet")
    assert set(rows["scope"]) == {"tiny-llava", "tiny-qwen", "all models"}
    assert set(rows[rows["scope"] == "tiny-qwen"]["factor"]) == {
        "readout",
        "template",
        "readout × template",
    }


def test_the_other_prompt_is_held_against_the_first(grid: Path) -> None:
    rows = pd.read_parquet(grid / "results/demo-grid/settings_audit.parquet")
    changed = rows[(rows["varied"] == "template") & (rows["model"] == "tiny-llava")]
    assert set(changed["reference_template"]) == {"authors"} and set(changed["template"]) == {"paper"}
    answers = changed[changed["readout"] != "gap"]
    assert (answers["changed"] == answers["no_to_yes"] + answers["yes_to_no"]).all()
    assert (answers["n"] == 120).all()


def test_the_page_shows_matrix_ranking_and_decomposition(grid: Path) -> None:
    page = (grid / "results/demo-grid/report.html").read_text(encoding="utf-8")
    for title in ("Readout matrix", "What moves F1", "shares of its variance", "settings"):
        assert title in page
    for name in ("figure_readout_matrix", "figure_ranking", "figure_variance"):
        assert (grid / f"figures/demo-grid/{name}.png").stat().st_size
    assert page.count("data:image/png;base64,") >= 3
