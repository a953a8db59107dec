"""The rules against the scripts themselves, from their packages: `pip install --no-deps lmms-eval llava-torch`.

Neither package is a dependency, and nothing of them is imported but the one file; where they are not installed,
these tests are skipped, and the second implementations in test_readouts_harness.py stand for the originals.
"""

import importlib.util
import json
import re
from importlib import metadata as packages
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from readout_tables import metadata, records
from test_readouts_harness import PIECES

from readout_audit.readouts.registry import get
from readout_audit.scores.confusion import Confusion


def original(package: str, file: str) -> ModuleType:
    """Load one file of an installed package, and not the package."""
    try:
        path = Path(str(packages.distribution(package).locate_file(file)))
    except packages.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generated() -> tuple[list[str], list[str]]:
    rng = np.random.default_rng(610)
    pieces = [*PIECES, "yes", "no", "Yes", "No"]
    texts = ["".join(rng.choice(pieces, size=rng.integers(0, 7))) for _ in range(10_000)]
    return texts, ["yes" if bit else "no" for bit in rng.integers(0, 2, size=len(texts))]


def decided(name: str, texts: list[str]) -> list[str]:
    found: list[str] = get(name).decide(records(new_text=texts), metadata([])).decision.to_pylist()
    return found


def counted(decisions: list[str], labels: list[str]) -> Confusion:
    pairs = list(zip(decisions, labels, strict=True))
    cells = [
        ("yes", "yes"),
        ("yes", "no"),
        ("no", "no"),
        ("no", "yes"),
        ("unparsed", "yes"),
        ("unparsed", "no"),
    ]
    return Confusion(*(pairs.count(cell) for cell in cells))


def test_lmms_eval(generated):
    module = original("lmms-eval", "lmms_eval/tasks/pope/utils.py")
    texts, labels = generated
    rows = [
        module.pope_process_results({"question_id": n, "answer": label}, [text])["pope_f1_score"]
        for n, (text, label) in enumerate(zip(texts, labels, strict=True))
    ]
    ours = decided("lmms_eval", texts)
    said = [row["prediction"] if row["prediction"] in ("yes", "no") else "unparsed" for row in rows]
    assert ours == said and {"yes", "no", "unparsed"} <= set(said)
    figures = get("lmms_eval").figures(counted(ours, labels))
    theirs = {
        "accuracy": module.pope_aggregate_accuracy,
        "precision": module.pope_aggregate_precision,
        "recall": module.pope_aggregate_recall,
        "f1": module.pope_aggregate_f1_score,
        "yes_ratio": module.pope_aggregate_yes_ratio,
    }
    for name, aggregate in theirs.items():
        assert float(figures[name]) == pytest.approx(aggregate(rows), abs=1e-12), name


def test_llavas_copy_of_popes_rule(generated, tmp_path, capsys):
    module = original("llava-torch", "llava/eval/eval_pope.py")
    texts, labels = generated
    (tmp_path / "labels.json").write_text(
        "".join(json.dumps({"label": label}) + "\n" for label in labels), encoding="utf-8"
    )
    answers = [{"text": text} for text in texts]
    module.eval_pope(answers, tmp_path / "labels.json")
    ours = decided("pope_official", texts)
    assert ours == [answer["text"] for answer in answers]
    printed = dict(
        re.findall(r"^(Accuracy|Precision|Recall|F1 score|Yes ratio): (.*)$", capsys.readouterr().out, re.M)
    )
    figures = get("pope_official").figures(counted(ours, labels))
    names = {"Accuracy": "accuracy", "Precision": "precision", "Recall": "recall", "F1 score": "f1"}
    for theirs, name in {**names, "Yes ratio": "yes_ratio"}.items():
        assert float(figures[name]) == pytest.approx(float(printed[theirs]), abs=1e-12), name
