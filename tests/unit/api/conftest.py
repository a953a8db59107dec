"""Fixtures of the tests of the api package."""

from pathlib import Path

import pytest
from api_world import World, make_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Two pictures with three questions each."""
    return make_world(tmp_path)
