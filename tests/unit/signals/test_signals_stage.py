"""compute_signals and merge_signals end to end on a tiny model with two tiny CLIPs."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from readout_audit.contracts import QUESTIONS, RECORDS
from readout_audit.demo.clip import RECIPES, build_model, save
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json, read_table, sha256_text, table_metadata, write_table
from readout_audit.models import tiny
from readout_audit.signals.measuring import Measurer
from readout_audit.signals.nouns import UNKNOWN
from readout_audit.signals.schema import SIGNALS
from readout_audit.stages import ask_model, compute_signals, map_tokens, merge_signals

from .conftest import picture

TEMPLATE = {"text": "USER: <image>\n{question} Answer yes or no only.\nASSISTANT:", "suffix": ""}
NOUNS = ("dog", "traffic light", "umbrella")
SETTINGS: dict[str, Any] = {
    "text_prompt": "{noun}",
    "clip_b32": {"model": "tiny-b", "revision": None},
    "clip_l14_336": {"model": "tiny-l", "revision": None},
    "clip_patch_norm": False,
    "vcd": {"noise_step": 500, "seed": 42},
    "vcd_uniform": {"seed": 42, "side": 56},
    "authors_window": [1, 577],
    "entropy_layers": [0, 2],
    "batch_size": 4,
}


@dataclass(frozen=True)
class World:
    """A folder with everything a job reads: model, CLIPs, pictures, questions, records."""

    folder: Path

    def arguments(self, out: Path, shard: int = 1, of: int = 1, **changes: Any) -> list[str]:
        values = {
            "settings": json.dumps({**SETTINGS, **changes.pop("settings", {})}),
            "questions": self.folder / "questions.parquet",
            "images": self.folder / "images",
            "checkpoint": self.folder / "model",
            "tokens": self.folder / "tokens.json",
            "records": self.folder / "records.parquet",
            "clip-b": self.folder / "clip-b",
            "clip-l": self.folder / "clip-l",
            "parts": out / "parts",
            "shard": shard,
            "of": of,
            "code": "c0de",
            "device": "cpu",
            "output": out / f"{shard}-of-{of}.parquet",
            **{name.replace("_", "-"): value for name, value in changes.items()},
        }
        return [
            word for name, value in values.items() if value is not None for word in (f"--{name}", str(value))
        ]


def question_row(image: str, question: str, noun: str | None, split: str, number: int) -> dict[str, Any]:
    return {
        "uid": sha256_text(f"{image}|{question}")[:32],
        "dataset": "d",
        "split": split,
        "question_id": str(number),
        "image": image,
        "image_namespace": "tiny",
        "object": noun,
        "question": question,
        "label": "yes" if number % 2 else "no",
    }


def make_world(folder: Path) -> World:
    """Three pictures; three questions each in one split, two of them and a strange one in another."""
    (folder / "images").mkdir(parents=True)
    rows: list[dict[str, Any]] = []
    for number in range(3):
        name = f"picture_{number}.png"
        picture(number, 60 + number, 50).save(folder / "images" / name)
        texts = [(f"Is there a {noun} in the image?", noun) for noun in NOUNS]
        for split, asked in (("random", texts), ("popular", [*texts[1:], ("What is this?", None)])):
            rows += [question_row(name, *text, split, len(rows) + place) for place, text in enumerate(asked)]
    write_table(folder / "questions.parquet", pa.Table.from_pylist(rows, schema=QUESTIONS), QUESTIONS)
    tiny.build("llava", folder / "model")
    save(build_model(RECIPES["tiny-clip-b"]), folder / "clip-b")
    save(build_model(RECIPES["tiny-clip-l"]), folder / "clip-l")
    templates = json.dumps({"authors": {**TEMPLATE, "answer_boundary": "clean"}})
    arguments = ["--model", "tiny", "--tokenizer", str(folder / "model"), "--templates", templates]
    map_tokens.main([*arguments, "--output", str(folder / "tokens.json")])
    return World(folder)


def ask(world: World) -> None:
    """Write the record file."""
    settings = {
        "model": "tiny",
        "repository": None,
        "folder": "tiny",
        "revision": None,
        "adapter": "llava",
        "precision": "fp32",
        "compute_dtype": "float32",
        "template": {"name": "authors", **TEMPLATE, "answer_boundary": "clean"},
        "image_mode": "as_is",
        "attention": "sdpa",
        "engine": {"name": "sequential", "batch_size": 1},
        "max_new_tokens": 5,
    }
    values = {
        "settings": json.dumps(settings),
        "questions": world.folder / "questions.parquet",
        "images": world.folder / "images",
        "checkpoint": world.folder / "model",
        "tokens": world.folder / "tokens.json",
        "reference-tokens": world.folder / "tokens.json",
        "parts": world.folder / "parts",
        "shard": 1,
        "of": 1,
        "code": "c0de",
        "device": "cpu",
        "output": world.folder / "records.parquet",
    }
    ask_model.main([word for name, value in values.items() for word in (f"--{name}", str(value))])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = make_world(tmp_path_factory.mktemp("signals") / "world")
    ask(made)
    return made


@pytest.fixture(scope="module")
def whole(world: World, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    out = tmp_path_factory.mktemp("whole")
    compute_signals.main(world.arguments(out))
    return read_table(out / "1-of-1.parquet", SIGNALS, "signals")


def records(world: World) -> pa.Table:
    return read_table(world.folder / "records.parquet", RECORDS, "records")


def close(one: pa.Table, other: pa.Table, tolerance: float) -> None:
    """Equal text and whole numbers, floating-point numbers within `tolerance`."""
    assert one.column_names == other.column_names
    for name in one.column_names:
        for here, there in zip(one[name].to_pylist(), other[name].to_pylist(), strict=True):
            if isinstance(here, float | list) and there is not None:
                np.testing.assert_allclose(here, there, atol=tolerance, err_msg=name)
            else:
                assert here == there, name


def test_one_row_per_distinct_question_in_the_order_of_the_table(world: World, whole: pa.Table) -> None:
    questions = read_table(world.folder / "questions.parquet", QUESTIONS, "questions")
    assert whole["uid"].to_pylist() == list(dict.fromkeys(questions["uid"].to_pylist()))
    assert len(whole) == 12 and len(questions) == 18
    assert set(whole["status"].to_pylist()) == {"ok"}
    described = table_metadata(whole)
    assert (described["n_layers"], described["n_heads"]) == (2, 4)
    assert described["candidate_ids"] == table_metadata(records(world))["candidate_ids"]
    assert described["record_settings_id"] == table_metadata(records(world))["settings_id"]
    assert len(described["settings"]["clip_b32"]["revision"]) == 64, "the CLIP's content is named"


def test_the_instrumented_pass_gives_the_records_answers(world: World, whole: pa.Table) -> None:
    for row, record in zip(whole.to_pylist(), records(world).to_pylist(), strict=True):
        assert row["answer_argmax_id"] == record["argmax_id"]
        np.testing.assert_allclose(row["answer_candidate_logits"], record["candidate_logits"], atol=1e-4)
        assert row["log_z"] == pytest.approx(record["log_z"], abs=1e-4)
        assert row["logit_max"] == pytest.approx(record["argmax_logit"], abs=1e-4)
        assert row["image_sha256"] == record["image_sha256"]
        assert row["n_image_positions"] == record["n_image_tokens"]
        assert row["midpoint_step"] == len(record["new_ids"]) // 2 > 0


def test_lists_have_their_declared_lengths(whole: pa.Table) -> None:
    candidates = len(table_metadata(whole)["candidate_ids"])
    for row in whole.to_pylist():
        assert len(row["layer_candidate_logits"]) == 2 * candidates
        np.testing.assert_allclose(
            row["layer_candidate_logits"][candidates:], row["answer_candidate_logits"], atol=1e-4
        )
        assert len(row["attention_image"]) == len(row["attention_window"]) == 2 * 4
        assert all(
            inside <= window + 1e-6
            for inside, window in zip(row["attention_image"], row["attention_window"], strict=True)
        )
        for name in ("midpoint", "vcd", "vcd_uniform"):
            assert len(row[f"{name}_candidate_logits"]) == candidates
        assert row["first_attention_entropy_image"] is None


def test_a_question_without_a_noun_says_so_and_has_no_similarity(whole: pa.Table) -> None:
    strange = [row for row in whole.to_pylist() if row["noun"] is None]
    assert len(strange) == 3
    for row in strange:
        assert row["status"] == "ok" and row["noun_reason"] == UNKNOWN
        assert row["clip_b32_patches"] is None and row["noun_attention_entropy_image"] is None
        assert row["vcd_candidate_logits"] is not None
    for row in whole.to_pylist():
        if row["noun"] is not None:
            assert row["clip_b32_crops"] >= row["clip_b32_image"], "the whole image is among the crops"
            assert -1 <= row["clip_l_patches"] <= 1 and -1 <= row["clip_l_cls"] <= 1
            assert 0 <= row["noun_attention_entropy_image"] <= 1


def test_shards_and_batches_change_nothing(world: World, whole: pa.Table, tmp_path: Path) -> None:
    """Two shards, prompts one by one: the same rows, noise included."""
    for shard in (1, 2):
        compute_signals.main(world.arguments(tmp_path, shard, 2, settings={"batch_size": 1}))
    shards = [str(tmp_path / f"{shard}-of-2.parquet") for shard in (1, 2)]
    joined = tmp_path / "joined.parquet"
    questions = world.folder / "questions.parquet"
    merge_signals.main(["--shards", *shards, "--questions", str(questions), "--output", str(joined)])
    close(read_table(joined, SIGNALS, "signals"), whole, 1e-4)
    assert read_json(joined.with_suffix(".manifest.json"), "manifest")["asked"] == 12


def test_a_missing_shard_is_named(world: World, tmp_path: Path) -> None:
    compute_signals.main(world.arguments(tmp_path, 1, 2))
    arguments = ["--shards", str(tmp_path / "1-of-2.parquet"), "--output", str(tmp_path / "x.parquet")]
    with pytest.raises(AuditError, match="questions are missing in the shards"):
        merge_signals.main([*arguments, "--questions", str(world.folder / "questions.parquet")])


def test_what_is_finished_is_not_measured_again(
    world: World, whole: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job stopped after its first picture goes on with the second; a third run loads no model."""
    measure: Callable[..., Any] = Measurer.measure
    calls: list[str] = []

    def stopping(self: Measurer, job: Any, *rest: Any) -> Any:
        calls.append(job.questions[0].image)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return measure(self, job, *rest)

    monkeypatch.setattr(Measurer, "measure", stopping)
    with pytest.raises(KeyboardInterrupt):
        compute_signals.main(world.arguments(tmp_path))
    assert not (tmp_path / "1-of-1.parquet").exists()
    compute_signals.main(world.arguments(tmp_path))
    assert calls == ["picture_0.png", "picture_1.png", "picture_1.png", "picture_2.png"]
    assert pq.read_table(tmp_path / "1-of-1.parquet").equals(whole)
    manifest = read_json(tmp_path / "1-of-1.manifest.json", "manifest")
    assert manifest["asked"] == 8

    monkeypatch.setattr(compute_signals.Job, "load", lambda *_: pytest.fail("a model was loaded"))
    compute_signals.main(world.arguments(tmp_path))
    assert pq.read_table(tmp_path / "1-of-1.parquet").equals(whole)


