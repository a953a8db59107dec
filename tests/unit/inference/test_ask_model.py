"""ask_model and merge_shards end to end on a tiny model."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from readout_audit.contracts import QUESTIONS, RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json, read_table, sha256_text, table_metadata, write_table
from readout_audit.inference import sequential
from readout_audit.inference.merging import merge
from readout_audit.inference.questions import shard_of
from readout_audit.models import registry
from readout_audit.models.base import ModelSpec
from readout_audit.models.llava import Llava
from readout_audit.stages import ask_model

from .conftest import World, question_row, write_questions


def asked(world: World, folder: Path, **changes: object) -> pa.Table:
    ask_model.main(world.arguments(folder, **changes))  # type: ignore[arg-type]
    return pq.read_table(folder / "1-of-1.parquet")


@pytest.fixture(scope="module")
def whole(world: World, tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    return asked(world, tmp_path_factory.mktemp("whole"))


def forbid_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a model was asked although everything was answered")

    monkeypatch.setattr(sequential.Sequential, "answer", never)


def test_one_row_per_distinct_question_in_the_order_of_the_table(world: World, whole: pa.Table) -> None:
    table = read_table(world.questions, QUESTIONS, "questions")
    distinct = list(dict.fromkeys(table["uid"].to_pylist()))
    assert whole["uid"].to_pylist() == distinct
    # 4 pictures, 5 objects each, one of the 3 + 4 rows per picture asked twice in two splits
    assert len(distinct) == 20 and len(table) == 28
    assert set(whole["status"].to_pylist()) == {"ok"}


def test_rows_equal_a_plain_forward_pass(world: World, whole: pa.Table) -> None:
    """Logits, ranks, log Z and continuation against a few lines that use transformers directly."""
    from transformers import LlavaForConditionalGeneration, LlavaProcessor

    folder = str(world.checkpoint)
    network = LlavaForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    processor = LlavaProcessor.from_pretrained(folder, backend="pil")
    candidates = table_metadata(whole)["candidate_ids"]
    for row in whole.slice(0, 7).to_pylist():
        image = Image.open(world.images / row["image"]).convert("RGB")
        inputs = processor(images=image, text=row["prompt"], return_tensors="pt")
        with torch.no_grad():
            logits = network(**inputs).logits[0, -1]
            ids, new_ids = inputs["input_ids"], []
            for _ in range(6):
                step = network(input_ids=ids, pixel_values=inputs["pixel_values"]).logits[0, -1]
                new_ids.append(int(step.argmax()))
                ids = torch.cat([ids, torch.tensor([[new_ids[-1]]])], dim=1)
                if new_ids[-1] == network.generation_config.eos_token_id:
                    break
        assert row["n_prompt_tokens"] == inputs["input_ids"].shape[1]
        assert row["n_image_tokens"] == 16
        assert row["argmax_id"] == int(logits.argmax()) == row["new_ids"][0] == row["top_ids"][0]
        assert row["new_ids"] == new_ids
        assert np.allclose(row["candidate_logits"], logits[candidates], atol=1e-5)
        assert row["candidate_ranks"] == [int((logits > logits[i]).sum()) + 1 for i in candidates]
        assert np.isclose(row["log_z"], float(torch.logsumexp(logits.double(), 0)), atol=1e-5)
        assert np.allclose(row["top_logits"], logits.topk(20).values, atol=1e-5)
        assert row["full_text"].count("<image>") == 1


def test_metadata_says_what_was_asked(world: World, whole: pa.Table) -> None:
    described = table_metadata(whole)
    assert described["settings"] == world.settings()
    assert len(described["settings_id"]) == 16
    assert described["parameter_dtypes"] == {"float32": 80}
    assert described["folder"] == "tiny" and "repository" not in described
    assert len(described["first_input_ids"]) == 8 and described["first_input_ids"][0] == 1
    assert described["token_sets"]["legacy"]["yes"][" Yes"] in described["candidate_ids"]
    assert described["reference_model"] == "tiny"
    assert set(described["special_tokens"]) == {"<s>", "</s>", "<unk>", "<pad>", "<image>"}
    assert list(described["token_map"]["in_context"]) == ["authors"]
    assert (described["n_ok"], described["n_invalid"]) == (20, 0)


def test_a_second_run_asks_nothing_and_writes_the_same_bytes(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = asked(world, tmp_path)
    before = (tmp_path / "1-of-1.parquet").read_bytes()
    monkeypatch.setattr(registry, "get", lambda name: pytest.fail("the model was loaded again"))
    assert asked(world, tmp_path).equals(first)
    assert (tmp_path / "1-of-1.parquet").read_bytes() == before


def test_another_shard_count_asks_nothing_twice_and_merges_to_the_same(
    world: World, whole: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked(world, tmp_path)
    forbid_asking(monkeypatch)
    for shard in (1, 2, 3):
        ask_model.main(world.arguments(tmp_path, shard, 3))
    shards = [tmp_path / f"{shard}-of-3.parquet" for shard in (1, 2, 3)]
    merge(shards, world.questions, tmp_path / "records.parquet", RECORDS)
    merged = pq.read_table(tmp_path / "records.parquet")
    assert merged.equals(whole, check_metadata=True)
    assert read_json(tmp_path / "records.manifest.json", "manifest")["asked"] == 0


def test_a_new_question_is_asked_alone(
    world_of: Callable[[int], World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = world_of(2)
    asked(world, tmp_path)
    rows = read_table(world.questions, QUESTIONS, "questions").to_pylist()
    write_questions(world.questions, [question_row("picture_1.png", "zebra"), *rows])
    calls: list[str] = []
    ask = sequential.Sequential.ask
    monkeypatch.setattr(
        sequential.Sequential, "ask", lambda self, q, image: calls.append(q.question) or ask(self, q, image)
    )
    table = asked(world, tmp_path)
    assert calls == ["Is there a zebra in the image?"]
    assert table["object"].to_pylist()[0] == "zebra" and len(table) == 11


def test_a_changed_image_is_asked_again(world_of: Callable[[int], World], tmp_path: Path) -> None:
    world = world_of(2)
    before = asked(world, tmp_path).to_pylist()
    Image.new("RGB", (60, 60), (255, 0, 0)).save(world.images / "picture_0.png")
    after = asked(world, tmp_path).to_pylist()
    changed = {row["image"] for row, other in zip(before, after, strict=True) if row != other}
    assert changed == {"picture_0.png"}
    manifest = read_json(tmp_path / "1-of-1.manifest.json", "manifest")
    assert manifest["asked"] == 5


def test_unreadable_images_become_invalid_rows_and_the_rest_goes_on(
    world_of: Callable[[int], World], whole: pa.Table, tmp_path: Path
) -> None:
    world = world_of(4)
    intact = (world.images / "picture_0.png").read_bytes()
    (world.images / "picture_0.png").write_bytes(intact[: len(intact) // 2])
    (world.images / "picture_2.png").unlink()
    rows = asked(world, tmp_path).to_pylist()
    reasons = {row["image"]: row["reason"] for row in rows if row["status"] == "invalid"}
    assert "picture_0.png: not a readable image" in reasons["picture_0.png"]
    assert reasons["picture_2.png"] == "picture_2.png: the image file is missing"
    good = [row for row in rows if row["status"] == "ok"]
    assert good == [row for row in whole.to_pylist() if row["image"] not in reasons]
    assert len(good) == 10
    assert all(row["argmax_id"] is None and row["new_ids"] is None for row in rows if row["reason"])
    (world.images / "picture_0.png").write_bytes(intact)
    assert asked(world, tmp_path)["status"].to_pylist().count("invalid") == 5


def write_odd_images(folder: Path) -> dict[str, str | None]:
    """One file of every odd kind; by name why it cannot be asked about, None where it can."""
    colours = Image.fromarray(np.random.default_rng(0).integers(0, 256, size=(60, 70, 3), dtype=np.uint8))
    whole = folder / "whole.png"
    colours.save(whole)
    for mode in ("L", "P", "CMYK", "1", "RGBA"):
        colours.convert(mode).save(folder / f"{mode}.{'tif' if mode == 'CMYK' else 'png'}")
    Image.fromarray(np.arange(60 * 70, dtype=np.uint16).reshape(60, 70) * 15).save(folder / "deep.png")
    Image.new("RGB", (1, 1), (9, 8, 7)).save(folder / "pixel.png")
    turned = Image.Exif()
    turned[0x0112] = 6
    colours.save(folder / "turned.jpg", exif=turned)
    # The header alone of a picture of 40,000 x 40,000 pixels: refused before one of them is decoded.
    header = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    (folder / "bomb.png").write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + b"".join(
            struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in chunks
        )
    )
    (folder / "cut.png").write_bytes(whole.read_bytes()[:3000])
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.png").write_text("<html>not found</html>")
    (folder / "folder.png").mkdir()
    faults = {
        "bomb.png": "decompression bomb",
        "cut.png": "not a readable image",
        "empty.png": "not a readable image",
        "text.png": "not a readable image",
        "folder.png": "cannot be read (Is a directory)",
        "gone.png": "the image file is missing",
    }
    return {**{path.name: None for path in folder.iterdir()}, **faults}


@pytest.mark.parametrize("engine", ["sequential", "shared_prefix"])
def test_odd_images_are_read_right_or_named_and_the_rest_goes_on(
    world_of: Callable[[int], World], tmp_path: Path, engine: str
) -> None:
    world = world_of(1)
    expected = write_odd_images(world.images)
    write_questions(
        world.questions, [question_row(name, noun) for name in sorted(expected) for noun in ("dog", "cat")]
    )
    rows = asked(world, tmp_path, engine={"name": engine, "batch_size": 64}).to_pylist()
    assert len(rows) == 2 * len(expected) == 32
    for row in rows:
        fault = expected[row["image"]]
        assert row["status"] == ("ok" if fault is None else "invalid"), row
        assert fault is None or (fault in row["reason"] and row["image"] in row["reason"])
    # Nothing in a reason changes from run to run.
    assert asked(world, tmp_path / "again", engine={"name": engine, "batch_size": 64}).to_pylist() == rows
    by_image = {row["image"]: row for row in rows if row["object"] == "dog"}
    # EXIF says to turn it; as in the published pipelines it is not, and the log says so.
    stored = Image.open(world.images / "turned.jpg").convert("RGB")
    stored.save(world.images / "stored.png")
    write_questions(world.questions, [question_row("stored.png", "dog")])
    (again,) = asked(world, tmp_path / "stored", engine={"name": engine, "batch_size": 64}).to_pylist()
    assert np.allclose(again["candidate_logits"], by_image["turned.jpg"]["candidate_logits"], atol=1e-4)


def test_logits_that_are_not_finite_make_one_row_invalid(
    world: World, whole: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Llava.first_logits
    poisoned = whole.to_pylist()[3]

    def poison(self: Llava, encoded: object) -> object:
        logits, state = plain(self, encoded)  # type: ignore[arg-type]
        if len(encoded.ids) and encoded.prompt == poisoned["prompt"]:  # type: ignore[attr-defined]
            logits = logits.clone()
            logits[5] = float("nan")
        return logits, state

    monkeypatch.setattr(Llava, "first_logits", poison)
    rows = asked(world, tmp_path).to_pylist()
    invalid = [row for row in rows if row["status"] == "invalid"]
    assert {row["prompt"] for row in invalid} == {poisoned["prompt"]}
    assert all("not finite" in row["reason"] for row in invalid)
    assert [row for row in rows if row["status"] == "ok"] == [
        row for row in whole.to_pylist() if row["prompt"] != poisoned["prompt"]
    ]


def test_a_question_that_holds_the_placeholder_is_invalid(
    world_of: Callable[[int], World], tmp_path: Path
) -> None:
    world = world_of(1)
    write_questions(world.questions, [question_row("picture_0.png", "<image>")])
    (row,) = asked(world, tmp_path).to_pylist()
    assert row["status"] == "invalid" and "2 image placeholders" in row["reason"]


def test_a_name_that_is_a_path_is_refused(world_of: Callable[[int], World], tmp_path: Path) -> None:
    world = world_of(1)
    write_questions(world.questions, [question_row("../picture_0.png", "dog")])
    with pytest.raises(AuditError, match="not a plain file name"):
        asked(world, tmp_path)


def test_nothing_opens_a_socket(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    assert len(asked(world, tmp_path)) == 20


def test_a_token_map_of_another_tokenizer_is_refused(world: World, tmp_path: Path) -> None:
    token_map = read_json(world.tokens, "tokens")
    token_map["tokenizer_sha256"]["tokenizer.json"] = "0" * 64
    (tmp_path / "tokens.json").write_text(json.dumps(token_map))
    arguments = world.arguments(tmp_path)
    arguments[arguments.index("--tokens") + 1] = str(tmp_path / "tokens.json")
    with pytest.raises(AuditError, match="made from other tokenizer files"):
        ask_model.main(arguments)


def test_reference_ids_beyond_the_head_are_told_and_not_kept(world: World, tmp_path: Path) -> None:
    reference = read_json(world.tokens, "tokens")
    reference["vocabulary"]["yes"]["Yes"] = 30_000
    (tmp_path / "reference.json").write_text(json.dumps(reference))
    arguments = world.arguments(tmp_path)
    arguments[arguments.index("--reference-tokens") + 1] = str(tmp_path / "reference.json")
    ask_model.main(arguments)
    described = table_metadata(pq.read_table(tmp_path / "1-of-1.parquet"))
    assert described["ids_without_logit"] == [30_000] and 30_000 not in described["candidate_ids"]


def test_every_shard_gets_whole_images() -> None:
    names = [f"image_{number}.jpg" for number in range(300)]
    dealt = [shard_of("coco", name, 4) for name in names]
    assert dealt == [shard_of("coco", name, 4) for name in names]
    assert set(dealt) == {1, 2, 3, 4}
    assert shard_of("coco", "a", 1) == 1


def test_an_empty_shard_is_a_file_without_rows(world_of: Callable[[int], World], tmp_path: Path) -> None:
    world = world_of(1)
    for shard in (1, 2):
        ask_model.main(world.arguments(tmp_path, shard, 2))
    tables = [pq.read_table(tmp_path / f"{shard}-of-2.parquet") for shard in (1, 2)]
    assert sorted(len(table) for table in tables) == [0, 5]
    assert all(table.schema.remove_metadata() == RECORDS for table in tables)


def test_merge_refuses_incomplete_and_mixed_shards(world: World, tmp_path: Path) -> None:
    for shard in (1, 2):
        ask_model.main(world.arguments(tmp_path, shard, 2))
    one, two = tmp_path / "1-of-2.parquet", tmp_path / "2-of-2.parquet"
    with pytest.raises(AuditError, match="are missing in the shards"):
        merge([one], world.questions, tmp_path / "r.parquet", RECORDS)
    with pytest.raises(AuditError, match="more than once"):
        merge([one, two, two], world.questions, tmp_path / "r.parquet", RECORDS)
    ask_model.main(world.arguments(tmp_path, 2, 2, max_new_tokens=3))
    with pytest.raises(AuditError, match=r"differs from .* in .*settings"):
        merge([one, two], world.questions, tmp_path / "r.parquet", RECORDS)
    assert not (tmp_path / "r.parquet").exists()


def test_a_longest_continuation_of_three_is_three(world: World, tmp_path: Path) -> None:
    lengths = {len(ids) for ids in asked(world, tmp_path, max_new_tokens=3)["new_ids"].to_pylist()}
    assert max(lengths) <= 3


def test_the_shared_prefix_engine_writes_the_same_records(
    world: World, whole: pa.Table, tmp_path: Path
) -> None:
    engine = {"name": "shared_prefix", "batch_size": 64}
    rows = asked(world, tmp_path, engine=engine).to_pylist()
    measured = {"argmax_logit", "log_z", "candidate_logits", "top_logits"}
    for row, expected in zip(rows, whole.to_pylist(), strict=True):
        for name in measured:
            assert np.allclose(row[name], expected[name], atol=1e-4)
        assert {k: v for k, v in row.items() if k not in measured} == {
            k: v for k, v in expected.items() if k not in measured
        }


def test_groups_of_images_stay_what_they_are_when_some_are_answered(
    world_of: Callable[[int], World], tmp_path: Path
) -> None:
    """Two images a call: a run that finds the first call's part goes on with the calls of a whole run."""
    world = world_of(5)
    engine = {"name": "shared_prefix", "batch_size": 64}
    whole = asked(world, tmp_path / "whole", engine=engine)
    asked(world, tmp_path / "part", engine=engine)
    parts = sorted((tmp_path / "part").glob("parts/*/*.parquet"))
    assert len(parts) == 3
    parts[1].unlink()
    (tmp_path / "part" / "1-of-1.parquet").unlink()
    assert asked(world, tmp_path / "part", engine=engine).equals(whole, check_metadata=True)


