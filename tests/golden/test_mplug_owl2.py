"""Our mPLUG-Owl2 against the recorded tensors of the public model code (see the fixture's README, §1.2 and §1.3)."""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from PIL import Image  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import DynamicCache  # noqa: E402

from readout_audit.models.mplug_owl2.checkpoint import expected_parameters, load_model  # noqa: E402
from readout_audit.models.mplug_owl2.configuration import MplugOwl2Config  # noqa: E402
from readout_audit.models.mplug_owl2.generation import generate_greedy  # noqa: E402
from readout_audit.models.mplug_owl2.preprocessing import (  # noqa: E402
    load_image_processor,
    preprocess_images,
    square,
)
from readout_audit.models.mplug_owl2.prompts import encode_prompt  # noqa: E402
from readout_audit.models.mplug_owl2.tokenizer import load_tokenizer  # noqa: E402

CASES = [
    "a_image_start",
    "b_image_middle",
    "c1_short",
    "c2_long",
    "d_two_images",
    "e_text_only",
    "f_image_last",
]
TOLERANCE = 1e-4
BUFFER = re.compile(r"(rotary_emb\.inv_freq|attention\.[qk]_pos_embed)$")

# Recorded name -> module whose output it is; the order is the order in which a difference first shows.
MODULES = {
    "detail.vision.patch_embed": "model.vision_model.embeddings.patch_embed",
    "vision.embeddings": "model.vision_model.embeddings",
    **{
        f"detail.vision.layers.0.{part}": f"model.vision_model.encoder.layers.0.{path}"
        for part, path in {
            "input_layernorm": "input_layernorm",
            "query_key_value": "self_attn.query_key_value",
            "self_attn": "self_attn",
            "post_attention_layernorm": "post_attention_layernorm",
            "mlp": "mlp",
        }.items()
    },
    **{f"vision.layers.{k}": f"model.vision_model.encoder.layers.{k}" for k in range(2)},
    "vision.last_hidden_state": "model.vision_model",
    **{
        f"detail.abstractor.layers.0.{part}": f"model.visual_abstractor.encoder.layers.0.crossattention.{path}"
        for part, path in {
            "norm1": "norm1",
            "normk": "normk",
            "query": "attention.query",
            "key": "attention.key",
            "value": "attention.value",
            "out_proj": "output.out_proj",
            "norm2": "output.norm2",
            "ffn_ln": "output.mlp.ffn_ln",
            "mlp": "output.mlp",
        }.items()
    },
    **{f"abstractor.layers.{k}": f"model.visual_abstractor.encoder.layers.{k}" for k in range(2)},
    "abstractor.visual_fc": "model.visual_abstractor.visual_fc",
    "abstractor.output": "model.visual_abstractor",
    "lm.inputs_embeds": "",
    "lm.modality_indicators": "",
    **{
        f"detail.lm.layers.0.{part}": f"model.layers.0.{path}"
        for part, path in {
            "input_layernorm": "input_layernorm",
            "q_proj": "self_attn.q_proj",
            "k_proj": "self_attn.k_proj",
            "v_proj": "self_attn.v_proj",
            "self_attn": "self_attn",
            "post_attention_layernorm": "post_attention_layernorm",
            "mlp": "mlp",
        }.items()
    },
    **{f"lm.layers.{k}": f"model.layers.{k}" for k in range(3)},
    "lm.norm": "model.norm",
    "logits": "",
    "logits_last": "",
    **{f"kv.{k}.{part}": "" for k in range(3) for part in ("key", "value")},
    "generate.logits": "",
    "generate.tokens": "",
}


@pytest.fixture(scope="session")
def fixture_folder(shared):
    return shared / "fixtures" / "mplug_owl2_tiny"


@pytest.fixture(scope="session")
def inputs(fixture_folder):
    return load_file(fixture_folder / "inputs.safetensors")


@pytest.fixture(scope="session")
def expected(fixture_folder):
    return load_file(fixture_folder / "expected.safetensors")


