"""Every model family, at tiny size with random weights, through the whole graph on a CPU."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from readout_audit.fileio import read_json, table_metadata
from tests.dag.conftest import copy_project, snakemake

pytestmark = [pytest.mark.dag, pytest.mark.slow]
FAMILIES = {
    "random-generic": "generic",
    "random-instructblip": "instructblip",
    "random-llava": "llava",
    "random-llava-next": "llava_next",
    "random-mplug-owl2": "mplug_owl2",
    "random-qwen2-vl": "qwen2_vl",
}
PICTURES = 6


@pytest.fixture(scope="module")
def families(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of config/families.yaml, with fewer pictures and resamples than it has."""
    project = copy_project(root, tmp_path_factory.mktemp("families") / "project")
    path = project / "config/families.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert sorted(config["models"]) == sorted(FAMILIES)
    config["known_images"]["demo-world"]["pictures"] = PICTURES
    config["bootstrap"]["resamples"] = 200
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    result = snakemake(project, "all", "--cores", "1", "--configfile", "config/families.yaml")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-5000:]
    text = result.stdout + result.stderr
    # Nothing that a library would like to say stands between the lines of a sound run.
    assert "Warning" not in text and "WARNING" not in text
    return project / "results/families"


@pytest.mark.parametrize("model", FAMILIES)
def test_a_family_is_asked_read_scored_and_verified(families: Path, model: str) -> None:
    cell = f"demo-pope/{model}/fp32/authors"
    records = pq.read_table(families / f"records/{cell}.parquet")
    asked = pq.read_table(families / "questions/demo-pope.parquet")
    assert len(asked) == 18 * PICTURES
    assert records["uid"].to_pylist() == list(dict.fromkeys(asked["uid"].to_pylist()))
    assert set(records["status"].to_pylist()) == {"ok"}
    assert len(set(records["log_z"].to_pylist())) == len(records)
    described = table_metadata(records)
    assert described["adapter"] == FAMILIES[model] and described["parameter_dtypes"].keys() == {"float32"}
    decisions = pq.read_table(families / f"decisions/{cell}.parquet")
    assert len(decisions) == len(asked) and set(decisions["legacy_8tok"].to_pylist()) <= {"yes", "no"}
    verified = read_json(families / f"verified/{cell}.json", "report")
    assert verified["passed"] and verified["compared"] == 20 == verified["same_continuation"]
    assert verified["dataset"] == "demo-pope" and verified["flips"] == verified["decision_flips"] == []


def test_the_page_shows_every_family_and_the_checks(families: Path) -> None:
    page = (families / "report.html").read_text(encoding="utf-8")
    assert all(model in page for model in FAMILIES)
    assert "120 of 120 (100.0%) first tokens are the same" in page
    scores = pq.read_table(families / "scores.parquet")
    assert set(scores["model"].to_pylist()) == set(FAMILIES)
