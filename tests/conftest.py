"""Fixtures shared by all tests."""

from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository root."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Real releases, tokenizers and golden tensors, kept beside the repository; not part of it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("../shared (real question files, tokenizers, golden tensors) is not there")
    return folder