@pytest.fixture(scope="session")
def without_buffers(fixture_folder, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("owl_without_buffers")
    weights = load_file(fixture_folder / "model.safetensors")
    kept = {name: tensor for name, tensor in weights.items() if not BUFFER.search(name)}
    assert len(weights) - len(kept) == 7
    save_file(kept, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_bytes((fixture_folder / "config.json").read_bytes())
    return folder


@pytest.fixture(scope="session", params=["sdpa, buffers", "sdpa, none", "eager, buffers", "eager, none"])
def model(request, fixture_folder, without_buffers):
    attention, buffers = request.param.split(", ")
    folder = fixture_folder if buffers == "buffers" else without_buffers
    return load_model(folder, dtype=torch.float32, attn_implementation=attention)


@contextmanager
def recording(model, names) -> Iterator[dict[str, torch.Tensor]]:
    """Record the first output of each named module."""
    recorded: dict[str, torch.Tensor] = {}

    def hook(name):
        def keep(_module, _inputs, output):
            recorded.setdefault(name, output[0] if isinstance(output, tuple) else output)

        return keep

    handles = [
        model.get_submodule(path).register_forward_hook(hook(name))
        for name, path in MODULES.items()
        if name in names
    ]
    try:
        yield recorded
    finally:
        for handle in handles:
            handle.remove()


def prepare(model, inputs, case):
    """Prompts and image vectors of one case."""
    pixel_values = inputs.get(f"{case}/pixel_values")
    images = None if pixel_values is None else model.encode_images(pixel_values)
    return model.pad_prompts(inputs[f"{case}/input_ids"].tolist()), images


@torch.inference_mode()
def run(model, inputs, case, names) -> dict[str, torch.Tensor]:
    cache = DynamicCache()
    with recording(model, {name for name in names if MODULES[name]}) as recorded:
        prompts, images = prepare(model, inputs, case)
        embeds, modality = model.splice(prompts.input_ids, images)
        logits = model(inputs_embeds=embeds, modality_indicators=modality, cache=cache).logits
    greedy = generate_greedy(model, prompts, images, max_new_tokens=5)
    recorded |= {
        "lm.inputs_embeds": embeds,
        "lm.modality_indicators": modality,
        "logits": logits,
        "logits_last": logits[:, -1],
        "generate.logits": greedy.logits[0],
        "generate.tokens": torch.tensor(greedy.tokens[0]),
    }
    for k, layer in enumerate(cache.layers):
        recorded |= {f"kv.{k}.key": layer.keys, f"kv.{k}.value": layer.values}
    return recorded


def test_every_recorded_tensor_is_compared(expected):
    assert len(expected) == 182
    assert {name.split("/", 1)[1] for name in expected} == set(MODULES)
    assert {name.split("/", 1)[0] for name in expected} == set(CASES)


@pytest.mark.parametrize("case", CASES)
def test_recorded_tensors_and_greedy_tokens(model, inputs, expected, case):
    names = [name for name in MODULES if f"{case}/{name}" in expected]
    found = run(model, inputs, case, names)
    for name in names:  # in order: the first that differs is where to look
        want = expected[f"{case}/{name}"]
        assert found[name].shape == want.shape, (
            f"{name}: shape {tuple(found[name].shape)}, not {tuple(want.shape)}"
        )
        if want.dtype == torch.int64:
            assert found[name].tolist() == want.tolist(), name
        else:
            difference = (found[name] - want).abs().max().item()
            assert difference <= TOLERANCE, f"{name}: differs by {difference:.2g}"


def test_image_positions_are_those_of_the_fixture(model, inputs, fixture_folder):
    cases = json.loads((fixture_folder / "inputs.json").read_text())["cases"]
    for case in CASES:
        prompts, _ = prepare(model, inputs, case)
        assert prompts.lengths.tolist() == [cases[case]["expanded_length"]]
        found = (prompts.input_ids[0] == -200).nonzero().squeeze(1).tolist()
        assert found == cases[case]["image_positions_after_splicing"]


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_rows_equal_separate_runs(model, inputs, expected, side):
    with torch.inference_mode():
        pixel_values = torch.cat(
            [inputs[f"{case}/pixel_values"] for case in CASES if f"{case}/pixel_values" in inputs]
        )
        ids = [inputs[f"{case}/input_ids"][0].tolist() for case in CASES]
        prompts, images = model.pad_prompts(ids, padding_side=side), model.encode_images(pixel_values)
        embeds, modality = model.splice(prompts.input_ids, images)
        logits = model(
            inputs_embeds=embeds,
            modality_indicators=modality,
            position_ids=prompts.position_ids,
            attention_mask=prompts.attention_mask,
        ).logits
    greedy = generate_greedy(model, prompts, images, max_new_tokens=5)
    for row, case in enumerate(CASES):
        real = logits[row][prompts.attention_mask[row].bool()]
        assert (real - expected[f"{case}/logits"][0]).abs().max() <= TOLERANCE
        assert (greedy.logits[row] - expected[f"{case}/generate.logits"]).abs().max() <= TOLERANCE
        assert greedy.tokens[row] == expected[f"{case}/generate.tokens"].tolist()


def prefill(model, inputs, case, cut) -> DynamicCache:
    """The cache after the first `cut` ids of a prompt and their images."""
    prompts = model.pad_prompts(inputs[f"{case}/input_ids"][:, :cut].tolist())
    embeds, modality = model.splice(prompts.input_ids, model.encode_images(inputs[f"{case}/pixel_values"]))
    return model(inputs_embeds=embeds, modality_indicators=modality).cache


def test_suffixes_continue_a_shared_prefix(model, inputs, expected):
    """The way of the shared-prefix engine: one prefix cache, repeated; right-padded suffixes at explicit positions."""
    case, cut = "a_image_start", 15  # ids 0..14 hold the image; 35 positions in all, so the prefix has 23
    ids = inputs[f"{case}/input_ids"][0].tolist()
    suffixes = [ids[cut:], ids[cut : cut + 4]]
    width = max(map(len, suffixes))
    with torch.inference_mode():
        cache = prefill(model, inputs, case, cut)
        start = cache.get_seq_length()
        cache.batch_repeat_interleave(2)
        real = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in suffixes])
        padded = torch.tensor([row + [0] * (width - len(row)) for row in suffixes])
        arguments = {
            "input_ids": padded,
            "position_ids": torch.arange(start, start + width)[None].expand(2, -1),
            "attention_mask": torch.cat([torch.ones(2, start, dtype=torch.long), real], dim=1),
            "logits_to_keep": (real.sum(dim=1, keepdim=True) - 1),
        }
        logits = model(**arguments, cache=cache).logits[:, 0]
    want = expected[f"{case}/logits"][0, [34, start + 3]]
    assert start == 23
    assert (logits - want).abs().max() <= TOLERANCE


