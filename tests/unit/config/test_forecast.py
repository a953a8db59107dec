"""What a run is said to ask, counted by hand from files that are here, and what is said of those that are not."""

import json
import shutil
from pathlib import Path

import pytest

from readout_audit.config.forecast import forecast
from readout_audit.config.load import load_plan, merged
from readout_audit.config.preparation import known_names
from readout_audit.config.wiring import Wiring

RUN = """
run: mine
datasets: [mine]
splits: [main]
models: [tiny-llava, llava-1.5-7b]
precisions: [bf16, fp32]
templates: [authors]
extra_cells: []
claims: false
subsets: []
known_datasets:
  mine:
    description: "Mine."
    generated: false
    repository: null
    commit: null
    licence: null
    image_namespace: mine
    images: my-pictures
    splits:
      main: {file: q.jsonl, path: q.jsonl, sha256: null}
known_images:
  my-pictures: {description: "Mine.", licence: null, path: pictures}
"""
ASKED = [("a.png", "Is there a dog?"), ("a.png", "Is there a cat?"), ("b.png", "Is there a dog?")]


def shard(model: str, precision: str, number: int = 1) -> tuple[str, str]:
    return "ask_model", f"results/mine/shards/mine/{model}/{precision}/authors/{number}-of-2.parquet"


@pytest.fixture
def plan(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wiring:
    """The plan of a run in a copy of what it reads."""
    for name in ("config", "workflow/schemas", "resources/paper", "resources/demo/models/tiny-llava"):
        shutil.copytree(root / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(RUN, encoding="utf-8")
    Path("pictures").mkdir()
    rows = [{"image": image, "question": text, "label": "yes"} for image, text in [*ASKED, ASKED[0]]]
    Path("q.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    files = [f"config/{name}.yaml" for name in ("models", "templates", "datasets", "config")]
    config = merged([*map(Path, files), Path("mine.yaml")])
    return Wiring(load_plan(config, Path("workflow/schemas"), known_names()).config)


def test_questions_weights_and_disk_are_counted_once_per_cell(plan: Wiring) -> None:
    """Four rows ask three things about two pictures; tiny-llava has 822,208 parameters, in bf16 2 bytes each."""
    due = [
        shard("tiny-llava", "bf16"), shard("tiny-llava", "bf16", 2), shard("tiny-llava", "fp32"),
        ("score", "results/mine/scores/x.parquet"),
    ]  # fmt: skip
    lines = forecast(plan, due)
    assert lines[0] == "mine: 3 distinct questions about 2 pictures, asked in 2 cells."
    assert lines[1].startswith("tiny-llava in bf16: 0.8 million parameters, about 1.6 MiB")
    assert lines[2].startswith("tiny-llava in fp32: 0.8 million parameters, about 3.1 MiB")
    # 6 answers of 850 + 1,700 bytes.
    assert lines[3].startswith("In all at most 6 answers, about 0.0 MB on disk")


def test_what_is_not_here_is_said_not_to_be_known(plan: Wiring) -> None:
    Path("q.jsonl").unlink()
    lines = forecast(plan, [shard("llava-1.5-7b", "bf16")])
    assert lines[0].startswith("mine: its questions are not here yet")
    assert lines[1] == "Not here yet, so that what their weights take is not known: llava-1.5-7b."
    assert not any("In all" in line for line in lines)


def test_a_checkpoint_that_is_half_fetched_is_not_counted(plan: Wiring) -> None:
    folder = Path("resources/fetched/models/llava-1.5-7b")
    shutil.copytree("resources/demo/models/tiny-llava", folder)
    due = [shard("llava-1.5-7b", "fp32")]
    assert forecast(plan, due)[1].startswith("Not here yet")
    folder.with_name("llava-1.5-7b.json").write_text("{}", encoding="utf-8")
    assert "0.8 million parameters" in forecast(plan, due)[1]


def test_a_run_that_asks_nothing_says_nothing(plan: Wiring) -> None:
    assert forecast(plan, [("score", "results/mine/scores/x.parquet")]) == []
