"""Questions and pictures of one's own, and a model behind a server, through the whole graph."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from readout_audit import contracts, fileio
from readout_audit.demo.build import write_world
from tests.dag import conftest
from tests.dag.conftest import copy_project, planned

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit" / "api"))
from api_server import Answer, asked_text, bad, completion, good, serving

pytestmark = [pytest.mark.dag, pytest.mark.slow]
KEY = "a-key-of-the-test"
ALL = ("all", "--cores", "2", "--configfile", "mine.yaml")
READOUTS = ["legacy_8tok", "legacy_2tok", "dynamic_single", "first_token", "string_parse", "pope_official"]


def snakemake(project: Path, *arguments: str, **more: str):
    """Run Snakemake with this machine's own addresses allowed; the others stay blocked."""
    return conftest.snakemake(project, *arguments, no_proxy="127.0.0.1", **more)


def write_yaml(path: Path, value: Any) -> None:
    path.write_text(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), encoding="utf-8")


def own_dataset(**changes: Any) -> dict[str, Any]:
    """Entries of datasets.yaml for pictures and questions of one's own."""
    entry = {"description": "mine", "generated": False, "repository": None, "commit": None, "licence": None}
    entry |= {"image_namespace": "mine", "images": "my-pictures"}
    entry["splits"] = {"main": {"file": "questions.csv", "path": "own/questions.csv", "sha256": None}}
    pictures = {"description": "mine", "licence": None, "path": "own/images"}
    return {"known_datasets": {"mine": entry | changes}, "known_images": {"my-pictures": pictures}}


def run_config(**changes: Any) -> dict[str, Any]:
    """A small run over config/config.yaml."""
    return {
        "run": "mine", "datasets": ["mine"], "splits": ["main"], "models": ["tiny-llava"],
        "precisions": ["fp32"], "templates": ["authors"], "extra_cells": [], "reference_model": "tiny-llava",
        "readouts": READOUTS, "expect_excluded": False, "claims": False, "subsets": [],
        "inference": {"device": "cpu", "threads": 1, "verify_sample": 2, "compute_dtype": "float32"},
        "bootstrap": {"resamples": 50},
        "tables": ["table_01_first_tokens", "table_02_protocols", "table_04_readouts", "table_05_token_ids",
                   "table_10_encodings", "table_13_confusion", "table_readout_matrix", "table_disagreements",
                   "table_settings_audit"],
        "figures": ["figure_02_confusion", "figure_readout_matrix", "figure_ranking"],
        **changes,
    }  # fmt: skip


@pytest.fixture
def project(root: Path, tmp_path: Path) -> Path:
    """A copy of the project beside 12 pictures and 25 questions about them in a CSV, one without an object."""
    project = copy_project(root, tmp_path / "project")
    drawn = write_world(project / "own", 12)
    lines = ["image,question,label"]
    for row in drawn["adversarial"][::3]:
        lines.append(f"{row.image},{row.text},{row.label.upper()}")
    lines.append(f"{drawn['adversarial'][0].image},Do you see anything red?,no")
    (project / "own/questions.csv").write_text("\r\n".join(lines), encoding="utf-8-sig")
    return project


def read(project: Path, kind: str, schema: Any, model: str, precision: str) -> list[dict[str, Any]]:
    path = project / f"results/mine/{kind}/mine/{model}/{precision}/authors.parquet"
    rows: list[dict[str, Any]] = fileio.read_table(path, schema, kind).to_pylist()
    return rows


def answer(number: int, body: dict[str, Any]) -> Answer:
    """Yes to questions with an even number of letters, else no; "no" in lower case is not among the listed."""
    yes = len(asked_text(body)) % 2 == 0
    return good(completion([("Yes", -0.2), ("No", -1.9)] if yes else [("No", -0.3), ("The", -1.5)]))


def test_own_questions_and_a_served_model_beside_a_local_one(project: Path) -> None:
    write_yaml(project / "own.yaml", own_dataset())
    with serving(answer) as server:
        entry = {"adapter": "openai", "repository": None, "revision": None, "folder": None, "pickled": False}
        entry["server"] = {"url": server.url, "served_model": "org/far", "key_variable": "FAR_KEY"}
        prompt = {"text": None, "chat": True, "suffix": " Yes or no?", "answer_boundary": "clean"}
        config = {
            **own_dataset(),
            "known_models": {"far": entry},
            "known_templates": {"far": {"authors": prompt}},
        }
        write_yaml(project / "mine.yaml", {**config, **run_config(models=["tiny-llava", "far"])})

        unset = snakemake(project, *ALL)
        assert unset.returncode == 1
        assert "model far: the environment variable FAR_KEY is not set" in unset.stdout + unset.stderr
        assert not server.bodies

        result = snakemake(project, *ALL, FAR_KEY=KEY)
        said = result.stdout + result.stderr
        assert result.returncode == 0, said[-6000:]
        assert len(server.bodies) == 25 and KEY not in said
        assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
        assert planned(snakemake(project, *ALL, "-n")) == {}
        words = ["--model", "far", "--template", "authors", "--dataset", "mine", "--config", "mine.yaml"]
        asked = [sys.executable, "-m", "readout_audit.cli", "diagnose", *words, "--questions", "10"]
        env = conftest.environment(project, no_proxy="127.0.0.1", FAR_KEY=KEY)
        found = subprocess.run(asked, cwd=project, env=env, capture_output=True, text=True, check=False)
        assert found.returncode == 0 and "first tokens of 10 questions" in found.stdout, found.stderr[-3000:]
        assert len(server.bodies) == 25  # the run has asked them

    records = read(project, "records", contracts.RECORDS, "far", "served")
    assert len(records) == 25 and {row["status"] for row in records} == {"ok"}
    decisions = read(project, "decisions", contracts.decisions_schema(READOUTS), "far", "served")
    first = (project / "paper_tables/mine/table_01_first_tokens.csv").read_text(encoding="utf-8")
    assert "far,served" in first and "not_available,not_available" in first
    for row in decisions:
        wanted = "yes" if len(f"{row['question']} Yes or no?") % 2 == 0 else "no"
        assert {row[name] for name in ("dynamic_single", "first_token", "string_parse")} == {wanted}
        assert row["legacy_2tok"] is None and row["label"] in ("yes", "no")
    assert not (project / "results/mine/tokens/far.json").exists()
    assert [path.stem for path in (project / "results/mine/verified").rglob("*.json")] == ["authors"]

    # The local model's bare pair misses what it emits, and nobody said that this is meant.
    assert re.search(r"WARNING .*tiny-llava: legacy_2tok compares candidates that the decoder did not", said)
    page = (project / "results/mine/report.html").read_text(encoding="utf-8")
    assert 'class="warning"' in page and "tiny-llava" in page
    for folder in ("results", "logs", "paper_tables"):
        assert not any(
            KEY.encode() in path.read_bytes() for path in (project / folder).rglob("*") if path.is_file()
        )


