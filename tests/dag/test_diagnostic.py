"""The authors' diagnostic file, from a mirror folder through the probe to tables, claims and the page."""

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.dag.conftest import copy_project, snakemake

pytestmark = pytest.mark.dag

FILE = "published/experiments/ugaa_full_adversarial_3000q_diagnostic.json"
RUN = "paper-diagnostic"
ALL = ("all", "--cores", "2", "--configfile", f"config/{RUN}.yaml", "--config", "mirror=mirror")


@pytest.fixture(scope="module")
def project(root: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with a mirror of its own, which holds everything but the diagnostic file."""
    project = copy_project(root, tmp_path_factory.mktemp("diagnostic") / "project")
    for name in ("pope/coco-2023-10", "published/experiments"):
        folder = project / "mirror" / name
        folder.mkdir(parents=True)
        for file in (shared / "mirror" / name).glob("*.json"):
            (folder / file.name).symlink_to(file)
    return project


def sample(shared: Path) -> dict[str, object]:
    """The sample of the authors' file, with a summary of the rows that it holds."""
    path = shared / "mirror/published/head_ugaa_full_adversarial_3000q_diagnostic.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    rows = content["results"]
    right = [row["label"] == row["baseline_prediction"] for row in rows]
    counts = {
        "tp": sum(ok and row["label"] == "yes" for ok, row in zip(right, rows, strict=True)),
        "tn": sum(ok and row["label"] == "no" for ok, row in zip(right, rows, strict=True)),
    }
    whole = {"n_total": len(rows), "n_valid": len(rows), "fp": 15 - sum(right), "fn": 0}
    return {"summary": content["summary"] | counts | whole, "results": rows}


def test_a_mirror_without_it_is_one_sentence(project: Path) -> None:
    result = snakemake(project, *ALL)
    assert result.returncode == 1
    lines = [line for line in (result.stdout + result.stderr).splitlines() if line.startswith("error:")]
    assert lines == [
        f"error: the mirror mirror lacks {FILE}; put what is missing there, or set mirror to null to fetch from "
        f"the network."
    ]


def test_the_sample_goes_through_to_tables_claims_and_page(project: Path, shared: Path) -> None:
    (project / "mirror" / FILE).write_text(json.dumps(sample(shared)), encoding="utf-8")
    result = snakemake(project, *ALL)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]

    lock = json.loads((project / "resources/fetched/lock.json").read_text(encoding="utf-8"))
    assert len(lock[FILE]["sha256"]) == 64

    cell = "coco-2023-10/llava-1.5-7b/nf4/authors"
    answers = pq.read_table(project / f"results/{RUN}/probe/{cell}.parquet").to_pandas()
    assert len(answers) == 15
    assert set(answers["main_answer"]) <= {"yes", "no"}  # the published decisions of the main run are there
    assert answers["image"].str.fullmatch(r"COCO_val2014_\d{12}\.jpg").all()

    table = (project / f"paper_tables/{RUN}/table_09_group_means.md").read_text(encoding="utf-8")
    assert "attention, positions 1 to 576" in table

    with (project / f"paper_tables/{RUN}/claims.csv").open(encoding="utf-8", newline="") as stream:
        claims = {row["id"]: row for row in csv.DictReader(stream)}
    tested = claims["probe.attention.correct.mean"]
    assert tested["source"] == f"published: {cell}"
    right = answers[answers["answer"] == answers["label"]]["attention_window"]
    assert float(tested["reproduced"]) == pytest.approx(right.mean(), abs=5e-5)
    assert claims["probe.differs.count"]["reproduced"] == "0"
    # Fifteen rows are not the authors' three thousand, and the verdict says so.
    assert claims["probe.confusion.tp"]["status"] == "differs"

    page = (project / f"results/{RUN}/report.html").read_text(encoding="utf-8")
    assert "attention, positions 1 to 576" in page


def test_another_file_than_the_locked_one_is_refused(project: Path, shared: Path) -> None:
    path = project / "mirror" / FILE
    path.write_text(json.dumps(sample(shared)) + " ", encoding="utf-8")
    (project / "resources/fetched" / FILE).unlink()  # as the test before left it
    result = snakemake(project, f"resources/fetched/{FILE}", *ALL[1:])
    assert result.returncode != 0
    assert "sha256" in (project / f"logs/fetched/{FILE}.log").read_text(encoding="utf-8")
