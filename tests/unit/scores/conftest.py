"""Fixtures of the score tests."""

from pathlib import Path

import pytest

from scores.decision_files import table_7_rows, write_decisions
from scores.published import write_published


@pytest.fixture(scope="session")
def table_7(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decision file of Table 7's integers."""
    return write_decisions(tmp_path_factory.mktemp("table_7") / "decisions.parquet", table_7_rows())


@pytest.fixture(scope="session")
def published(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The authors' 9,000 LLaVA-1.5 decisions."""
    return write_published(shared / "mirror", tmp_path_factory.mktemp("published") / "decisions.parquet")
