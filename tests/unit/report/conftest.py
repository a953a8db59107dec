"""Fixtures of the report tests."""

from pathlib import Path

import pytest

from readout_audit.report.inputs import Files, RunData
from readout_audit.report.page import build_page
from report.reading import Page, read_page
from report.small_run import PAIR, make_run


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """The files of the small run."""
    return make_run(tmp_path_factory.mktemp("small run"))


@pytest.fixture(scope="session")
def html(files: Files) -> str:
    """The page of the small run."""
    return build_page("<script>alert(0)</script>", RunData(files, PAIR))


@pytest.fixture(scope="session")
def page(html: str) -> Page:
    """The page as a browser's parser sees it."""
    return read_page(html)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder."""
    return tmp_path
