"""docs/readouts.md, "A readout of your own": what stands there is run as it stands there."""

import ast
import importlib.util
import math
import re
import sys

import pytest
import yaml
from readout_tables import metadata, records, sets

from readout_audit.readouts.registry import READOUTS, get

META = metadata([1, 2], single=sets([1], [2]))


@pytest.fixture(scope="module")
def blocks(root):
    """The section's code blocks: module, registry line, run file, commands."""
    page = (root / "docs/readouts.md").read_text(encoding="utf-8")
    section = page.partition("## A readout of your own\n")[2].partition("\n## ")[0]
    return re.findall(r"^```\w+\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)


@pytest.fixture
def cautious(blocks, tmp_path, monkeypatch):
    """The readout, found by name through the registry once its line is there."""
    ((name, place),) = ast.literal_eval("{" + blocks[1] + "}").items()
    module_name = place.partition(":")[0]
    path = tmp_path / f"{module_name.rpartition('.')[2]}.py"
    path.write_text(blocks[0], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(module_name, path)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module_name, module)
    spec.loader.exec_module(module)
    monkeypatch.setitem(READOUTS, name, place)
    yield get(name)
    get.cache_clear()


def test_it_decides_by_nine_to_one(cautious):
    # Odds of 9.5 and 8.5 to 1, level, and a row without logits; the largest logit alone calls the second a yes.
    table = records([[math.log(9.5), 0.0], [math.log(8.5), 0.0], [0.0, 0.0], None])
    decided = cautious.decide(table, META)
    assert decided.decision.to_pylist() == ["yes", "no", "no", "invalid"]
    margins = decided.margin.to_pylist()
    assert margins[:3] == pytest.approx([math.log(9.5 / 9), math.log(8.5 / 9), -math.log(9)], abs=1e-6)
    assert margins[3] is None
    assert get("dynamic_single").decide(table, META).decision.to_pylist()[1] == "yes"


def test_a_server_that_lists_few_tokens_leaves_unparsed_what_is_open(cautious):
    served = META | {"unlisted": "null: at most the last of top_logits"}
    # No is not listed. With 0.01 left over 0.95 is more than nine times as likely; with 0.2 left over, 0.5 may not be.
    probabilities = [([0.95, None], [0.95, 0.04]), ([0.5, None], [0.5, 0.3])]
    table = records(
        [[p and math.log(p) for p in candidates] for candidates, _ in probabilities],
        top_logits=[[math.log(p) for p in top] for _, top in probabilities],
        log_z=[0.0, 0.0],
    )
    assert cautious.decide(table, served).decision.to_pylist() == ["yes", "unparsed"]


def test_the_run_file_and_the_commands_name_what_is_there(blocks, root, cautious):
    run = yaml.safe_load(blocks[2])
    demo = yaml.safe_load((root / "config/demo.yaml").read_text(encoding="utf-8"))
    assert run["records_from"] == "files" and run.keys() <= demo.keys()
    assert set(run["gap_pair"]) <= set(run["readouts"]) <= set(READOUTS)
    assert cautious.name in run["readouts"] and f"--readout {cautious.name}" in blocks[3]
