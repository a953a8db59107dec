"""Where `readout-audit preflight` finds a model: the project's definitions, and those of a run file."""

import shutil
from pathlib import Path

import pytest
import yaml

from readout_audit.errors import AuditError
from readout_audit.inference.cli import checked, checkpoint_folder, configured


@pytest.fixture
def project(root: Path, tmp_path: Path) -> Path:
    for name in ("config", "workflow/schemas"):
        shutil.copytree(root / name, tmp_path / name)
    return tmp_path


def own_run(project: Path, **changes: object) -> Path:
    """A run file that defines a model as a copy of the demo's, and its prompt."""
    known = yaml.safe_load((project / "config/models.yaml").read_text(encoding="utf-8"))["known_models"]
    prompt = {"text": None, "chat": True, "suffix": " Yes or no?", "answer_boundary": "clean"}
    path = project / "mine.yaml"
    run = {
        "known_models": {"mine": known["tiny-llava"] | changes},
        "known_templates": {"mine": {"authors": prompt}},
    }
    path.write_text(yaml.safe_dump(run), encoding="utf-8")
    return path


def test_a_model_of_a_run_file_is_found_beside_the_projects(project: Path) -> None:
    entry, templates, _ = configured(project, "mine", [own_run(project)])
    assert entry["adapter"] == "llava" and templates["authors"]["suffix"] == " Yes or no?"
    assert configured(project, "tiny-llava", [own_run(project)])[0] == entry


def test_an_entry_says_only_what_is_its_own(project: Path) -> None:
    path = project / "short.yaml"
    run = {
        "precisions": ["bf16"],
        "known_models": {"mine": {"adapter": "generic", "folder": "checkpoints/mine"}},
        "known_templates": {"mine": {"own": {"text": "{question}"}}},
    }
    path.write_text(yaml.safe_dump(run), encoding="utf-8")
    entry, templates, settings = configured(project, "mine", [path])
    assert entry == {
        "adapter": "generic",
        "repository": None,
        "revision": None,
        "folder": "checkpoints/mine",
        "pickled": False,
    }
    assert templates == {
        "own": {"text": "{question}", "chat": False, "suffix": "", "answer_boundary": "clean"}
    }
    assert settings["precisions"] == ["bf16"]


def test_a_model_that_no_file_defines_names_the_files_read(project: Path) -> None:
    with pytest.raises(AuditError, match=r"models\.yaml: model 'mine' is not known"):
        configured(project, "mine")
    with pytest.raises(AuditError, match=r"models\.yaml or .*mine\.yaml: model 'other' is not known"):
        configured(project, "other", [own_run(project)])


def test_a_folder_of_ones_own_that_is_not_there_names_the_key(project: Path) -> None:
    entry, _, _ = configured(project, "mine", [own_run(project, folder="my/chekpoint")])
    with pytest.raises(AuditError, match=r"known_models\.mine\.folder is 'my/chekpoint'"):
        checkpoint_folder(project, "mine", entry)


def test_a_malformed_entry_is_one_sentence(project: Path) -> None:
    with pytest.raises(AuditError, match=r"known_models\.mine"):
        configured(project, "mine", [own_run(project, adaptor="llava")])


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (0, "fp8", r"precision 'fp8' is not one of fp32, bf16, fp16, int8, nf4"),
        (1, "int8", r"compute_dtype 'int8' is not one of float32, bfloat16, float16"),
        (2, "squash", r"image_mode 'squash' is not one of as_is, pad"),
        (3, "flash", r"attention 'flash' is not one of sdpa, eager"),
        (4, "tpu", r"device 'tpu' is not one of auto, cpu, cuda"),
    ],
)
def test_an_option_that_cannot_be_meant_is_one_sentence(
    root: Path, place: int, value: str, said: str
) -> None:
    how = ["nf4", "float32", "as_is", "sdpa", "cpu"]
    how[place] = value
    folder = root / "resources/demo/models/tiny-llava"
    with pytest.raises(AuditError, match=said):
        checked("tiny-llava", "llava", folder, {}, (how[0], how[1], how[2], how[3], how[4]))