def test_other_settings_start_afresh(world: World, tmp_path: Path) -> None:
    nothing = {"clip_b32": None, "clip_l14_336": None, "vcd": None, "vcd_uniform": None}
    compute_signals.main(world.arguments(tmp_path))
    compute_signals.main(world.arguments(tmp_path, settings=nothing, clip_b=None, clip_l=None))
    assert read_json(tmp_path / "1-of-1.manifest.json", "manifest")["asked"] == 12
    for row in pq.read_table(tmp_path / "1-of-1.parquet").to_pylist():
        assert row["status"] == "ok" and row["clip_b32_image"] is None and row["clip_l_cls"] is None
        assert row["vcd_candidate_logits"] is None and row["vcd_uniform_candidate_logits"] is None
        assert row["attention_image"] is not None


def test_layers_beyond_the_decoder_leave_the_answers_entropy_null(world: World, tmp_path: Path) -> None:
    compute_signals.main(world.arguments(tmp_path, settings={"entropy_layers": [14, 20]}))
    for row in pq.read_table(tmp_path / "1-of-1.parquet").to_pylist():
        assert row["answer_attention_entropy_image"] is None
        assert "fewer than entropy_layers [14, 20]" in row["reason"]
        assert row["attention_image"] is not None and row["words_attention_entropy_window"] is not None


