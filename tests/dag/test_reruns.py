"""What an edit reruns, job by job: a change that alters no answer asks no model again."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from tests.dag.conftest import change, planned, snakemake

pytestmark = [pytest.mark.dag, pytest.mark.slow]
DEMO = ("all", "--cores", "2", "--configfile", "config/demo.yaml")
ASKING = {
    "ask_model",
    "map_tokens",
    "merge_shards",
    "build_questions",
    "make_demo_world",
    "compute_signals",
    "merge_signals",
    "verify_engine",
}
"""Rules that draw, ask or load a model."""


@pytest.fixture
def finished(demo: Path, tmp_path: Path) -> Path:
    """A copy of the finished demo, times kept, that a test may spoil."""
    return shutil.copytree(demo, tmp_path / "project", symlinks=True)


def values_of(project: Path) -> dict:
    return yaml.safe_load((project / "config/demo.yaml").read_text(encoding="utf-8"))


def edit(path: Path, function: Callable[[str], str]) -> None:
    text = path.read_text(encoding="utf-8")
    assert function(text) != text
    path.write_text(function(text), encoding="utf-8")


def dry(project: Path) -> dict[str, int]:
    return planned(snakemake(project, *DEMO, "-n"))


def test_copy_is_finished_too(finished: Path) -> None:
    assert dry(finished) == {}


def test_touching_every_source_file_reruns_nothing(finished: Path) -> None:
    for folder in ("src", "workflow", "resources", "config"):
        for path in (finished / folder).rglob("*"):
            if path.is_file():
                path.touch()
    assert dry(finished) == {}


def test_a_comment_in_every_script_and_stage_reruns_nothing(finished: Path) -> None:
    scripts = [*(finished / "workflow/scripts").glob("*.py"), *(finished / "src/readout_audit").rglob("*.py")]
    assert len(scripts) > 50
    for script in scripts:
        edit(script, lambda text: text + "\n# a comment\n")
    assert dry(finished) == {}


def test_a_docstring_reruns_nothing(finished: Path) -> None:
    edit(
        finished / "src/readout_audit/inference/shared_prefix.py",
        lambda text: re.sub(r'^"""', '"""Edited. ', text, count=1),
    )
    assert dry(finished) == {}


def test_an_adapter_that_is_not_used_reruns_nothing(finished: Path) -> None:
    edit(finished / "src/readout_audit/models/qwen2_vl.py", lambda text: text + "\nEDITED = 1\n")
    assert dry(finished) == {}


def test_the_adapter_that_is_used_asks_again(finished: Path) -> None:
    edit(finished / "src/readout_audit/models/llava.py", lambda text: text + "\nEDITED = 1\n")
    jobs = dry(finished)
    cells = len(values_of(finished)["models"])
    assert jobs["ask_model"] == jobs["merge_shards"] == jobs["decide"] == cells
    assert not jobs.keys() & {"build_questions", "make_demo_world", "map_tokens"}


def test_a_readout_redoes_cpu_work_only(finished: Path) -> None:
    change(finished, readouts=[*values_of(finished)["readouts"], "vocab_scan"])
    jobs = dry(finished)
    assert not jobs.keys() & ASKING
    assert jobs["decide"] == jobs["score"] == len(values_of(finished)["models"])


def test_an_edited_readout_redoes_cpu_work_only(finished: Path) -> None:
    edit(finished / "src/readout_audit/readouts/strings.py", lambda text: text + "\nEDITED = 1\n")
    jobs = dry(finished)
    assert jobs and not jobs.keys() & ASKING


def test_a_table_module_redoes_that_table_only(finished: Path) -> None:
    edit(finished / "src/readout_audit/tables/table_13_confusion.py", lambda text: text + "\nEDITED = 1\n")
    assert dry(finished) == {"make_table": 1, "build_report": 1}


def test_a_model_adds_its_own_cell(finished: Path) -> None:
    models = values_of(finished)["models"]
    change(finished, models=models[:-1])
    less = dry(finished)
    assert not less.keys() & {"ask_model", "decide", "score", "measure_gap"}
    added = {
        "repository": None, "revision": None, "pickled": False, "adapter": "llava",
        "folder": "resources/demo/models/tiny-llava",
    }  # fmt: skip
    indented = "".join(f"  {line}\n" for line in yaml.safe_dump({"another": added}).splitlines())
    edit(
        finished / "config/models.yaml",
        lambda text: text.replace("known_models:\n", f"known_models:\n{indented}", 1),
    )
    edit(
        finished / "config/templates.yaml",
        lambda text: (
            text
            + '  another:\n    authors: {text: "<image> {question}", chat: false, suffix: "", answer_boundary: clean}\n'
        ),
    )
    change(finished, models=[*models, "another"])
    jobs = dry(finished)
    assert jobs["ask_model"] == jobs["map_tokens"] == jobs["merge_shards"] == 1
    assert jobs["decide"] == jobs["score"] == jobs["measure_gap"] == jobs["compare_splits"] == 1
    assert "build_questions" not in jobs


def asked_again(project: Path) -> list[tuple[int, int]]:
    """Return (distinct questions, already answered) from every inference log."""
    logs = (project / "logs/demo/ask_model").rglob("*.log")
    found = [
        re.search(r"(\d+) distinct questions.*?(\d+) already answered", log.read_text("utf-8"))
        for log in logs
    ]
    return [(int(match[1]), int(match[2])) for match in found if match]


def records(project: Path) -> list:
    return [pq.read_table(path) for path in sorted((project / "results/demo/records").rglob("*.parquet"))]


def test_another_number_of_shards_asks_nothing_twice(finished: Path) -> None:
    before = records(finished)
    shutil.rmtree(finished / "logs/demo/ask_model")
    inference = values_of(finished)["inference"] | {"shards": 3}
    change(finished, inference=inference)
    cells = len(values_of(finished)["models"])
    assert dry(finished)["ask_model"] == 3 * cells
    result = snakemake(finished, *DEMO, "--until", "merge_shards")
    assert result.returncode == 0, result.stderr[-3000:]
    counts = asked_again(finished)
    assert len(counts) == 3 * cells
    assert all(asked == answered for asked, answered in counts)
    assert all(old.equals(new) and old.schema.metadata == new.schema.metadata
               for old, new in zip(before, records(finished), strict=True))  # fmt: skip


def test_a_split_asks_only_its_new_questions(finished: Path) -> None:
    shutil.rmtree(finished / "logs/demo/ask_model")
    change(finished, splits=["random", "popular"], models=["tiny-llava"])
    shutil.rmtree(finished / "results/.parts")
    fewer = snakemake(finished, *DEMO, "--until", "merge_shards")
    assert fewer.returncode == 0, fewer.stderr[-3000:]
    [(without, answered)] = asked_again(finished)
    assert answered == 0
    change(finished, splits=["random", "popular", "adversarial"])
    more = snakemake(finished, *DEMO, "--until", "merge_shards")
    assert more.returncode == 0, more.stderr[-3000:]
    [(with_it, answered)] = asked_again(finished)
    assert answered == without < with_it


def test_a_release_asks_only_what_is_new(finished: Path) -> None:
    """A second release that shares its pictures and wording with the first is answered from the parts."""
    edit(finished / "config/datasets.yaml", _with_second_release)
    change(finished, datasets=["demo-pope", "demo-again"], models=["tiny-llava"])
    shutil.rmtree(finished / "logs/demo/ask_model")
    assert dry(finished)["ask_model"] == 1
    result = snakemake(finished, *DEMO, "--until", "merge_shards")
    assert result.returncode == 0, result.stderr[-3000:]
    [(asked, answered)] = asked_again(finished)
    assert asked == answered


def _with_second_release(text: str) -> str:
    """Return datasets.yaml with a copy of the demo's release under another name."""
    release = yaml.safe_load(text)["known_datasets"]["demo-pope"]
    copied = yaml.safe_dump({"demo-again": release}, sort_keys=False)
    indented = "".join(f"  {line}\n" for line in copied.splitlines())
    return text.replace("known_datasets:\n", f"known_datasets:\n{indented}", 1)
