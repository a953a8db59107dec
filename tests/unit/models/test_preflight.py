"""Preflight and loading: every mistake stops the job in one sentence."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file

from readout_audit.errors import AuditError
from readout_audit.models import precision, preflight, tiny
from readout_audit.models.base import ModelSpec, UnanswerableError, argmax_lowest
from readout_audit.models.checkpoint import check_folder, content_hash, output_rows, resolved_revision
from readout_audit.models.llava import Llava, pad_to_square
from readout_audit.models.templates import Template, render
from readout_audit.tokens import tokenmap

TEMPLATE = Template("authors", "USER: <image>\n{question} Answer yes or no only.\nASSISTANT:")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("tiny")
    tiny.build("llava", where)
    return where


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def load(folder: Path, kind: str = "fp32", compute: str | None = None, **changes: Any) -> Llava:
    values = {"image_mode": "as_is", "attention": "sdpa", "device": torch.device("cpu"), **changes}
    return Llava(ModelSpec("tiny", folder, kind, compute, **values))


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))


def test_a_sound_model_passes(folder: Path) -> None:
    model = load(folder)
    passed = preflight.run(model, TEMPLATE, tokenmap.build("tiny", folder, {"authors": TEMPLATE}))
    assert passed.n_image_tokens == 16 and passed.first_input_ids[0] == model.tokenizer.bos_token_id
    assert passed.parameter_dtypes == {"float32": 80}
    assert passed.processing["class"] == "CLIPImageProcessorPil"
    assert passed.processing["do_center_crop"] is True


@pytest.mark.parametrize("patch_size", [10, 15, 28])
def test_placeholders_that_do_not_fit_the_features(copy: Path, patch_size: int) -> None:
    """A processor with another patch size writes another number of placeholders than the model has features."""
    edit(copy / "processor_config.json", lambda config: config.update(patch_size=patch_size))
    with pytest.raises(
        AuditError, match=r"placeholders but the model makes 16 .*LlavaProcessor.*transformers"
    ):
        preflight.run(load(copy), TEMPLATE, tokenmap.build("tiny", copy, {"authors": TEMPLATE}))


@pytest.mark.parametrize(
    ("pinned", "message"),
    [
        ({"prompt": "USER: x"}, "not as the pinned 'USER: x'"),
        ({"first_ids": [2]}, r"text starts with ids \[1\], pinned are \[2\]"),
    ],
)
def test_pinned_prompt_and_ids(folder: Path, pinned: dict[str, Any], message: str) -> None:
    template = Template("authors", TEMPLATE.text, pinned=pinned)
    with pytest.raises(AuditError, match=message):
        preflight.run(load(folder), template, tokenmap.build("tiny", folder, {"authors": template}))


def test_two_start_tokens(folder: Path) -> None:
    template = Template("authors", "<s><s>" + TEMPLATE.text)
    with pytest.raises(AuditError, match="2 leading start tokens"):
        preflight.run(load(folder), template, tokenmap.build("tiny", folder, {"authors": template}))


def test_a_start_token_in_the_text_is_not_doubled(folder: Path) -> None:
    model = load(folder)
    image = model.prepare_image(preflight.probe_image())
    plain, opened = (model.encode(start + "<image> A:", image).ids.tolist() for start in ("", "<s>"))
    assert opened[0] == plain[0] == 1 and opened[1] != 1


def test_weights_that_are_not_finite(copy: Path) -> None:
    weights = load_file(copy / "model.safetensors")
    (head,) = (name for name in weights if name.endswith("lm_head.weight"))
    weights[head][7, 0] = float("inf")
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(AuditError, match="logits that are not finite in fp32 with sdpa attention"):
        preflight.run(load(copy), TEMPLATE, tokenmap.build("tiny", copy, {"authors": TEMPLATE}))


def test_a_parameter_on_another_device_stops_the_load(folder: Path) -> None:
    with pytest.raises(AuditError, match="was offloaded to cpu; the model does not fit on cuda"):
        precision.check_loaded(load(folder).network, "fp32", torch.float32, torch.device("cuda"), "tiny")


def test_attention_that_gives_garbage_stops_the_job(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two implementations are compared: here sdpa forgets to scale."""
    model = load(folder)
    attend = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional,
        "scaled_dot_product_attention",
        lambda *values, **named: attend(*values, **{**named, "scale": 40.0}),
    )
    with pytest.raises(AuditError, match="logits under sdpa and eager attention differ by"):
        preflight.run(model, TEMPLATE, tokenmap.build("tiny", folder, {"authors": TEMPLATE}))