def test_nine_thousand_questions_fit_into_ten_megabytes(whole: pa.Table, tmp_path: Path) -> None:
    """A row of a real run keeps 32 candidates and 20 top logits; made here of random ones, which compress worst."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(9000):
        row = dict(whole.slice(number % 20, 1).to_pylist()[0])
        row["uid"] = sha256_text(str(number))[:32]
        row["image_sha256"] = sha256_text(str(number % 500))
        row["candidate_logits"] = rng.normal(size=42).astype(np.float32).tolist()
        row["candidate_ranks"] = rng.integers(1, 152064, size=42).tolist()
        row["top_ids"] = rng.integers(0, 152064, size=20).tolist()
        row["top_logits"] = rng.normal(size=20).astype(np.float32).tolist()
        rows.append(row)
    write_table(
        tmp_path / "r.parquet", pa.Table.from_pylist(rows, schema=RECORDS), RECORDS, table_metadata(whole)
    )
    assert (tmp_path / "r.parquet").stat().st_size < 10_000_000


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Sums over several threads round differently; a process and this one must use as many to give the same bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("engine", ["sequential", "shared_prefix"])
def test_killed_at_random_moments_and_run_again_gives_the_same_records(
    world_of: Callable[[int], World], tmp_path: Path, engine: str
) -> None:
    """SIGKILL, four times at seeded moments; the record table equals an uninterrupted run's."""
    world = world_of(30)
    how = {"engine": {"name": engine, "batch_size": 64}}
    whole = asked(world, tmp_path / "whole", **how)
    folder = tmp_path / "killed"
    command = [sys.executable, "-m", "readout_audit.stages.ask_model", *world.arguments(folder, **how)]
    rng = np.random.default_rng(5)
    parts_seen = []
    for _ in range(4):
        process = subprocess.Popen(
            command, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        before = len(list(folder.glob("parts/*/*.parquet")))
        deadline = time.monotonic() + 120
        while len(list(folder.glob("parts/*/*.parquet"))) <= before and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(float(rng.uniform(0.0, 0.1)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        parts_seen.append(len(list(folder.glob("parts/*/*.parquet"))))
    assert parts_seen == sorted(parts_seen) and 0 < parts_seen[0] < 30
    assert not (folder / "1-of-1.parquet").exists() or parts_seen[-1] == 30
    assert asked(world, folder, **how).equals(whole, check_metadata=True)


@pytest.mark.slow
def test_two_processes_share_the_work(world_of: Callable[[int], World], tmp_path: Path) -> None:
    """The same command twice at the same time: both finish, equal, and together ask each question once."""
    world = world_of(24)
    runs = []
    for name in ("a", "b"):
        arguments = world.arguments(tmp_path)
        arguments[arguments.index("--output") + 1] = str(tmp_path / name / "1-of-1.parquet")
        command = [sys.executable, "-m", "readout_audit.stages.ask_model", *arguments]
        runs.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
    assert [run.wait(timeout=300) for run in runs] == [0, 0]
    tables = [pq.read_table(tmp_path / name / "1-of-1.parquet") for name in ("a", "b")]
    assert tables[0].equals(tables[1], check_metadata=True)
    assert len(list(tmp_path.glob("parts/*/*.parquet"))) == 24
    manifests = [read_json(tmp_path / name / "1-of-1.manifest.json", "manifest") for name in ("a", "b")]
    assert sum(manifest["asked"] for manifest in manifests) == len(tables[0])


def test_adapters_are_loaded_by_name() -> None:
    assert registry.get("llava") is Llava
    assert registry.module_of("llava") == "readout_audit.models.llava"
    with pytest.raises(AuditError, match="adapter 'gpt' is not known"):
        registry.get("gpt")


def test_an_image_mode_the_family_lacks_is_refused(world: World) -> None:
    spec = ModelSpec("tiny", world.checkpoint, "fp32", None, "tiles", "sdpa", torch.device("cpu"))
    with pytest.raises(AuditError, match="image_mode 'tiles' is not one of as_is, pad"):
        Llava(spec)
