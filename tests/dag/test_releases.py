"""Two releases of the demo's questions, asked and compared through the whole graph."""

import csv
import re
from pathlib import Path

import pytest
import yaml

from tests.dag.conftest import copy_project, snakemake

pytestmark = [pytest.mark.dag, pytest.mark.slow]

RUN = "demo-releases"


@pytest.fixture(scope="module")
def project(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = copy_project(root, tmp_path_factory.mktemp("releases") / "project")
    path = project / f"config/{RUN}.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config |= {
        "splits": ["adversarial"],
        "bootstrap": {"resamples": 0, "seed": 42},
        "tables": ["table_releases"],
    }
    path.write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")
    result = snakemake(project, "all", "--cores", "2", "--configfile", f"config/{RUN}.yaml")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return project


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_spelling_alone_differs_and_what_is_shared_is_answered_alike(project: Path) -> None:
    found = {row["readout"]: row for row in rows(project / f"paper_tables/{RUN}/table_releases.csv")}
    for row in found.values():
        same, other = int(row["in the same words: asked"]), int(row["in other words: asked"])
        assert same + other == 1200
        assert other == int(row["in other words: misspelt in A"]) > 0
        assert row["in other words: misspelt in B"] == row["in the same words: changed"] == "0"


def test_every_changed_answer_is_listed_with_both_wordings(project: Path) -> None:
    changed = rows(project / f"results/{RUN}/release_changes.csv")
    table = {row["readout"]: row for row in rows(project / f"paper_tables/{RUN}/table_releases.csv")}
    for readout, row in table.items():
        assert sum(one["readout"] == readout for one in changed) == int(row["in other words: changed"])
    for one in changed:
        assert one["question_a"] == one["question_b"].replace("image", "imange")
        assert one["answer_a"] != one["answer_b"]


def test_the_page_has_a_section_about_it(project: Path) -> None:
    page = (project / f"results/{RUN}/report.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", " ", page)
    assert "Another release of the same questions" in text
    assert re.search(r"are misspelt in demo-pope-misspelt, 0 in demo-pope", text)
