"""The stage against a server that others made: vLLM, with a random-weight LLaVA, compared with transformers.

Skipped where no `vllm` command is on the path. Any build for the CPU will do; it need not share our
environment.
"""

import io
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests
from api_world import World
from PIL import Image

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.stages.ask_api import main

pytestmark = pytest.mark.slow

KEY = "sk-vllm-0123456789"
EDGE = 56
"""Edge of the model's pictures; ours have it too, so that nobody resizes."""


def interpreter() -> str:
    """The Python that the `vllm` command runs under, from the command's first line."""
    command = shutil.which("vllm")
    if command is None:
        pytest.skip("no vllm command is on the path")
    first = Path(command).read_text(errors="replace").splitlines()[0]
    return first.removeprefix("#!").strip()


def write_checkpoint(folder: Path) -> Any:
    """Write a LLaVA of two layers, every head 32 wide as vLLM's CPU kernels want; return the network."""
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file, save_file
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    from readout_audit.models import tiny

    tokenizer = tiny.metaspace_tokenizer()
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2, "num_hidden_layers": 2}
    ids = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    text = LlamaConfig(**sizes, **ids, vocab_size=len(tokenizer) + 6, max_position_embeddings=512)
    vision = CLIPVisionConfig(**{**sizes, "num_hidden_layers": 3}, image_size=EDGE, patch_size=14)
    torch.manual_seed(0)
    network = LlavaForConditionalGeneration(
        LlavaConfig(
            vision_config=vision.to_dict(),
            text_config=text.to_dict(),
            image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
            image_seq_length=(EDGE // 14) ** 2,
        )
    ).eval()
    tiny.spread(network)
    network.save_pretrained(folder)
    # vLLM knows the names that published checkpoints have.
    weights = load_file(folder / "model.safetensors")
    renamed = {
        name.replace("vision_tower.", "vision_tower.vision_model."): value for name, value in weights.items()
    }
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(
            size={"shortest_edge": EDGE}, crop_size={"height": EDGE, "width": EDGE}
        ),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    processor.save_pretrained(folder)
    return network, processor


@dataclass(frozen=True)
class Running:
    """A running server, and the same model in this process."""

    url: str
    network: Any
    processor: Any


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    python = interpreter()
    folder = tmp_path_factory.mktemp("vllm")
    network, processor = write_checkpoint(folder / "model")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = f"--served-model-name tiny --host 127.0.0.1 --port {port} --dtype float32 --max-model-len 256"
    words += f" --enforce-eager --max-num-seqs 4 --api-key {KEY}"
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "OMP_NUM_THREADS": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    command = [
        python,
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
        str(folder / "model"),
        *words.split(),
    ]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
    try:
        wait_until_up(f"http://127.0.0.1:{port}/health", server, folder / "log")
        yield Running(f"http://127.0.0.1:{port}/v1", network, processor)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(timeout=60)


def wait_until_up(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait up to ten minutes for a server; alone on two cores it takes one."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if server.poll() is not None:
            pytest.fail(f"vLLM did not start:\n{log.read_text()[-3000:]}")
        try:
            if requests.get(url, timeout=2).ok:
                return
        except requests.RequestException:
            pass
        time.sleep(1)
    pytest.fail("vLLM did not start in ten minutes")


@pytest.fixture
def asked(vllm: Running, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Command-line arguments to ask about noisy pictures of the model's own size."""
    monkeypatch.setenv("VLLM_KEY", KEY)
    generator = np.random.default_rng(1)
    for path in world.images.iterdir():
        Image.fromarray(generator.integers(0, 256, (EDGE, EDGE, 3), dtype=np.uint8)).save(path)
    return world.arguments(
        tmp_path, vllm.url, "--key-variable", "VLLM_KEY", served_model="tiny", max_tokens=4, top_logprobs=20
    )


def log_probabilities(vllm: Running, prompt: str, image: Path) -> tuple[list[str], list[float]]:
    """The texts and log-probabilities of the 20 likeliest first tokens, computed in this process."""
    import torch

    with Image.open(io.BytesIO(image.read_bytes())) as picture:
        inputs = vllm.processor(
            text=f"USER: <image>\n{prompt} ASSISTANT:",
            images=picture.convert("RGB"),
            add_special_tokens=False,
            return_tensors="pt",
        )
    with torch.no_grad():
        logits = vllm.network(**inputs).logits[0, -1].double()
    top = torch.topk(torch.log_softmax(logits, -1), 20)
    return [vllm.processor.tokenizer.decode([i]) for i in top.indices.tolist()], top.values.tolist()


def test_its_numbers_are_the_models_own_and_nothing_is_asked_twice(vllm, asked, world, tmp_path):
    assert main(asked) == 0
    records = read_table(tmp_path / "records.parquet", RECORDS, "the records")
    meta = table_metadata(records)
    assert (meta["n_ok"], meta["n_invalid"]) == (6, 0)
    pieces = meta["token_map"]["pieces"]
    for row in records.to_pylist():
        texts, expected = log_probabilities(vllm, row["prompt"], world.images / row["image"])
        assert np.abs(np.array(row["top_logits"]) - expected).max() < 1e-3
        assert row["argmax_text"] == texts[0]
        assert sorted(pieces[str(i)] for i in row["top_ids"][:10]) == sorted(texts[:10])
        assert len(row["new_ids"]) <= 4
    before = (tmp_path / "records.parquet").read_bytes()
    assert main(asked) == 0
    assert (tmp_path / "records.parquet").read_bytes() == before


def test_its_refusals_are_one_sentence(vllm, asked, monkeypatch):
    monkeypatch.setenv("VLLM_KEY", "sk-another-key")
    with pytest.raises(AuditError, match="answers 401, not authorised; check the key in VLLM_KEY"):
        main(asked)
    monkeypatch.setenv("VLLM_KEY", KEY)
    settings = asked[asked.index("--settings") + 1]
    for change, sentence in (
        (settings.replace('"tiny"', '"other"'), "answers 404 .*`other` does not exist"),
        (
            settings.replace('"top_logprobs": 20', '"top_logprobs": 1000'),
            "3 questions in a row .*400 .*max allowed",
        ),
    ):
        with pytest.raises(AuditError, match=sentence):
            main([change if word == settings else word for word in asked])
