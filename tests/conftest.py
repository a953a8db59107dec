"""Fixtures shared by all tests."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, not whether the code is right.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The same examples in every run, so that a red test means a change; `--hypothesis-profile explore` draws new ones.
settings.register_profile("steady", settings.get_profile("explore"), derandomize=True)
settings.load_profile("steady")

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
