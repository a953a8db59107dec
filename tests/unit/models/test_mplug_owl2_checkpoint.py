"""Checkpoints of mPLUG-Owl2: exact weights or a sentence, pickles opened without running them, quantisation."""

import hashlib
import json
import os

import pytest

torch = pytest.importorskip("torch")

from mplug_owl2_tiny import tiny_images, tiny_model  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from readout_audit.errors import AuditError  # noqa: E402
from readout_audit.models.mplug_owl2.checkpoint import check_checkpoint, load_model  # noqa: E402
from readout_audit.models.mplug_owl2.configuration import load_config  # noqa: E402
from readout_audit.models.mplug_owl2.conversion import convert_pickled_checkpoint  # noqa: E402

K_PROJ = "model.layers.1.self_attn.k_proj.multiway.1.weight"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("owl")
    tiny_model().save_pretrained(folder)
    return folder


@pytest.fixture
def copied(saved, tmp_path):
    """A copy whose weights a test may change: `change(weights)` rewrites them."""
    (tmp_path / "config.json").write_bytes((saved / "config.json").read_bytes())

    def change(edit):
        weights = load_file(saved / "model.safetensors")
        edit(weights)
        save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
        return tmp_path

    return change


def logits(model):
    with torch.inference_mode():
        prompts = model.pad_prompts([[1, 5, -200, 7, 9]])
        embeds, modality = model.splice(prompts.input_ids, model.encode_images(tiny_images(1)))
        return model(inputs_embeds=embeds, modality_indicators=modality).logits


def test_a_saved_model_comes_back_bit_by_bit(saved):
    model = load_model(saved, dtype=torch.float32)
    assert not model.training
    for (name, ours), theirs in zip(model.named_parameters(), tiny_model().parameters(), strict=True):
        assert torch.equal(ours, theirs), name
    assert torch.equal(logits(model), logits(tiny_model()))


def test_nothing_computed_is_kept_where_loading_could_leave_it_uninitialised(saved):
    assert list(load_model(saved, dtype=torch.float32).buffers()) == []


def test_computed_buffers_may_be_there_and_change_nothing(copied, saved):
    def add_buffers(weights):
        weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.full((32,), torch.nan)
        prefix = "model.visual_abstractor.encoder.layers.0.crossattention.attention"
        weights[f"{prefix}.q_pos_embed"] = torch.full((4, 64), torch.nan)
        weights[f"{prefix}.k_pos_embed"] = torch.full((5, 64), torch.nan)

    with_buffers = load_model(copied(add_buffers), dtype=torch.float32)
    assert torch.equal(logits(with_buffers), logits(load_model(saved, dtype=torch.float32)))


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda weights: weights.pop(K_PROJ), f"lacks {K_PROJ}"),
        (
            lambda weights: weights.update({"model.extra.weight": torch.ones(1)}),
            "unknown weights: model.extra.weight",
        ),
        (lambda weights: weights.update({"q_pos_embed": torch.ones(1)}), "unknown weights: q_pos_embed"),
        (
            lambda weights: weights.update({K_PROJ: torch.ones(128, 64)}),
            f"{K_PROJ} ([128, 64] in place of [128, 128])",
        ),
        (lambda weights: [weights.pop(name) for name in list(weights) if ".layers.1." in name], "and 8 more"),
    ],
)
def test_a_wrong_weight_is_named(copied, edit, named):
    with pytest.raises(AuditError) as error:
        load_model(copied(edit), dtype=torch.float32)
    assert named in str(error.value)


def test_a_folder_without_weights_or_with_a_damaged_file_is_refused(saved, tmp_path):
    config = load_config(saved)
    with pytest.raises(AuditError, match=r"neither model\.safetensors nor"):
        check_checkpoint(tmp_path, config)
    (tmp_path / "model.safetensors").write_bytes((saved / "model.safetensors").read_bytes()[:1000])
    with pytest.raises(AuditError, match="cannot be read"):
        check_checkpoint(tmp_path, config)


