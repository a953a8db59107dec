"""Which token maps a run has: of models it asks, of tokenizers in a mirror, or none."""

from pathlib import Path
from types import SimpleNamespace

from readout_audit.config.wiring import Wiring


def plan(source: str, mirror: Path | None) -> Wiring:
    """Return the parts of a plan that are read: two models of the hub."""
    return Wiring(
        {
            "run": "r",
            "records_from": source,
            "records_folder": None,
            "models": ["one", "two"],
            "precisions": ["nf4"],
            "templates": ["authors"],
            "extra_cells": [],
            "reference_model": "one",
            "mirror": str(mirror) if mirror else None,
            "known_models": {
                "one": {"repository": "Some/One-7B-hf", "folder": None},
                "two": {"repository": "Some/Two-7B", "folder": None},
            },
        }
    )


def folder_with(path: Path, *names: str) -> Path:
    path.mkdir(parents=True)
    for name in names:
        (path / name).write_text("{}", encoding="utf-8")
    return path


def test_published_numbers_have_no_token_map_without_a_tokenizer(tmp_path: Path) -> None:
    for source in ("counts", "published"):
        assert plan(source, None).token_maps == {}
        assert plan(source, tmp_path).token_maps == {}


def test_a_tokenizer_alone_in_the_mirror_is_mapped(tmp_path: Path) -> None:
    alone = folder_with(tmp_path / "tokenizers/one-7b-hf", "tokenizer.json", "config.json", "tokenizer.model")
    found = plan("counts", tmp_path)
    assert found.token_maps == {"one": "results/r/tokens/one.json"}
    job = SimpleNamespace(model="one")
    assert found.tokenizer_folder(job) == str(alone)
    assert found.tokenizer_files(job) == [str(alone / "config.json"), str(alone / "tokenizer.json")]


def test_a_whole_checkpoint_in_the_mirror_goes_first(tmp_path: Path) -> None:
    folder_with(tmp_path / "tokenizers/two-7b")
    whole = folder_with(tmp_path / "models/two", "config.json")
    found = plan("published", tmp_path)
    assert found.token_maps == {"two": "results/r/tokens/two.json"}
    assert found.tokenizer_folder(SimpleNamespace(model="two")) == str(whole)


def test_a_run_that_asks_maps_every_model(tmp_path: Path) -> None:
    found = plan("inference", tmp_path)
    assert list(found.token_maps) == ["one", "two"]
    job = SimpleNamespace(model="two")
    assert found.tokenizer_folder(job) == "resources/fetched/models/two"
    assert found.tokenizer_files(job) == ["resources/fetched/models/two.json"]
