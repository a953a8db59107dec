"""Worlds in which little or nothing can be told: every stage, table and figure says so and none stops."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corrections.made import FIGURES, TABLES, world, write_decisions, write_records, write_signals
from corrections.run_files import KINDS
from readout_audit.figures import registry as figures
from readout_audit.figures import style
from readout_audit.fileio import read_table
from readout_audit.stages import correct, probe
from readout_audit.tables import registry as tables
from readout_audit.tables.base import Table
from readout_audit.tables.inputs import Options, RunTables, Sources

World = tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]


def gap_of(record: dict[str, Any]) -> float:
    """Largest yes logit minus largest no logit: candidates 0 and 1 mean yes, 2 and 3 no."""
    logits = record["candidate_logits"]
    return float(max(logits[:2]) - max(logits[2:]))


def one_image() -> World:
    return world(images=1)


def one_label() -> World:
    records, signals, decisions = world(images=4)
    return records, signals, [row | {"label": "no"} for row in decisions]


def all_right() -> World:
    records, signals, decisions = world(images=4)
    labels = ["yes" if gap_of(one) > 0 else "no" for one in records]
    return records, signals, [row | {"label": label} for row, label in zip(decisions, labels, strict=True)]


def all_wrong() -> World:
    records, signals, decisions = all_right()
    turned = {"yes": "no", "no": "yes"}
    return records, signals, [row | {"label": turned[row["label"]]} for row in decisions]


def constant_signals() -> World:
    records, signals, decisions = world(images=4)
    alike = {key: value for key, value in signals[0].items() if key not in ("uid", "image", "noun")}
    own = {"answer_candidate_logits"}
    return (
        records,
        [row | {key: value for key, value in alike.items() if key not in own} for row in signals],
        decisions,
    )


def no_noun() -> World:
    """A question whose noun cannot be told has no similarity and no attention of the noun."""
    records, signals, decisions = world(images=4)
    of_noun = [name for name in signals[0] if name.startswith(("clip_", "noun"))]
    return records, [row | dict.fromkeys(of_noun) for row in signals], decisions


def null_on_one() -> World:
    records, signals, decisions = world(images=4)
    bare = {name: None for name in signals[0] if name not in ("uid", "image", "status")}
    return records, [signals[0] | bare, *signals[1:]], decisions


def two_questions() -> World:
    records, signals, decisions = world(images=1, per_image=2)
    return records, signals, decisions


WORLDS: tuple[Callable[[], World], ...] = (
    one_image,
    one_label,
    all_right,
    all_wrong,
    constant_signals,
    no_noun,
    null_on_one,
    two_questions,
)


@pytest.fixture(scope="module", params=WORLDS, ids=lambda build: build.__name__)
def odd(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, RunTables]:
    """Return the name of an odd world, and the run that was made of it."""
    folder: Path = tmp_path_factory.mktemp("odd")
    records, signals, decisions = request.param()
    paths = (
        write_records(folder / "r.parquet", records),
        write_signals(folder / "s.parquet", signals),
        write_decisions(folder / "d.parquet", decisions),
    )
    files = {kind: folder / f"{kind}.parquet" for kind in KINDS}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        correct.run(*paths, *(files[kind] for kind in ("corrections", "sweeps", "correctness")), resamples=40)
        probe.run(*paths, probe.Outputs(*list(files.values())[3:]), resamples=40)
    sources = Sources(**{kind: (path,) for kind, path in files.items()})
    return request.param.__name__, RunTables(sources, Options(splits=("random", "adversarial")))


@pytest.mark.parametrize("name", TABLES)
def test_tables_print(odd: tuple[str, RunTables], name: str) -> None:
    table: Table = tables.get(name)(odd[1])
    assert all(text not in ("", "nan") for row in table.texts() for text in row)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_figures_draw(odd: tuple[str, RunTables], name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with style.house_style():
            figures.get(name)(odd[1]).draw_without_rendering()


def rows(run: RunTables, kind: str) -> list[dict[str, Any]]:
    (path,) = getattr(run.sources, kind)
    return read_table(path, KINDS[kind], kind).to_pylist()


def test_what_cannot_be_told_is_null(odd: tuple[str, RunTables]) -> None:
    name, run = odd
    knows = rows(run, "correctness")
    compared = rows(run, "probe_comparisons")
    if name in ("all_right", "all_wrong"):
        assert {row["auc"] for row in knows} == {None}
        assert {row["status"] for row in compared if row["group_a"] == "correct"} == {"not_available"}
    if name == "one_image":
        # One image cannot be resampled against another, so no interval of an AUC, and every draw is the same.
        assert all(row["auc_low"] is None for row in knows)
    if name == "constant_signals":
        entropy = [row for row in knows if row["signal"] == "entropy" and row["status"] == "ok"]
        assert {row["auc"] for row in entropy} == {0.5}
        attention = [row for row in compared if row["signal"] == "attention_image" and row["status"] == "ok"]
        assert attention and {row["d"] for row in attention} == {None}
        assert {row["p"] for row in attention} == {1.0}
    if name == "no_noun":
        clip = [row for row in rows(run, "corrections") if row["method"] == "clip_l"]
        assert clip and {row["status"] for row in clip} == {"not_available"}
        assert "clip_l_patches is null on every question" in clip[0]["reason"]
    if name == "null_on_one":
        fixed = [row for row in rows(run, "corrections") if row["status"] == "ok"]
        # The one question is of one split; what needs no signal leaves nobody out.
        assert {row["n_without_signal"] for row in fixed if row["method"] == "entropy"} == {0, 1}
        assert {row["n_without_signal"] for row in fixed if row["method"] == "uniform"} == {0}
    if name == "one_label":
        # Without positives F1 is 0/(FP) = 0 before and after, and nothing is gained.
        assert {row["delta_f1"] for row in rows(run, "corrections") if row["status"] == "ok"} <= {0.0, None}