def test_buffers_that_are_computed_anew_may_lie_in_a_checkpoint(copy: Path) -> None:
    weights = load_file(copy / "model.safetensors")
    weights["language_model.model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.zeros(8)
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    assert load(copy).network is not None


def test_a_missing_weight_is_named(copy: Path) -> None:
    weights = load_file(copy / "model.safetensors")
    name = next(name for name in weights if "layers.1.mlp.up_proj" in name and "language" in name)
    del weights[name]
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(AuditError, match=r"has no weight .*layers\.1\.mlp\.up_proj"):
        load(copy)


def test_an_unexpected_weight_is_named(copy: Path) -> None:
    weights = {**load_file(copy / "model.safetensors"), "model.extra.weight": torch.zeros(2)}
    save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(AuditError, match=r"unexpected weight model\.extra\.weight"):
        load(copy)


@pytest.mark.parametrize(("kind", "found"), [("fp32", "float32"), ("bf16", "bfloat16"), ("fp16", "float16")])
def test_the_precision_asked_for_is_the_one_found(folder: Path, kind: str, found: str) -> None:
    """Whatever dtype a checkpoint was saved in."""
    model = load(folder, kind)
    assert precision.found_dtypes(model.network) == {found: 80}
    logits, _ = model.first_logits(model.encode("<image> A:", model.prepare_image(preflight.probe_image())))
    assert logits.dtype is torch.float32 and bool(torch.isfinite(logits).all())


@pytest.mark.parametrize("kind", ["int8", "nf4"])
def test_quantised_on_a_cpu(folder: Path, kind: str) -> None:
    model = load(folder, kind, "float32")
    counts = precision.found_dtypes(model.network)
    assert counts[{"int8": "int8", "nf4": "uint8"}[kind]] > 0
    token_map = tokenmap.build("tiny", folder, {"authors": TEMPLATE})
    assert preflight.run(model, TEMPLATE, token_map).parameter_dtypes == counts


def test_nf4_computes_in_the_dtype_that_was_asked_for(folder: Path) -> None:
    """On CPUs with bf16 instructions bitsandbytes would round every activation to bf16."""
    model = load(folder, "nf4", "float32")
    layer = model.network.model.language_model.layers[0].mlp.up_proj
    values = torch.linspace(-1, 1, 64)[None].repeat(3, 1)
    with torch.inference_mode():
        out = layer(values)
    assert float((out - out.bfloat16().float()).abs().max()) > 0


def test_a_parameter_of_another_dtype_or_on_meta_stops_the_load(folder: Path) -> None:
    network = load(folder).network
    head = network.get_output_embeddings()
    head.weight = torch.nn.Parameter(head.weight.half())
    with pytest.raises(AuditError, match=r"lm_head\.weight is torch\.float16"):
        precision.check_loaded(network, "fp32", torch.float32, torch.device("cpu"), "tiny")
    head.weight = torch.nn.Parameter(torch.empty(2, 2, device="meta"))
    with pytest.raises(AuditError, match=r"lm_head\.weight was not loaded"):
        precision.check_loaded(network, "fp32", torch.float32, torch.device("cpu"), "tiny")


def test_bf16_on_an_old_gpu_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla T4")
    with pytest.raises(
        AuditError, match=r"Tesla T4 \(compute capability 7\.5\) has no bf16; use precision fp16"
    ):
        precision.check_device("bf16", torch.bfloat16, torch.device("cuda"))


@pytest.mark.parametrize(
    "name", ["config.json", "tokenizer_config.json", "tokenizer.json", "processor_config.json"]
)
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    named = "preprocessor_config.json" if name == "processor_config.json" else name
    with pytest.raises(AuditError, match=named.replace(".", r"\.")):
        check_folder(copy)


def test_pickled_and_missing_weights(copy: Path) -> None:
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(AuditError, match=r"no \.safetensors weights"):
        check_folder(copy)
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    (copy / "model-00001-of-00002.safetensors").write_bytes(b"")
    with pytest.raises(AuditError, match="missing: model-00002-of-00002"):
        check_folder(copy)


def test_revision_is_the_commit_or_a_hash_of_the_bytes(copy: Path) -> None:
    assert resolved_revision(copy, None) == content_hash(copy)
    before = content_hash(copy)
    edit(copy / "config.json", lambda config: config.update(note=1))
    assert content_hash(copy) != before
    manifest = copy.with_name(copy.name + ".json")
    manifest.write_text(json.dumps({"revision": "a" * 40}))
    assert resolved_revision(copy, None) == "a" * 40
    with pytest.raises(AuditError, match="the settings say b"):
        resolved_revision(copy, "b" * 40)


def test_rows_of_the_head_from_the_config(folder: Path) -> None:
    assert output_rows(folder) == load(folder).vocabulary_rows == 117
    assert load(folder).piece(116) is None


def test_pad_to_square_before_processing(folder: Path) -> None:
    """Pad mode equals padding first and processing then, and keeps what a crop cuts away."""
    wide = np.zeros((20, 60, 3), dtype=np.uint8)
    wide[:, :8] = 255
    image = Image.fromarray(wide)
    model, plain = load(folder, image_mode="pad"), load(folder)
    square = pad_to_square(image, model.processor.image_processor.image_mean)
    assert square.size == (60, 60) and square.getpixel((0, 0)) == (122, 116, 104)
    assert square.getpixel((0, 20)) == (255, 255, 255) and square.getpixel((30, 39)) == (0, 0, 0)
    padded = model.prepare_image(image).tensors["pixel_values"]
    assert torch.equal(padded, plain.prepare_image(square).tensors["pixel_values"])
    assert not torch.equal(padded, plain.prepare_image(image).tensors["pixel_values"])


def test_the_processor_by_hand_and_whole_agree(folder: Path) -> None:
    """Image once and text by itself give what the checkpoint's own processor gives for both together."""
    model, image = load(folder), preflight.probe_image()
    prompt = render(TEMPLATE, "Is there a bus in the image?", model.tokenizer, folder)
    whole = model.processor(images=image, text=prompt, return_tensors="pt")
    inputs = model.prepare_image(image)
    assert whole["input_ids"][0].tolist() == model.encode(prompt, inputs).ids.tolist()
    assert torch.equal(whole["pixel_values"], inputs.tensors["pixel_values"])


def test_checkpoint_defaults_never_touch_the_logits(copy: Path, folder: Path) -> None:
    """A saved repetition penalty or temperature changes what `generate` scores, not a plain forward pass."""
    edit(
        copy / "generation_config.json",
        lambda config: config.update(repetition_penalty=1.5, do_sample=True, temperature=0.2),
    )
    results = []
    for where in (folder, copy):
        model = load(where)
        results.append(
            model.first_logits(model.encode("<image> A:", model.prepare_image(preflight.probe_image())))[0]
        )
    assert torch.equal(*results)


def test_a_prompt_without_its_image_is_not_asked(folder: Path) -> None:
    model = load(folder)
    with pytest.raises(UnanswerableError, match="0 image placeholders"):
        model.encode("no picture", model.prepare_image(preflight.probe_image()))


def test_argmax_takes_the_lowest_id() -> None:
    assert argmax_lowest(torch.tensor([[0.0, 2.0, 2.0], [3.0, 1.0, 3.0]])).tolist() == [1, 0]


def test_chat_templates_render_around_image_and_suffix(folder: Path) -> None:
    model = load(folder)
    template = Template("chat", chat=True, suffix=" Answer yes or no only.")
    rendered = render(template, "Is there a bus?", model.tokenizer, folder)
    assert rendered == "USER: <image>\nIs there a bus? Answer yes or no only. ASSISTANT:"
    # A question is text: what looks like a format field or a template stays as it is.
    odd = "Is {there} a {{bus}}? {question}"
    assert odd in render(template, odd, model.tokenizer, folder)
    assert odd in render(TEMPLATE, odd, model.tokenizer, folder)


INVOLVED = r"\[processor LlavaProcessor, checkpoint copy, transformers [\d.]+, torch [\d.+a-z]+\]\.$"


def damage(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(content) and None


def drop_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights[next(name for name in weights if "lm_head" in name)]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def reshape_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    name = next(name for name in weights if "lm_head" in name)
    weights[name] = weights[name][:, :32].contiguous()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


def cut_short(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (drop_weight, "has no weight .*lm_head"),
        (reshape_weight, r"has another shape for weight lm_head\.weight \[processor"),
        (cut_short, "cannot be loaded in fp32"),
        (damage("config.json", b"{"), "config.json"),
        (damage("config.json", b'{"model_type": "qwen2_vl"}'), "holds a qwen2_vl model, not a llava one"),
        (damage("tokenizer.json", b"[]"), "the tokenizer cannot be loaded"),
        (damage("processor_config.json", b"[1]"), "the processor cannot be loaded"),
        (damage("processor_config.json", b"{"), "the processor cannot be loaded"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"tokenizer\.json is missing"),
    ],
)
def test_whatever_stops_a_load_is_one_line_with_everything_involved(
    copy: Path, spoil: Callable[[Path], None], message: str
) -> None:
    spoil(copy)
    spec = ModelSpec("tiny", copy, "fp32", None, "as_is", "sdpa", torch.device("cpu"))
    with pytest.raises(AuditError, match=message) as caught:
        preflight.load("llava", spec)
    sentence = str(caught.value)
    assert re.search(INVOLVED, sentence) and sentence.startswith("preflight of tiny: ")
    assert "\n" not in sentence


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
def test_memory_that_does_not_suffice_names_the_remedy(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error("tried to allocate 20 GiB")

    monkeypatch.setattr("transformers.LlavaForConditionalGeneration.from_pretrained", fail)
    spec = ModelSpec("tiny", folder, "fp32", None, "as_is", "sdpa", torch.device("cpu"))
    with pytest.raises(AuditError, match="the memory of cpu does not suffice in fp32; use nf4"):
        preflight.load("llava", spec)


def test_how_pictures_are_cut_is_said(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    preflight.run(load(folder), TEMPLATE, tokenmap.build("tiny", folder, {"authors": TEMPLATE}))
    assert (
        "pictures by CLIPImageProcessorPil, centre crop, image_mode as_is, size {'shortest_edge': 56}"
        in caplog.text
    )
    assert "crop_size {'height': 56, 'width': 56}" in caplog.text
    words = preflight.picture_words({"class": "P", "crop_size": 3, "do_center_crop": False, "max_pixels": 9})
    assert words == "P, no crop, max_pixels 9"
