"""Fixtures of the score tests."""

from pathlib import Path

import pytest

from scores.decision_files import table_7_rows, write_decisions


@pytest.fixture(scope="session")
def table_7(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decision file of Table 7's integers."""
    return write_decisions(tmp_path_factory.mktemp("table_7") / "decisions.parquet", table_7_rows())