@pytest.mark.parametrize(
    "file", ["../model.safetensors", "/model.safetensors", "a/b.safetensors", "..", 7, ""]
)
def test_an_index_cannot_lead_out_of_its_folder(saved, tmp_path, file):
    (tmp_path / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {"lm_head.weight": file}})
    )
    with pytest.raises(AuditError, match="not a plain file name"):
        check_checkpoint(tmp_path, load_config(saved))


@pytest.mark.parametrize("index", ["[]", "{}", '{"weight_map": {}}'])
def test_an_empty_index_is_refused(saved, tmp_path, index):
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(AuditError, match=r"index"):
        check_checkpoint(tmp_path, load_config(saved))


def test_a_weight_in_two_files_is_refused(saved, tmp_path):
    weights = load_file(saved / "model.safetensors")
    for name in ("a.safetensors", "b.safetensors"):
        save_file({"lm_head.weight": weights["lm_head.weight"]}, tmp_path / name)
    weight_map = {"lm_head.weight": "a.safetensors", "model.norm.weight": "b.safetensors"}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    with pytest.raises(AuditError, match=r"lm_head\.weight also stands in another file"):
        check_checkpoint(tmp_path, load_config(saved))


# --- pickled checkpoints


def write_pickled(folder, shards, weight_map=None):
    """Write shards as the original's conversion script does: one pickle each, and an index."""
    for file, tensors in shards.items():
        torch.save(tensors, folder / file)
    names = {name: file for file, tensors in shards.items() for name in tensors}
    index = {"weight_map": names if weight_map is None else weight_map}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))


