"""Each adapter against transformers used directly, and preflight of each family."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from PIL import Image

from readout_audit.errors import AuditError
from readout_audit.models import preflight, registry, tiny
from readout_audit.models.base import ModelSpec, UnanswerableError
from readout_audit.models.templates import Template, render
from readout_audit.tokens import tokenmap

TEMPLATES = {
    "generic": Template("t", "USER: <image>\n{question}\nASSISTANT:"),
    "instructblip": Template("t", "Question: {question} Answer yes or no only. Answer:"),
    "llava": Template("t", "USER: <image>\n{question}\nASSISTANT:"),
    "llava_next": Template("t", "[INST] <image>\n{question} [/INST]"),
    "mplug_owl2": Template("t", "USER: <|image|>{question} Answer yes or no only.\nASSISTANT:"),
    "qwen2_vl": Template("t", chat=True, suffix=" Answer yes or no only."),
}


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folders: dict[str, Path] = {}

    def get(family: str) -> Path:
        if family not in folders:
            folders[family] = tmp_path_factory.mktemp(family)
            tiny.build(family, folders[family])
        return folders[family]

    return get


def load(family: str, folder: Path, **changes: Any) -> Any:
    values = {
        "precision": "fp32",
        "compute_dtype": None,
        "image_mode": "as_is",
        "attention": "sdpa",
        **changes,
    }
    return registry.get(family)(ModelSpec(family, folder, device=torch.device("cpu"), **values))


def asked(model: Any, family: str, image: Image.Image) -> tuple[str, Any]:
    prompt = render(TEMPLATES[family], preflight.PROBE_QUESTION, model.tokenizer, model.spec.folder)
    return prompt, model.encode(prompt, model.prepare_image(image))


@pytest.mark.parametrize("family", sorted(TEMPLATES))
def test_preflight_passes(folder_of: Callable[[str], Path], family: str) -> None:
    folder, template = folder_of(family), TEMPLATES[family]
    model = load(family, folder)
    passed = preflight.run(model, template, tokenmap.build(family, folder, {"t": template}))
    assert passed.n_image_tokens == {"instructblip": 4, "mplug_owl2": 5}.get(family, passed.n_image_tokens)
    assert passed.parameter_dtypes.keys() == {"float32"}
    assert passed.processing["class"].endswith("Pil") or family == "generic"


@pytest.mark.parametrize("family", ["llava", "llava_next", "instructblip", "generic"])
def test_the_checkpoints_own_processor_gives_the_same(folder_of: Callable[[str], Path], family: str) -> None:
    """Ids and first logits equal those of the whole processor and a plain call of the model class."""
    folder = folder_of(family)
    model = load(family, folder)
    names = {"instructblip": "InstructBlip", "llava": "Llava", "llava_next": "LlavaNext", "generic": "Llava"}
    processor_class = getattr(transformers, f"{names[family]}Processor")
    if family == "instructblip":
        kept = {"local_files_only": True}
        images = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil", **kept)
        words = transformers.AutoTokenizer.from_pretrained(folder / "qformer_tokenizer", **kept)
        processor = processor_class(images, model.tokenizer, words, num_query_tokens=4)
        processor.image_token = transformers.AddedToken("<image>", normalized=False, special=True)
    else:
        processor = processor_class.from_pretrained(folder, backend="pil")
    network = getattr(transformers, f"{names[family]}ForConditionalGeneration").from_pretrained(folder).eval()
    prompt, encoded = asked(model, family, preflight.probe_image())
    inputs = processor(images=preflight.probe_image(), text=prompt, return_tensors="pt")
    assert inputs["input_ids"][0].tolist() == encoded.ids.tolist()
    with torch.no_grad():
        expected = network(**inputs).logits[0, -1]
    found, _ = model.first_logits(encoded)
    assert torch.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("size", [(320, 240), (30, 30), (100, 31)])
def test_qwen_positions_are_the_networks_own(folder_of: Callable[[str], Path], size: tuple[int, int]) -> None:
    """Left to itself, the network computes the same positions as are passed to it."""
    model = load("qwen2_vl", folder_of("qwen2_vl"))
    _, encoded = asked(model, "qwen2_vl", preflight.probe_image().resize(size))
    arguments = model.forward_arguments(encoded)
    del arguments["position_ids"]
    arguments["mm_token_type_ids"] = (encoded.ids[None] == model.image_token_id).int()
    with torch.no_grad():
        expected = model.network(**arguments).logits[0, -1]
    assert torch.allclose(model.first_logits(encoded)[0], expected, atol=1e-5)
    assert int((encoded.ids == model.image_token_id).sum()) == model.visual_features(encoded.image)


def test_qwen_state_of_another_prompt_changes_nothing(folder_of: Callable[[str], Path]) -> None:
    """The network keeps position offsets from its last prompt; a continuation must not pick them up."""
    model = load("qwen2_vl", folder_of("qwen2_vl"))
    _, small = asked(model, "qwen2_vl", preflight.probe_image().resize((60, 60)))
    _, large = asked(model, "qwen2_vl", preflight.probe_image())
    _, alone = model.first_logits(small)
    expected = model.next_logits(alone, 5)
    _, state = model.first_logits(small)
    model.first_logits(large)
    model.network.model.rope_deltas = torch.tensor([[1000]])
    assert torch.equal(model.next_logits(state, 5), expected)


@pytest.mark.parametrize(("size", "tokens"), [((640, 480), 391), ((32, 32), 4), ((3000, 2000), 1247)])
def test_qwen_tokens_at_the_published_pixel_limits(
    folder_of: Callable[[str], Path], size: tuple[int, int], tokens: int
) -> None:
    model = load("qwen2_vl", folder_of("qwen2_vl"))
    model.processor.image_processor.size = {"shortest_edge": 56 * 56, "longest_edge": 28 * 28 * 1280}
    assert model.prepare_image(Image.new("RGB", size)).n_tokens == tokens


@pytest.mark.parametrize("size", [(320, 240), (56, 56), (60, 200)])
def test_llava_next_tiles_follow_the_pictures_shape(
    folder_of: Callable[[str], Path], size: tuple[int, int]
) -> None:
    model = load("llava_next", folder_of("llava_next"))
    image = model.prepare_image(Image.new("RGB", size))
    assert image.n_tokens == model.visual_features(image)


@pytest.mark.parametrize("family", ["llava", "llava_next"])
def test_the_last_vision_layer_is_not_run(folder_of: Callable[[str], Path], family: str) -> None:
    """Its output is never read; the features are the same, and the layer is back in place afterwards."""
    model = load(family, folder_of(family))
    image = model.prepare_image(preflight.probe_image())
    with torch.no_grad():
        expected = model.network.get_image_features(**image.tensors, return_dict=True).pooler_output[0]
    layers = model.network.model.vision_tower.encoder.layers
    calls = []
    for number, layer in enumerate(layers):
        layer.mlp.register_forward_hook(lambda *_, number=number: calls.append(number))
    assert torch.equal(model.see([image])[0], expected)
    assert calls == [0, 1]
    model.network.get_image_features(**image.tensors, return_dict=True)
    assert calls == [0, 1, 0, 1, 2]


def test_instructblip_queries_come_before_everything(folder_of: Callable[[str], Path]) -> None:
    model = load("instructblip", folder_of("instructblip"))
    prompt, encoded = asked(model, "instructblip", preflight.probe_image())
    assert encoded.ids[:5].tolist() == [*[model.image_token_id] * 4, model.tokenizer.bos_token_id]
    with pytest.raises(UnanswerableError, match="the processor adds itself"):
        model.encode("<image>" + prompt, encoded.image)


def test_instructblip_keeps_its_queries_in_float32(folder_of: Callable[[str], Path]) -> None:
    model = load("instructblip", folder_of("instructblip"), precision="fp16")
    assert model.network.query_tokens.dtype is torch.float32
    assert model.network.language_projection.weight.dtype is torch.float16
    _, encoded = asked(model, "instructblip", preflight.probe_image())
    assert bool(torch.isfinite(model.first_logits(encoded)[0]).all())


def test_owl_reads_an_image_as_its_placeholder(folder_of: Callable[[str], Path]) -> None:
    model = load("mplug_owl2", folder_of("mplug_owl2"))
    _, encoded = asked(model, "mplug_owl2", preflight.probe_image())
    ids = [token_id for token_id in encoded.ids.tolist() if token_id != -200]
    assert len(ids) == len(encoded.ids) - 5
    assert model.decode([1, -200, *ids[1:4]], skip_special_tokens=False).startswith("<s><|image|>")


def test_a_family_loaded_with_another_ones_checkpoint_stops(folder_of: Callable[[str], Path]) -> None:
    with pytest.raises(AuditError, match="holds a qwen2_vl model, not a llava_next one"):
        load("llava_next", folder_of("qwen2_vl"))


@pytest.mark.parametrize("name", ["llava-1.5-7b-hf", "llava-v1.6-mistral-7b-hf"])
def test_with_a_real_vocabulary(shared: Path, tmp_path: Path, name: str) -> None:
    real = shared / "mirror" / "tokenizers" / name
    if not real.is_dir():
        pytest.skip("the mirrored tokenizers are not there")
    family = "llava" if "1.5" in name else "llava_next"
    tiny.build(family, tmp_path, tokenizer=real)
    template = TEMPLATES[family]
    token_map = tokenmap.build(name, tmp_path, {"t": template})
    assert token_map["single"] == tokenmap.build(name, real, {"t": template})["single"]
    model = load(family, tmp_path)
    passed = preflight.run(model, template, token_map)
    assert_repeated_id_is_the_written_out_placeholders(model, family)
    # The pinned start of a LLaVA prompt: <s> ▁US ER : ▁ and then the image.
    if family == "llava":
        assert passed.first_input_ids[:6] == [1, 3148, 1001, 29901, 29871, 32000]


def assert_repeated_id_is_the_written_out_placeholders(model: Any, family: str) -> None:
    """The published processors write the placeholder out as often as there are tokens and tokenize that text."""
    prompt, encoded = asked(model, family, preflight.probe_image())
    written_out = prompt.replace(model.placeholder, model.placeholder * encoded.image.n_tokens)
    assert encoded.image.n_tokens > 1
    assert encoded.ids.tolist() == model.token_ids(written_out).tolist()


def test_instructblip_and_qwen_with_their_real_vocabularies(shared: Path, tmp_path: Path) -> None:
    mirror = shared / "mirror" / "tokenizers"
    if not mirror.is_dir():
        pytest.skip("the mirrored tokenizers are not there")
    pinned = {
        "instructblip": ("instructblip-vicuna-7b", [2, 894, 29901, 1317, 727, 263]),
        "qwen2_vl": ("qwen2-vl-7b-instruct", [151644, 8948, 198, 2610, 525, 264]),
    }
    for family, (name, first) in pinned.items():
        folder = tmp_path / family
        tiny.build(family, folder, tokenizer=mirror / name)
        template = Template(**{**TEMPLATES[family].__dict__, "pinned": {"first_ids": first}})
        model = load(family, folder)
        preflight.run(model, template, tokenmap.build(name, folder, {"t": template}))
        if family == "qwen2_vl":
            assert_repeated_id_is_the_written_out_placeholders(model, family)
