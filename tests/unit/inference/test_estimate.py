"""What a job is said to take: counted by hand on a tiny LLaVA."""

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from readout_audit.errors import AuditError
from readout_audit.inference.base import Question
from readout_audit.inference.estimate import (
    Memory,
    Work,
    estimate_memory,
    job_lines,
    loaded_bytes,
    measure_work,
    position_bytes,
    weights_line,
)
from readout_audit.inference.sizes import expected_bytes, size
from readout_audit.models import registry
from readout_audit.models.base import ModelSpec, VisionLanguageModel

PROMPT = "USER: <image>\n{}\nASSISTANT:"


@pytest.fixture(scope="module")
def model(tiny_checkpoint: Path) -> VisionLanguageModel:
    spec = ModelSpec("tiny", tiny_checkpoint, "fp32", None, "as_is", "sdpa", torch.device("cpu"))
    return registry.get("llava")(spec)


def questions(*texts: str) -> list[Question]:
    return [
        Question(f"{image}{text}", image, None, text, PROMPT.format(text))
        for image in ("a.png", "b.png")
        for text in texts
    ]


def test_tokens_are_counted_on_the_real_prompts(model: VisionLanguageModel) -> None:
    """Every letter is a token here: "Ab" and "Acd" share all up to the A; the rest is b or cd, and the end."""
    asked = questions("Ab", "Acd")
    lengths = [len(model.encode(one.prompt, model_image(model)).ids) for one in asked[:2]]
    end = len("\nASSISTANT:")
    work = measure_work(model, asked, 16, alone=False)
    prefix = lengths[0] - end - 1
    assert lengths[1] - prefix == end + 2
    assert work == Work(4, 2, 16, 2 * prefix, 2 * (2 * end + 3), prefix, end + 2)
    alone = measure_work(model, asked, 16, alone=True)
    assert alone == Work(4, 2, 16, 0, 2 * sum(lengths), 0, lengths[1])


def model_image(model: VisionLanguageModel):  # type: ignore[no-untyped-def]
    from readout_audit.models.preflight import probe_image

    return model.prepare_image(probe_image())


def test_keys_and_values_of_a_position(model: VisionLanguageModel) -> None:
    # Keys and values, 2 layers, 2 heads of 64 / 4 = 16 numbers, 4 bytes each.
    assert position_bytes(model) == 2 * 2 * 2 * 16 * 4


def test_weights_before_and_after_loading(model: VisionLanguageModel, tiny_checkpoint: Path) -> None:
    parameters, needed = expected_bytes(tiny_checkpoint, "fp32", None)
    assert parameters == sum(parameter.numel() for parameter in model.network.parameters())
    assert needed == 4 * parameters
    # Buffers (position tables, rotary frequencies) come on top once it is loaded.
    assert needed <= loaded_bytes(model) < 1.01 * needed
    assert expected_bytes(tiny_checkpoint, "bf16", None)[1] == 2 * parameters
    nf4, int8 = (expected_bytes(tiny_checkpoint, kind, "float16")[1] for kind in ("nf4", "int8"))
    assert nf4 < int8 < 2 * parameters


@pytest.mark.parametrize("precision", ["int8", "nf4"])
def test_the_estimate_of_quantised_weights(precision: str, tiny_checkpoint: Path) -> None:
    spec = ModelSpec("tiny", tiny_checkpoint, precision, "float16", "as_is", "sdpa", torch.device("cpu"))
    loaded = loaded_bytes(registry.get("llava")(spec))
    # bitsandbytes keeps its scales beside the parameters, which `loaded_bytes` does not see.
    assert expected_bytes(tiny_checkpoint, precision, "float16")[1] == pytest.approx(loaded, rel=0.1)


def test_more_work_takes_more_memory(model: VisionLanguageModel) -> None:
    small, large = Work(4, 2, 16, 60, 52, 30, 13), Work(4, 2, 576, 1180, 52, 590, 13)
    one, many = (estimate_memory(model, small, batch, 1, 6) for batch in (1, 32))
    bigger = estimate_memory(model, large, 1, 1, 6)
    assert one is not None and many is not None and bigger is not None
    assert one.caches == position_bytes(model) * (30 + 13 + 6)
    assert many.caches == position_bytes(model) * (30 + 32 * (13 + 6))
    assert many.activations > one.activations
    assert bigger.activations > one.activations
    assert one.weights == many.weights and many.total == many.weights + many.caches + many.activations


def test_a_model_that_does_not_say_its_sizes_is_asked_all_the_same(
    model: VisionLanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type(model.network.config)
    monkeypatch.setattr(kind, "get_text_config", lambda self: SimpleNamespace(hidden_size=64))
    work = Work(4, 2, 16, 60, 52, 30, 13)
    assert estimate_memory(model, work, 1, 1, 6) is None
    assert "estimated memory: not known" in job_lines(work, None, torch.device("cpu"))[1]


def test_the_lines() -> None:
    lines = job_lines(
        Work(5170, 500, 576, 290_000, 78_000, 581, 20), Memory(2**32, 2**29, 2**28), torch.device("cuda")
    )
    assert lines[0].startswith("5,170 distinct questions about 500 images; 576 tokens a picture")
    assert (
        "reads 368,000 tokens: 290,000 of prefixes, once per image, and 78,000 of the questions' own"
        in lines[0]
    )
    assert (
        "estimated GPU memory: 4.75 GiB (weights 4.00 GiB, caches 0.50 GiB, activations 0.25 GiB)" in lines[1]
    )
    assert size(2**20) == "1.0 MiB"


def test_weights_that_do_not_fit_stop_before_they_are_loaded(
    tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 8 * 2**30))
    with pytest.raises(
        AuditError, match=r"the weights take about .* in fp32 and the GPU has 0\.0 MiB of 8\.00 GiB"
    ):
        weights_line(tiny_checkpoint, "fp32", None, torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2**30, 8 * 2**30))
    assert "1.00 GiB of the GPU's 8.00 GiB are free" in weights_line(
        tiny_checkpoint, "nf4", "float16", torch.device("cuda")
    )


def test_a_damaged_weight_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\x10\0\0\0\0\0\0\0no json at all")
    with pytest.raises(AuditError, match=r"model\.safetensors: the weights cannot be read"):
        expected_bytes(tmp_path, "fp32", None)
