"""docs/tables-and-figures.md names every table and figure, and nothing else."""

import re

import pytest

from readout_audit.figures.registry import FIGURES
from readout_audit.tables.registry import TABLES


@pytest.mark.parametrize(("kind", "registry"), [("table", TABLES), ("figure", FIGURES)])
def test_the_page_lists_the_registry(root, kind, registry):
    text = (root / "docs/tables-and-figures.md").read_text(encoding="utf-8")
    listed = re.findall(rf"^\| `({kind}_\w+)` \|", text, re.MULTILINE)
    assert sorted(listed) == sorted(registry)
    assert len(set(listed)) == len(listed)
