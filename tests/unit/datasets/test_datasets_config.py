"""What config/datasets.yaml states, as far as it can be checked without the files themselves."""

import re
from pathlib import PurePosixPath

import pytest
import yaml

from readout_audit.config.plan import prediction_files

FETCHED = ("known_datasets", "known_labels", "known_published")
SPLITS = {"adversarial", "popular", "random"}


@pytest.fixture(scope="module")
def config(root):
    return yaml.safe_load((root / "config/datasets.yaml").read_text())


@pytest.fixture(scope="module")
def files(config):
    """Every fetched file: (entry, its description of the file)."""
    entries = [entry for key in FETCHED for entry in config[key].values() if not entry.get("generated")]
    diagnostics = [
        (entry | entry["diagnostic"], entry["diagnostic"]) for entry in entries if "diagnostic" in entry
    ]
    described = [(entry, file) for entry in entries for file in entry["splits"].values()] + diagnostics
    further = config["known_predictions"].values()
    return described + [(entry, file) for entry in further for file in prediction_files(entry)]


def test_every_file_is_pinned_by_commit(files):
    # 6 releases, RePOPE and 2 published sets of 3 splits, one set of one split and a diagnostic; 6 predictions,
    # 4 of them with a summary.
    assert len(files) == 6 * 3 + 3 + 2 * 3 + 1 + 1 + 6 + 4
    for entry, file in files:
        assert re.fullmatch("[0-9a-f]{40}", entry["commit"])
        assert file["url"].startswith(
            f"https://raw.githubusercontent.com/{entry['repository']}/{entry['commit']}/"
        )
        assert file["url"].endswith(f"/{file['file']}")


def test_mirror_paths_are_plain_and_unique(files):
    paths = [file["mirror"] for _, file in files]
    assert len(set(paths)) == len(paths)
    for path in paths:
        parts = PurePosixPath(path).parts
        assert parts[0] in {"pope", "repope", "published"}
        assert ".." not in parts


def test_hashes_are_hashes_or_locked_later(config):
    for key in FETCHED:
        for entry in config[key].values():
            for file in entry["splits"].values():
                unknown = key == "known_published" or entry.get("generated")
                assert (file["sha256"] is None) == bool(unknown)
                if not unknown:
                    assert re.fullmatch("[0-9a-f]{64}", file["sha256"])
                    assert re.fullmatch("[0-9a-f]{64}", file["content_sha256"])
    assert config["known_published"]["llava-1.5-7b"]["diagnostic"]["sha256"] is None


def test_entries_name_known_image_sets_and_releases(config):
    for entry in config["known_datasets"].values():
        assert entry["images"] in config["known_images"]
        assert set(entry["splits"]) == SPLITS
    for entry in config["known_labels"].values():
        made_on = config["known_datasets"][entry["made_on"]]
        assert entry["image_namespace"] == made_on["image_namespace"]
    for entry in [*config["known_published"].values(), *config["known_predictions"].values()]:
        assert entry["dataset"] in config["known_datasets"]


def test_sets_that_ask_alike_have_name_spaces_of_their_own(config):
    spaces = {name: entry["image_namespace"] for name, entry in config["known_datasets"].items()}
    families: dict[str, set[str]] = {}
    for name, space in spaces.items():
        families.setdefault(name.split("-")[0], set()).add(space)
    # Releases of one family ask about the same pictures under the same labels; no two families share a name space.
    assert all(len(found) == 1 for found in families.values())
    assert len(set().union(*families.values())) == len(families)
