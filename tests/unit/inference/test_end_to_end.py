"""Every family through the stages: token map, asking with the fast engine, merging, verifying."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from PIL import Image

from readout_audit.contracts import RECORDS
from readout_audit.fileio import read_json, table_metadata
from readout_audit.inference.merging import merge
from readout_audit.stages import ask_model, make_tiny_model, map_tokens, verify_engine

from .conftest import World, make_image, question_row, write_questions

TEMPLATES = {
    "generic": {"text": "USER: <image>\n{question} Answer yes or no only.\nASSISTANT:"},
    "instructblip": {"text": "Question: {question} Answer yes or no only. Answer:"},
    "llava": {"chat": True, "suffix": " Answer yes or no only."},
    "llava_next": {"text": "[INST] <image>\n{question} [/INST]"},
    "mplug_owl2": {
        "text": "USER: <|image|>{question}\nAnswer the question using a single word or phrase. ASSISTANT: ",
        "answer_boundary": "merges",
    },
    "qwen2_vl": {"chat": True, "suffix": " Answer yes or no only."},
}


def make_family(family: str, folder: Path) -> World:
    """A tiny checkpoint with three pictures, one of them a single pixel, and its token map."""
    make_tiny_model.main(["--family", family, "--folder", str(folder / "model")])
    (folder / "images").mkdir()
    for number in range(2):
        make_image(folder / "images" / f"{number}.png", number)
    Image.new("RGB", (1, 1), (200, 10, 10)).save(folder / "images" / "2.png")
    rows = [question_row(f"{number}.png", noun) for number in range(3) for noun in ("dog", "tv", "umbrella")]
    write_questions(folder / "questions.parquet", rows)
    arguments = ["--model", family, "--tokenizer", str(folder / "model")]
    arguments += ["--templates", json.dumps({"t": TEMPLATES[family]})]
    map_tokens.main([*arguments, "--output", str(folder / "tokens.json")])
    return World(folder / "model", folder / "images", folder / "questions.parquet", folder / "tokens.json")


@pytest.mark.parametrize("family", sorted(TEMPLATES))
def test_a_family_through_the_stages(family: str, tmp_path: Path) -> None:
    world = make_family(family, tmp_path)
    changes = {
        "model": family,
        "adapter": family,
        "template": {"name": "t", **TEMPLATES[family]},
        "engine": {"name": "shared_prefix", "batch_size": 32},
    }
    for shard in (1, 2):
        ask_model.main(world.arguments(tmp_path, shard, 2, **changes))
    shards = [tmp_path / f"{shard}-of-2.parquet" for shard in (1, 2)]
    records = tmp_path / "records.parquet"
    merge(shards, world.questions, records, RECORDS)
    table = pq.read_table(records)
    rows = table.to_pylist()
    assert len(rows) == 9 and {row["status"] for row in rows} == {"ok"}
    described = table_metadata(table)
    for row in rows:
        assert row["new_ids"][0] == row["argmax_id"] == row["top_ids"][0]
        assert len(row["candidate_logits"]) == len(described["candidate_ids"])
        assert row["question"] in row["prompt"] and row["question"] in row["full_text"]
        assert row["n_image_tokens"] > 0
    # Questions about one picture are not all answered alike, nor are pictures.
    assert len({row["log_z"] for row in rows}) == 9
    assert described["parameter_dtypes"].keys() == {"float32"}
    assert read_json(records.with_suffix(".manifest.json"), "manifest")["asked"] == 9
    found = verify_engine.run(records, world.images, world.checkpoint, 100, 0, "cpu")
    assert found["passed"] and found["same_continuation"] == 9


def test_a_prompt_that_ends_in_a_space_is_read_at_the_bare_pieces(tmp_path: Path) -> None:
    world = make_family("mplug_owl2", tmp_path)
    token_map = read_json(world.tokens, "tokens")
    bare = token_map["vocabulary"]
    assert token_map["in_context"]["t"] == {
        answer: sorted(bare[answer][form] for form in (answer, answer.capitalize()))
        for answer in ("yes", "no")
    }
