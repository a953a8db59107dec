"""Re-asking a sample: what counts as agreement, and a real record file end to end."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from typer.testing import CliRunner

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json, read_table, table_metadata, write_table
from readout_audit.inference import cli, packing, shared_prefix
from readout_audit.inference.base import Answer, Question
from readout_audit.inference.verification import compare, decision_sets, sample, step_size
from readout_audit.stages import ask_model, verify_engine

from .conftest import TEMPLATES, World


@pytest.mark.parametrize(
    ("value", "dtype", "step"),
    [
        # The steps named in the design: 0.016 for fp16 and 0.125 for bf16 near 24.
        (24.0, "fp16", 2.0**-6),
        (24.0, "bf16", 2.0**-3),
        (-24.0, "bf16", 2.0**-3),
        (1.0, "fp32", 2.0**-23),
        (16.0, "fp16", 2.0**-6),
        (15.99, "fp16", 2.0**-7),
    ],
)
def test_step_size(value: float, dtype: str, step: float) -> None:
    assert step_size(value, dtype) == step
    if dtype == "fp16":
        assert step == float(np.spacing(np.float16(abs(value))))


def pair(recorded: list[float], again: list[float], new_ids: list[int] | None = None) -> tuple[dict, Answer]:
    logits = np.array(again, dtype=np.float32)
    question = Question("u", "a.jpg", None, "q?", "p")
    row = {
        "uid": "u",
        "image": "a.jpg",
        "question": "q?",
        "argmax_id": int(np.argmax(recorded)),
        "candidate_logits": recorded,
        "new_ids": new_ids or [int(np.argmax(recorded))],
    }
    return row, Answer(question, 1, 1, (), logits, (int(np.argmax(again)),))


def test_agreement() -> None:
    found = compare([pair([1.0, 2.0], [1.0, 2.00005])], [0, 1], "fp32", "fp32")
    assert found["passed"] and found["same_first_token"] == found["same_continuation"] == 1
    assert found["largest_difference"] == pytest.approx(5e-5, rel=0.1)


def test_a_difference_beyond_the_tolerance_fails_in_float32_only() -> None:
    pairs = [pair([1.0, 2.0], [1.0, 2.01])]
    assert not compare(pairs, [0, 1], "fp32", "fp32")["passed"]
    assert compare(pairs, [0, 1], "fp16", "fp16")["passed"]


@pytest.mark.parametrize(
    ("margin", "precision", "passed"), [(0.25, "bf16", True), (0.375, "bf16", False), (0.375, "int8", True)]
)
def test_a_flip_of_two_steps_is_a_near_tie_and_of_three_a_failure(
    margin: float, precision: str, passed: bool
) -> None:
    found = compare([pair([24.0, 23.875], [24.0 - margin, 24.0])], [0, 1], "bf16", precision)
    assert found["passed"] is passed
    (entry,) = found["flips"]
    assert (entry["recorded"], entry["sequential"], entry["margin"]) == (0, 1, margin)
    assert entry["steps"] == margin / 0.125


def test_large_logits_may_differ_by_a_share_of_their_size() -> None:
    assert compare([pair([1.0, 40.0], [1.0, 40.003])], [0, 1], "fp32", "fp32")["passed"]
    assert not compare([pair([1.0, 40.0], [1.0, 40.005])], [0, 1], "fp32", "fp32")["passed"]


def test_an_engine_that_is_wrong_stops_before_it_asks(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        shared_prefix,
        "allowed_columns",
        lambda owners, new: packing.allowed_columns(torch.full_like(owners, packing.PREFIX), new),
    )
    with pytest.raises(AuditError, match="engine SharedPrefix does not give the sequential engine's answers"):
        ask_model.main(world.arguments(tmp_path, engine={"name": "shared_prefix", "batch_size": 32}))


def test_no_answer_is_a_failure() -> None:
    row, answer = pair([1.0, 2.0], [1.0, 2.0])
    found = compare([(row, Answer(answer.question, fault="NaN"))], [0, 1], "fp32", "int8")
    assert not found["passed"] and found["unanswered"] == [{"uid": "u", "reason": "NaN"}]


def test_the_sample_is_seeded_and_skips_invalid_rows() -> None:
    rows = [{"uid": str(place), "status": "invalid" if place % 5 == 0 else "ok"} for place in range(50)]
    drawn = sample(rows, 10, seed=3)
    assert drawn == sample(rows, 10, seed=3) != sample(rows, 10, seed=4)
    assert len(drawn) == 10 and all(row["status"] == "ok" for row in drawn)
    assert [int(row["uid"]) for row in drawn] == sorted(int(row["uid"]) for row in drawn)
    assert len(sample(rows, 1000, seed=3)) == 40


@pytest.fixture(scope="module")
def records(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verified")
    ask_model.main(world.arguments(folder, engine={"name": "shared_prefix", "batch_size": 32}))
    return folder / "1-of-1.parquet"


def test_real_records_agree(world: World, records: Path, tmp_path: Path) -> None:
    arguments = [
        "--records",
        str(records),
        "--images",
        str(world.images),
        "--checkpoint",
        str(world.checkpoint),
    ]
    verify_engine.main(
        [*arguments, "--sample", "12", "--device", "cpu", "--output", str(tmp_path / "r.json")]
    )
    found = read_json(tmp_path / "r.json", "report")
    assert found["passed"] and found["compared"] == found["same_first_token"] == 12
    assert 0 < found["largest_difference"] < 1e-4
    assert found["engine"] == "shared_prefix"


def test_wrong_records_are_found_out(world: World, records: Path, tmp_path: Path) -> None:
    table = read_table(records, RECORDS, "records")
    rows = table.to_pylist()
    rows[3]["argmax_id"] = rows[3]["top_ids"][5]
    wrong = tmp_path / "wrong.parquet"
    write_table(wrong, pa.Table.from_pylist(rows, schema=RECORDS), RECORDS, table_metadata(table))
    found = verify_engine.run(wrong, world.images, world.checkpoint, 1000, 0, "cpu")
    assert not found["passed"] and [entry["uid"] for entry in found["flips"]] == [rows[3]["uid"]]
    assert verify_engine.summary(found).endswith("1 first tokens and 0 decisions flip: FAILED")


def test_another_image_under_the_same_name_is_not_compared(
    world: World, records: Path, tmp_path: Path
) -> None:
    for path in world.images.iterdir():
        (tmp_path / path.name).write_bytes((world.images / "picture_0.png").read_bytes())
    with pytest.raises(AuditError, match="not the image that the records are about"):
        verify_engine.run(records, tmp_path, world.checkpoint, 1000, 0, "cpu")


def test_another_models_folder_is_refused(world: World, records: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(world.checkpoint, other)
    path = other / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(AuditError, match=r"other: its tokenizer is not the one that .* was made with"):
        verify_engine.run(records, world.images, other, 3, 0, "cpu")


def test_answers_that_could_not_be_had_again_are_counted() -> None:
    row = {"uid": "u", "argmax_id": 0, "candidate_logits": [0.0], "new_ids": [0]}
    question = Question("u", "i", None, "?", "?")
    found = compare([(row, Answer(question, fault="NaN"))], [0], "fp32", "fp32")
    assert verify_engine.summary(found).endswith("0 decisions flip, 1 have no second answer: FAILED")


def cli_app() -> "object":
    import typer

    app = typer.Typer()
    app.command("verify-engine")(cli.verify_engine)
    app.command("preflight")(cli.preflight)
    return app


def test_the_commands(world: World, records: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    words = ["--images", str(world.images), "--checkpoint", str(world.checkpoint), "--sample", "3"]
    result = runner.invoke(cli_app(), ["verify-engine", str(records), *words])  # type: ignore[arg-type]
    assert result.exit_code == 0 and "3 of 3 first tokens" in result.stdout
    (tmp_path / "config").mkdir()
    entry = {"adapter": "llava", "repository": None, "revision": None, "pickled": False}
    known = {"tiny": {**entry, "folder": str(world.checkpoint)}}
    (tmp_path / "config" / "models.yaml").write_text(json.dumps({"known_models": known}))
    blank = {"chat": False, "suffix": "", "answer_boundary": "clean"}
    prompts = {"tiny": {name: {**blank, **template} for name, template in TEMPLATES.items()}}
    (tmp_path / "config" / "templates.yaml").write_text(json.dumps({"known_templates": prompts}))
    settings = {
        "precisions": ["fp32"],
        "inference": {"compute_dtype": "float16", "image_mode": "as_is", "attention": "sdpa"},
    }
    (tmp_path / "config" / "config.yaml").write_text(json.dumps(settings))
    with pytest.raises(
        AuditError, match=r"models\.schema\.yaml: not there; run this in the project's folder"
    ):
        cli.configured(tmp_path, "tiny")
    shutil.copytree(Path(__file__).parents[3] / "workflow" / "schemas", tmp_path / "workflow" / "schemas")
    words = ["--device", "cpu", "--root", str(tmp_path)]  # the precision is the configuration's first
    result = runner.invoke(cli_app(), ["preflight", "tiny", *words])  # type: ignore[arg-type]
    assert result.exit_code == 0 and "tiny fp32 authors: passed; 16 image tokens" in result.stdout
    result = runner.invoke(cli_app(), ["preflight", "huge", *words])  # type: ignore[arg-type]
    assert isinstance(result.exception, AuditError) and "'huge' is not known" in str(result.exception)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"folder": None, "repository": "a/b"},
            r"m: not fetched \(.*resources/fetched/models/m\.json is not there\); fetch it with "
            r"`snakemake all --cores 1 --until fetch_images fetch_model`",
        ),
        (
            {"folder": None, "random": {"tokenizer": None}},
            r"make it with `snakemake .*results/random-models/m/config\.json --cores 1 "
            r"--configfile config/families\.yaml`",
        ),
    ],
)
def test_a_model_that_is_not_there_names_the_command(
    entry: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(AuditError, match=message):
        cli.checkpoint_folder(tmp_path, "m", entry)


def test_a_model_that_is_there_is_found(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    assert cli.checkpoint_folder(tmp_path, "m", {"folder": "own"}) == own
    fetched = tmp_path / "resources/fetched/models/m"
    fetched.mkdir(parents=True)
    fetched.with_name("m.json").write_text("{}")
    assert cli.checkpoint_folder(tmp_path, "m", {"folder": None, "repository": "a/b"}) == fetched


SETS = {"legacy": {"model": "r", "yes": {"yes": 0, "Yes": 1}, "no": {"no": 2, "No": 3}}}
SETS |= {rule: {"yes": [1], "no": [3]} for rule in ("single", "in_context")} | {
    "scan": {"yes": [1], "no": [9]}
}


def test_readouts_whose_ids_were_kept_are_compared() -> None:
    found = decision_sets({"token_sets": SETS, "candidate_ids": [0, 1, 2, 3]})
    assert found == {
        "legacy_8tok": ([0, 1], [2, 3]),
        "legacy_2tok": ([0], [2]),
        "dynamic_single": ([1], [3]),
        "in_context": ([1], [3]),
    }


def test_decisions_that_flip_are_told_with_their_margin() -> None:
    """Bare yes and no swap by half a step of fp16 at the largest logit (2 ** -7 at 9); all else stays."""
    step = 2.0**-8
    pairs = [pair([4.0 + step, 9.0, 4.0, 1.0], [4.0, 9.0, 4.0 + step, 1.0])]
    sets = {"legacy_2tok": ([0], [2]), "legacy_8tok": ([0, 1], [2, 3])}
    found = compare(pairs, [0, 1, 2, 3], "fp16", "fp16", sets)
    assert found["flips"] == [] and found["readouts"] == ["legacy_2tok", "legacy_8tok"]
    (entry,) = found["decision_flips"]
    assert (entry["readout"], entry["recorded"], entry["sequential"]) == ("legacy_2tok", "yes", "no")
    assert (entry["margin"], entry["steps"], entry["uid"]) == (step, 0.5, "u")


def test_a_tie_is_a_no() -> None:
    """Strictly larger is yes: 4 against 4 reads no, and a yes recorded there differs by a margin of 0 steps."""
    found = compare([pair([4.5, 4.0], [4.0, 4.0])], [0, 1], "fp16", "fp16", {"legacy_2tok": ([0], [1])})
    assert [entry["steps"] for entry in found["decision_flips"]] == [0.0]


@pytest.mark.parametrize(("margin", "passed"), [(0.25, True), (0.375, False)])
def test_a_decision_beyond_two_steps_of_the_largest_logit_is_a_failure(margin: float, passed: bool) -> None:
    """bf16 at 24 has steps of 0.125; bare yes and no lie near 1, where its steps are 16 times as fine."""
    pairs = [pair([1.0, 1.0, 24.0], [1.0 + margin, 1.0, 24.0])]
    found = compare(pairs, [0, 1, 2], "bf16", "bf16", {"legacy_2tok": ([0], [1])})
    assert found["passed"] is passed and found["decision_flips"][0]["steps"] == margin / 0.125
    assert compare(pairs, [0, 1, 2], "bf16", "int8", {"legacy_2tok": ([0], [1])})["passed"]


def test_in_float32_a_flip_within_the_tolerance_is_a_near_tie() -> None:
    """A difference of 5e-6 is tens of steps of float32 at 1, and what summing in another order gives."""
    pairs = [pair([1.0, 1.000005], [1.000005, 1.0])]
    found = compare(pairs, [0, 1], "fp32", "fp32", {"legacy_2tok": ([0], [1])})
    assert found["passed"] and found["flips"][0]["steps"] > 2 and found["decision_flips"][0]["near_tie"]
    far = compare([pair([1.0, 1.001], [1.001, 1.0])], [0, 1], "fp32", "fp32")
    assert not far["passed"] and not far["flips"][0]["near_tie"]