def test_a_served_model_alone_needs_no_reference_and_resumes(project: Path) -> None:
    with serving(lambda number, body: answer(number, body) if number < 10 else bad(503)) as server:
        entry = {"adapter": "openai", "repository": None, "revision": None, "folder": None, "pickled": False}
        entry["server"] = {
            "url": server.url,
            "served_model": "m",
            "image": "none",
            "attempts": 1,
            "in_flight": 1,
        }
        prompt = {"text": None, "chat": True, "suffix": "", "answer_boundary": "clean"}
        config = {
            **own_dataset(),
            "known_models": {"far": entry},
            "known_templates": {"far": {"authors": prompt}},
        }
        run = run_config(
            models=["far"], reference_model="far", gap_pair=["first_token", "dynamic_single"],
            tables=["table_04_readouts", "table_05_token_ids"], figures=["figure_02_confusion"],
        )  # fmt: skip
        write_yaml(project / "mine.yaml", {**config, **run})
        stopped = snakemake(project, *ALL)
        assert stopped.returncode != 0 and "what was answered is kept" in stopped.stdout + stopped.stderr
        assert len(server.bodies) == 11
        server.answer = answer
        result = snakemake(project, *ALL)
        assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
        assert len(server.bodies) == 11 + 15
        assert isinstance(server.bodies[0]["messages"][0]["content"], str)
    config["known_models"]["far"]["server"]["revision"] = "other weights"
    write_yaml(project / "mine.yaml", {**config, **run})
    gone = snakemake(project, *ALL)
    assert gone.returncode == 1 and "model far: nothing answers at" in gone.stdout + gone.stderr


def test_questions_drawn_from_an_annotation(project: Path) -> None:
    splits = ("random", "popular", "adversarial")
    sampled = {"annotations": "own/annotations.json", "images": 5, "per_image": 2, "seed": 3}
    files = {
        split: {"file": f"{split}.json", "path": f"results/{{run}}/sampled/mine/{split}.json", "sha256": None}
        for split in splits
    }
    run = run_config(splits=list(splits))
    del run["tables"], run["figures"]  # all of config/config.yaml, as in the run of the README
    write_yaml(project / "mine.yaml", {**own_dataset(sampled=sampled, splits=files), **run})
    result = snakemake(project, *ALL)
    assert result.returncode == 0, (result.stdout + result.stderr)[-6000:]
    left_out = "table_03_survey, table_08_published, table_09_published, table_12_survey_readouts"
    said = f"so the run leaves out {left_out}, whose rows are the paper's."
    assert (result.stdout + result.stderr).count(said) == 1
    tables = {path.stem for path in (project / "paper_tables/mine").glob("*.csv")}
    assert len(tables) == 9 and not tables & set(left_out.split(", "))
    annotation = json.loads((project / "own/annotations.json").read_text(encoding="utf-8"))
    names = {one["id"]: one["name"] for one in annotation["categories"]}
    images = {one["id"]: one["file_name"] for one in annotation["images"]}
    present = {(images[one["image_id"]], names[one["category_id"]]) for one in annotation["annotations"]}
    rows = fileio.read_table(
        project / "results/mine/questions/mine.parquet", contracts.QUESTIONS, "q"
    ).to_pylist()
    assert len(rows) == 3 * 5 * 4 and len({row["image"] for row in rows}) == 5
    assert all(((row["image"], row["object"]) in present) is (row["label"] == "yes") for row in rows)
    assert planned(snakemake(project, *ALL, "-n")) == {}


def test_the_sentence_of_a_failed_job_is_the_last_line(project: Path) -> None:
    questions = project / "own/questions.csv"
    questions.write_text(
        questions.read_text(encoding="utf-8-sig").replace("YES", "MAYBE", 1), encoding="utf-8"
    )
    write_yaml(project / "mine.yaml", {**own_dataset(), **run_config()})
    target = "results/mine/questions/mine.parquet"
    stopped = snakemake(project, target, "--cores", "1", "--configfile", "mine.yaml")
    assert stopped.returncode == 1
    last = stopped.stderr.splitlines()[-1]
    assert last.startswith("error: own/questions.csv") and "MAYBE" in last