@pytest.fixture
def pickled(saved, tmp_path):
    """The saved model in two pickled shards, with an inv_freq as the real one has."""
    folder = tmp_path / "pickled"
    folder.mkdir()
    weights = load_file(saved / "model.safetensors")
    weights["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(32)
    names = sorted(weights)
    halves = {"pytorch_model-1-of-2.bin": names[:20], "pytorch_model-2-of-2.bin": names[20:]}
    write_pickled(folder, {file: {name: weights[name] for name in part} for file, part in halves.items()})
    return folder


def test_converted_shards_load_as_the_model_they_were(pickled, saved, tmp_path):
    output = tmp_path / "converted"
    record = convert_pickled_checkpoint(pickled, output)
    (output / "config.json").write_bytes((saved / "config.json").read_bytes())
    assert torch.equal(logits(load_model(output, dtype=torch.float32)), logits(tiny_model()))

    assert record == json.loads((output / "conversion.json").read_text())
    assert [entry["pickled"] for entry in record["files"]] == [
        "pytorch_model-1-of-2.bin",
        "pytorch_model-2-of-2.bin",
    ]
    for entry in record["files"]:
        pickle_bytes, written_bytes = (
            (pickled / entry["pickled"]).read_bytes(),
            (output / entry["safetensors"]).read_bytes(),
        )
        assert entry["pickled_sha256"] == hashlib.sha256(pickle_bytes).hexdigest()
        assert entry["safetensors_sha256"] == hashlib.sha256(written_bytes).hexdigest()
    assert record["tensors"] == sum(entry["tensors"] for entry in record["files"])


def test_converting_twice_gives_the_same_bytes(pickled, tmp_path):
    assert convert_pickled_checkpoint(pickled, tmp_path / "a") == convert_pickled_checkpoint(
        pickled, tmp_path / "b"
    )


def test_a_single_pickle_without_index(tmp_path):
    source = {
        "a": torch.arange(6, dtype=torch.bfloat16).reshape(2, 3).T,
        "b": torch.tensor(1.5, dtype=torch.float16),
    }
    source["c"] = source["a"]  # shared memory, which safetensors would refuse
    torch.save(source, tmp_path / "pytorch_model.bin")
    convert_pickled_checkpoint(tmp_path, tmp_path / "out")
    found = load_file(tmp_path / "out" / "model.safetensors")
    assert sorted(found) == ["a", "b", "c"]
    for name, tensor in source.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


class RunsCode:
    """A pickle that would make a folder when opened carelessly."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


def test_a_pickle_with_code_is_refused_and_not_run(tmp_path):
    canary = tmp_path / "canary"
    torch.save({"lm_head.weight": RunsCode(str(canary))}, tmp_path / "pytorch_model.bin")
    with pytest.raises(AuditError, match="not a file of tensors alone"):
        convert_pickled_checkpoint(tmp_path, tmp_path / "out")
    assert not canary.exists()
    assert not (tmp_path / "out" / "conversion.json").exists()


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ({"a": torch.ones(1), "step": 7}, "entry 'step' is a int"),
        ({"a": {"b": torch.ones(1)}}, "entry 'a' is a dict"),
        ({3: torch.ones(1)}, "entry 3 is a Tensor"),
        ([torch.ones(1)], "holds a list"),
        ({"a": torch.eye(2).to_sparse()}, "entry 'a' is a sparse"),
    ],
)
def test_anything_but_named_dense_tensors_is_refused(tmp_path, content, named):
    torch.save(content, tmp_path / "pytorch_model.bin")
    with pytest.raises(AuditError) as error:
        convert_pickled_checkpoint(tmp_path, tmp_path / "out")
    assert named in str(error.value)


def test_damaged_missing_or_contradicting_shards_are_refused(pickled, tmp_path):
    output = tmp_path / "out"
    shard = pickled / "pytorch_model-2-of-2.bin"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AuditError, match=r"2-of-2\.bin: not a file of tensors alone, or damaged"):
        convert_pickled_checkpoint(pickled, output)
    shard.unlink()
    with pytest.raises(AuditError, match=r"2-of-2\.bin: a file that the index names is not there"):
        convert_pickled_checkpoint(pickled, output)
    torch.save({"model.norm.weight": torch.ones(1)}, shard)
    with pytest.raises(AuditError, match="in the file or in the index but not in both"):
        convert_pickled_checkpoint(pickled, output)


def test_a_weight_missing_from_the_index_or_in_two_shards_is_refused(tmp_path):
    tensors = {"a": torch.ones(1), "b": torch.ones(1)}
    write_pickled(tmp_path, {"one.bin": tensors}, weight_map={"a": "one.bin"})
    with pytest.raises(AuditError, match=r"one\.bin: b is in the file or in the index but not in both"):
        convert_pickled_checkpoint(tmp_path, tmp_path / "out")


def test_a_broken_second_conversion_leaves_no_record(pickled, tmp_path):
    output = tmp_path / "out"
    convert_pickled_checkpoint(pickled, output)
    (pickled / "pytorch_model-1-of-2.bin").unlink()
    with pytest.raises(AuditError):
        convert_pickled_checkpoint(pickled, output)
    assert not (output / "conversion.json").exists()


# --- quantisation


def quantisation(precision):
    from transformers import BitsAndBytesConfig

    if precision == "int8":
        return BitsAndBytesConfig(load_in_8bit=True)
    return BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32
    )


@pytest.mark.parametrize(("precision", "tolerance"), [("int8", 0.1), ("nf4", 0.6)])
def test_quantised_on_a_cpu(saved, precision, tolerance):
    bitsandbytes = pytest.importorskip("bitsandbytes")
    kind = {"int8": bitsandbytes.nn.Linear8bitLt, "nf4": bitsandbytes.nn.Linear4bit}[precision]
    model = load_model(saved, dtype=torch.float32, quantization_config=quantisation(precision))

    linear = {
        name: type(module) for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)
    }
    doubled = [
        f"model.layers.{n}.self_attn.{p}_proj.multiway.{j}" for n in (0, 1) for p in "kv" for j in (0, 1)
    ]
    shared = [f"model.layers.{n}.self_attn.{p}_proj" for n in (0, 1) for p in "qo"]
    mlp = [f"model.layers.{n}.mlp.{p}_proj" for n in (0, 1) for p in ("gate", "up", "down")]
    assert set(doubled + shared + mlp) <= set(linear)
    assert {name for name, module in linear.items() if module is not kind} == {"lm_head"}

    exact, found = logits(load_model(saved, dtype=torch.float32)), logits(model)
    assert torch.isfinite(found).all()
    relative = ((found - exact).norm() / exact.norm()).item()  # about 1.4 for two unrelated models
    assert 0 < relative < tolerance
