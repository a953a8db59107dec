"""A model-template pair without records: its sample, what is refused before anything is asked, and one real asking."""

import json
import shutil
import socket
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest
import typer
import yaml
from typer.testing import CliRunner

from readout_audit.contracts import QUESTIONS, RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata, write_table
from readout_audit.inference.pair import Pair, ask_sample, draw, find_pictures, plan_of
from readout_audit.readouts.diagnose_cli import diagnose
from readout_audit.stages import fetch_images

PAIR = Pair("tiny-llava", "authors", "demo-pope", "fp32")


@pytest.fixture
def project(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of what the command reads, as the current folder."""
    for name in ("config", "workflow/schemas", "resources/paper", "resources/demo/models/tiny-llava"):
        shutil.copytree(root / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def table(uids: str) -> pa.Table:
    rows = [
        {
            "uid": uid, "dataset": "toy", "split": str(place), "question_id": "1", "image": "a.jpg",
            "image_namespace": "toy", "object": "dog", "question": uid, "label": "yes",
        }
        for place, uid in enumerate(uids)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=QUESTIONS)


def test_the_draw_is_seeded_and_of_different_questions_in_the_tables_order():
    drawn = draw(table("abcabdab"), 3, 42)["uid"].to_pylist()
    assert drawn == sorted(drawn) and len(set(drawn)) == 3
    assert drawn == draw(table("abcabdab"), 3, 42)["uid"].to_pylist()
    assert any(drawn != draw(table("abcabdab"), 3, seed)["uid"].to_pylist() for seed in range(5))
    assert draw(table("aabb"), 2, 0)["split"].to_pylist() == ["0", "2"]
    with pytest.raises(AuditError, match="5 questions were asked for; toy has 4 different ones"):
        draw(table("abcabdab"), 5, 42)


def test_the_plan_asks_this_pair_alone_and_takes_the_rest_from_the_run(project: Path):
    plan = plan_of(PAIR._replace(precision=None), [Path("config/demo.yaml")])
    assert [cell.path for cell in plan.cells] == ["demo-pope/tiny-llava/fp32/authors"]
    assert plan.reference == "tiny-llava" and plan.config["inference"]["batch_size"] == 32
    assert json.loads(plan.settings("tiny-llava", "fp32", "authors"))["folder"].endswith("tiny-llava")
    assert plan_of(PAIR._replace(precision=None), []).cells[0].precision == "nf4"
    # llava-1.5-7b is the reference of config/config.yaml, and its tokenizer is not here.
    assert plan_of(PAIR, []).reference == "tiny-llava"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": "tiny-lava"}, "did you mean 'tiny-llava'?"),
        ({"template": "nope"}, "model tiny-llava does not have"),
        ({"dataset": "nope"}, "datasets names 'nope'"),
        ({"precision": "fp8"}, "precisions is 'fp8', but must be one of fp32"),
        ({"reference": "llava-1.5-7b"}, "its tokenizer is not here"),
        ({"reference": "nope"}, "config/models.yaml does not define it"),
    ],
)
def test_a_name_that_is_not_known_is_one_sentence(project: Path, change: dict[str, str], said: str):
    with pytest.raises(AuditError, match=said):
        plan_of(PAIR._replace(**change), [])


def call(*arguments: str):
    app = typer.Typer()
    app.command()(diagnose)
    return CliRunner().invoke(app, [*arguments])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "give either a record file, or --model, --template and --dataset"),
        (("--model", "tiny-llava"), "give either a record file, or --model, --template and --dataset"),
        (("r.parquet", "--model", "tiny-llava"), "give either a record file"),
        (
            ("--model", "m", "--template", "t", "--dataset", "d", "--root", "nowhere"),
            "--root nowhere: not a folder",
        ),
        (
            ("--model", "m", "--template", "t", "--dataset", "d", "--root", "config"),
            "call this in the project's folder",
        ),
    ],
)
def test_half_a_pair_or_another_folder_is_one_sentence(project: Path, arguments: tuple[str, ...], said: str):
    result = call(*arguments)
    assert result.exit_code == 2 and said in result.output and "Traceback" not in result.output


@pytest.mark.slow
def test_a_pair_without_records_is_asked_and_asked_only_once(project: Path, monkeypatch: pytest.MonkeyPatch):
    run = yaml.safe_load((project / "config/demo.yaml").read_text(encoding="utf-8"))
    (project / "mine.yaml").write_text(yaml.safe_dump({"inference": run["inference"]}), encoding="utf-8")
    words = (
        "--model",
        "tiny-llava",
        "--template",
        "authors",
        "--dataset",
        "demo-pope",
        "--precision",
        "fp32",
    )
    words = (*words, "--config", "mine.yaml", "--questions", "6", "--output", "found.json")
    monkeypatch.chdir(project.parent)
    for name in ("mine.yaml",):
        shutil.copy(project / name, project.parent / name)
    first = call(*words, "--root", str(project))
    assert first.exit_code == 1, first.output
    assert "legacy_2tok: EXCLUDES" in first.output and "sets to use instead" in first.output
    found = json.loads((project.parent / "found.json").read_text(encoding="utf-8"))
    assert found["rows"] == 6 and found["reads_excluded_candidates"] == ["legacy_2tok"]
    assert sum(token["count"] for token in found["top_tokens_generated"]) == 6
    path = project / "results/diagnosed/demo-pope/tiny-llava/fp32/authors/records.parquet"
    records = read_table(path, RECORDS, "records")
    again = call(*words, "--root", str(project))
    assert again.exit_code == 1
    kept = read_table(path, RECORDS, "records")
    assert kept.equals(records) and table_metadata(kept) == table_metadata(records)
    assert json.loads(path.with_suffix(".manifest.json").read_text(encoding="utf-8"))["asked"] == 0


@pytest.fixture
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> str:
    """The hub's address, where nothing listens; and no proxy is asked instead."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setenv("HF_ENDPOINT", address)
    return address


def test_a_model_that_cannot_be_fetched_is_one_sentence_before_anything_is_made(
    project: Path, nobody_listens: str
):
    with pytest.raises(AuditError) as caught:
        ask_sample(Pair("llava-1.5-7b", "authors", "demo-pope", "nf4"), [], 5, 0)
    said = str(caught.value)
    assert said.startswith("not here yet: models/llava-1.5-7b.json; 127.0.0.1 cannot be reached (")
    assert "`snakemake all --cores 1 --until fetch_images fetch_model`" in said
    assert not (project / "results").exists()


def test_a_picture_that_cannot_be_fetched_is_one_sentence(
    project: Path, nobody_listens: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(fetch_images, "main", lambda words: pytest.fail("a fetch was begun"))
    plan = plan_of(PAIR._replace(dataset="coco-2023-10"), [])
    plan.config["known_images"]["coco-val2014"]["url"] = f"{nobody_listens}/{{image}}"
    asked = project / "asked.parquet"
    write_table(asked, table("a"), QUESTIONS)
    with pytest.raises(AuditError, match=r"^not here yet: a\.jpg; 127\.0\.0\.1 cannot be reached"):
        find_pictures(plan, SimpleNamespace(dataset="coco-2023-10"), asked, project)
    # With all of the sample's pictures here the host is not asked.
    there = project / "resources/fetched/images/coco"
    there.mkdir(parents=True)
    (there / "a.jpg").write_bytes(b"")
    begun = []
    monkeypatch.setattr(fetch_images, "main", begun.append)
    find_pictures(plan, SimpleNamespace(dataset="coco-2023-10"), asked, project)
    assert len(begun) == 1
