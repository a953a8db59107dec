"""Settings: what is hashed, and what is refused."""

import json
from pathlib import Path

import pytest
import torch

from readout_audit.errors import AuditError
from readout_audit.inference.description import candidate_ids
from readout_audit.inference.settings import Settings

from .conftest import World

WORLD = World(Path(), Path(), Path(), Path())


def parse(**changes: object) -> Settings:
    return Settings.parse(json.dumps(WORLD.settings(**changes)))


def test_the_id_depends_on_every_value_and_on_no_order() -> None:
    value = WORLD.settings()
    backwards = json.dumps(dict(reversed(value.items())))
    assert Settings.parse(backwards).settings_id == parse().settings_id
    for change in (
        {"attention": "eager"},
        {"precision": "fp16", "compute_dtype": None},
        {"max_new_tokens": 5},
    ):
        assert parse(**change).settings_id != parse().settings_id


def test_the_spec_is_what_an_adapter_loads() -> None:
    spec = parse(precision="nf4", compute_dtype="bfloat16").spec(Path("x"), torch.device("cpu"))
    assert (spec.precision, spec.compute_dtype, spec.image_mode) == ("nf4", "bfloat16", "as_is")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"beams": 5}, r"unknown keys \['beams'\]"),
        ({"precision": None}, "precision None is not one of"),
        ({"precision": "int4"}, "precision 'int4' is not one of"),
        ({"precision": "fp16", "compute_dtype": "float32"}, "computes in its own dtype"),
        ({"precision": "nf4", "compute_dtype": None}, "needs a compute_dtype"),
        ({"precision": "nf4", "compute_dtype": "half"}, "compute_dtype 'half' is not one of"),
        ({"engine": {"name": "sequential"}}, "exactly the keys name and batch_size"),
        ({"engine": {"name": "sequential", "batch_size": 0}}, "engine.batch_size is 0"),
        ({"max_new_tokens": True}, "max_new_tokens is True"),
        ({"repository": "a/b"}, "not both"),
        ({"folder": None}, "repository or its folder"),
        ({"template": {"name": "t", "text": "no place"}}, "must hold {question} exactly once"),
        ({"template": {"name": "t", "text": "{question}", "chat": True}}, "not both and not neither"),
        ({"template": {"name": "t", "chat": True, "system": "x"}}, "unknown keys system"),
        (
            {"template": {"name": "t", "text": "{question} Yes.", "suffix": " Yes."}},
            "already part of its text",
        ),
        ({"template": {"name": "t", "chat": True, "answer_boundary": "soft"}}, "answer_boundary is 'soft'"),
    ],
)
def test_what_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(AuditError, match=message):
        parse(**changes)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_no_json_object(text: str) -> None:
    with pytest.raises(AuditError, match="the settings"):
        Settings.parse(text)


def test_candidates_are_the_union_of_all_rules_with_a_row() -> None:
    sets = {
        "legacy": {"model": "r", "yes": {"yes": 7, "Yes": None}, "no": {"no": 900, "No": 3}},
        "single": {"yes": [1], "no": [3]},
        "scan": {"yes": [1, 2], "no": [4]},
        "in_context": {"yes": [5], "no": [3]},
    }
    assert candidate_ids(sets, rows=100) == ([1, 2, 3, 4, 5, 7], [900])