def test_a_changed_picture_and_an_invalid_record_are_named(tmp_path: Path) -> None:
    world = make_world(tmp_path / "world")
    (world.folder / "images" / "picture_0.png").write_bytes(b"no picture")
    ask(world)
    picture(77).save(world.folder / "images" / "picture_1.png")
    (world.folder / "images" / "picture_2.png").unlink()
    compute_signals.main(world.arguments(tmp_path))
    rows = pq.read_table(tmp_path / "1-of-1.parquet").to_pylist()
    reasons = {row["image"]: row["reason"] for row in rows}
    assert {row["status"] for row in rows} == {"invalid"}
    assert "the record is invalid: picture_0.png: not a readable image" in reasons["picture_0.png"]
    assert "another than the one the record is about" in reasons["picture_1.png"]
    assert "missing" in reasons["picture_2.png"]
    assert all(row["entropy"] is None and row["attention_image"] is None for row in rows)


def test_inputs_that_do_not_fit_are_refused(world: World, tmp_path: Path) -> None:
    tiny.build("llava", tmp_path / "other", seed=1)
    few = records(world).slice(0, 5)
    write_table(tmp_path / "few.parquet", few, RECORDS, table_metadata(records(world)))
    for changes, message in (
        ({"checkpoint": tmp_path / "other"}, "the records are of revision"),
        ({"records": tmp_path / "few.parquet"}, "7 questions have no record"),
        ({"clip_b": None}, "name clip_b32, but no folder"),
        ({"clip_l": tmp_path / "nowhere"}, "the checkpoint folder is not there"),
        ({"settings": {"text_prompt": "a photo"}}, "must hold {noun} exactly once"),
        ({"settings": {"vcd": {"noise_step": 1000, "seed": 1}}}, "from 0 to 999"),
        ({"settings": {"vcd": {"noise_step": 5}}}, "exactly the keys noise_step, seed"),
        ({"settings": {"entropy_layers": [3, 3]}}, "entropy_layers"),
        ({"settings": {"batch_size": 0}}, "batch_size is 0"),
        ({"settings": {"more": 1}}, "unknown keys"),
    ):
        with pytest.raises(AuditError, match=message):
            compute_signals.main(world.arguments(tmp_path, **changes))
    with pytest.raises(AuditError, match="shard 3 of 2"):
        compute_signals.main(world.arguments(tmp_path, 3, 2))