def test_suffixes_packed_under_a_block_mask(model, inputs, expected):
    """Two suffixes in one row, kept apart by a ready 4-D mask: positions repeat, indices do not."""
    case, cut = "a_image_start", 15
    ids = inputs[f"{case}/input_ids"][0].tolist()
    suffixes = [ids[cut:], ids[cut : cut + 4]]
    owner = torch.tensor([0] * len(suffixes[0]) + [1] * len(suffixes[1]))
    with torch.inference_mode():
        cache = prefill(model, inputs, case, cut)
        start, n = cache.get_seq_length(), len(owner)
        own = (owner[:, None] == owner[None, :]) & torch.ones(n, n, dtype=torch.bool).tril()
        allowed = torch.cat([torch.ones(n, start, dtype=torch.bool), own], dim=1)
        additive = torch.zeros(allowed.shape).masked_fill(~allowed, torch.finfo(torch.float32).min)
        logits = model(
            input_ids=torch.tensor([suffixes[0] + suffixes[1]]),
            position_ids=torch.cat([torch.arange(start, start + len(row)) for row in suffixes])[None],
            attention_mask=additive[None, None],
            cache=cache,
            logits_to_keep=torch.tensor([len(suffixes[0]) - 1, n - 1]),
        ).logits[0]
    want = expected[f"{case}/logits"][0, [34, start + 3]]
    assert (logits - want).abs().max() <= TOLERANCE


def test_attention_weights_and_last_hidden_state_on_request(without_buffers, inputs, expected):
    model = load_model(without_buffers, dtype=torch.float32, attn_implementation="eager")
    with torch.inference_mode():
        prompts, images = prepare(model, inputs, "a_image_start")
        embeds, modality = model.splice(prompts.input_ids, images)
        outputs = model(
            inputs_embeds=embeds,
            modality_indicators=modality,
            output_attentions=True,
            output_hidden_states=True,
        )
    assert [tuple(weights.shape) for weights in outputs.attentions] == [(1, 4, 35, 35)] * 3
    for weights in outputs.attentions:
        assert torch.allclose(weights.sum(dim=-1), torch.ones(1, 4, 35), atol=1e-5)
        assert weights.triu(diagonal=1).abs().max() == 0
    assert (outputs.hidden_states[-1] - expected["a_image_start/lm.norm"]).abs().max() <= TOLERANCE


@pytest.mark.parametrize("number", range(7))
def test_image_preprocessing(fixture_folder, inputs, number):
    processor = load_image_processor(fixture_folder, image_size=56)
    image = Image.fromarray(inputs[f"image{number}/rgb_uint8"].numpy())
    squared = torch.frombuffer(bytearray(square(image).tobytes()), dtype=torch.uint8)
    assert torch.equal(squared, inputs[f"image{number}/square_uint8"].flatten())
    found = preprocess_images([image], processor)
    assert (found - inputs[f"image{number}/pixel_values"]).abs().max() <= 1e-6


@pytest.fixture(scope="session", params=["tokenizer.model", "tokenizer.json"])
def llama_tokenizer(request, shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama_tokenizer")
    source = shared / "mirror" / "tokenizers" / "llava-1.5-7b-hf"
    (folder / request.param).write_bytes((source / request.param).read_bytes())
    return load_tokenizer(folder)


def test_prompt_ids(llama_tokenizer, fixture_folder):
    golden = json.loads((fixture_folder / "tokenizer_prompts.json").read_text())
    assert len(golden["prompts"]) == 9
    for name, case in golden["prompts"].items():
        assert encode_prompt(llama_tokenizer, case["prompt"]) == case["input_ids"], name
    for word, ids in golden["answer_words"].items():
        assert llama_tokenizer.encode(word, add_special_tokens=False) == ids
    assert (llama_tokenizer.bos_token_id, llama_tokenizer.eos_token_id) == (1, 2)


def test_the_vocabulary_is_the_one_the_prompts_were_made_with(shared, fixture_folder):
    golden = json.loads((fixture_folder / "tokenizer_prompts.json").read_text())
    path = shared / "mirror" / "tokenizers" / "llava-1.5-7b-hf" / "tokenizer.model"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == golden["tokenizer_model_sha256"]


def test_both_vocabulary_files_give_the_same_ids(shared, tmp_path):
    source = shared / "mirror" / "tokenizers" / "llava-1.5-7b-hf"
    tokenizers = []
    for name in ("tokenizer.model", "tokenizer.json"):
        folder = tmp_path / name.replace(".", "_")
        folder.mkdir()
        (folder / name).write_bytes((source / name).read_bytes())
        tokenizers.append(load_tokenizer(folder))
    first, second = tokenizers
    assert len(first) == 32000
    texts = [
        " leading",
        "  two",
        "trailing ",
        "a  b",
        "naïve café 東京 🦉",
        "\n\n",
        "Is there a <unk> hot dog?</s>",
        "x" * 70,
    ]
    texts += (shared / "mirror" / "tokenizers" / "FACTS.md").read_text().splitlines()
    for text in texts:
        if "<image>" in text or "<pad>" in text:
            continue  # llava's own additions to the vocabulary, which mPLUG-Owl2 does not have
        ids = first.encode(text)
        assert ids == second.encode(text), text
        assert first.decode(ids) == second.decode(ids), text


def test_the_7b_model_has_exactly_the_published_parameters(fixture_folder):
    config = MplugOwl2Config(**json.loads((fixture_folder / "config_7b.json").read_text()))
    published = json.loads((fixture_folder / "parameters_7b.json").read_text())
    found = expected_parameters(config)
    assert len(found) == 850
    assert found == {name: tuple(shape) for name, shape in published["parameters"].items()}
    assert sum(torch.Size(shape).numel() for shape in found.values()) == published["total_parameters"]


def test_a_7b_checkpoint_may_hold_the_published_buffers_and_nothing_else(fixture_folder):
    from readout_audit.models.mplug_owl2.checkpoint import is_ignorable

    published = json.loads((fixture_folder / "parameters_7b.json").read_text())
    assert len(published["buffers_optional_or_ignored"]) == 44
    assert all(map(is_ignorable, published["buffers_optional_or_ignored"]))
    assert not any(map(is_ignorable, published["parameters"]))
