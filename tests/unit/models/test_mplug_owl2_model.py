"""The parts of mPLUG-Owl2 whose right answer can be worked out by hand, and laws of the whole."""

import math

import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from mplug_owl2_tiny import tiny_images, tiny_model, tiny_settings  # noqa: E402
from transformers import DynamicCache  # noqa: E402

from readout_audit.errors import AuditError  # noqa: E402
from readout_audit.models.mplug_owl2.abstractor import image_positions, query_positions  # noqa: E402
from readout_audit.models.mplug_owl2.configuration import MplugOwl2Config, check_config, load_config  # noqa: E402
from readout_audit.models.mplug_owl2.generation import generate_greedy  # noqa: E402
from readout_audit.models.mplug_owl2.language import Multiway, route  # noqa: E402
from readout_audit.models.mplug_owl2.splicing import IMAGE_TOKEN_ID, expand_ids, pad_prompts, splice  # noqa: E402

IMG = IMAGE_TOKEN_ID


@pytest.fixture(scope="module")
def model():
    return tiny_model()


# --- configuration


def test_flags_an_older_file_lacks_have_their_stated_values():
    config = MplugOwl2Config(**tiny_settings())
    check_config(config)
    assert config.rotary_base == 10000.0
    assert config.vectors_per_image == 5
    assert (config.vision.grid, config.vision.positions) == (2, 5)


@pytest.mark.parametrize(
    ("part", "field", "value", "named"),
    [
        ("visual_model", "use_cls_token", False, "visual_model.use_cls_token is False"),
        ("visual_model", "use_post_layernorm", False, "visual_model.use_post_layernorm is False"),
        ("visual_abstractor", "use_cls_token", False, "visual_abstractor.use_cls_token is False"),
        ("visual_model", "hidden_act", "gelu", "visual_model.hidden_act is 'gelu'"),
        ("visual_abstractor", "grid_size", 3, "grid_size is 3"),
        ("visual_abstractor", "hidden_size", 128, "visual_abstractor.hidden_size is 128"),
        ("visual_model", "image_size", 30, "needs 30"),
        ("visual_model", "layer_norm_eps", None, "visual_model.layer_norm_eps is None"),
        ("visual_abstractor", "num_learnable_queries", "64", "num_learnable_queries is '64'"),
        (None, "attention_bias", True, "attention_bias is True"),
        (None, "hidden_act", "gelu", "hidden_act is 'gelu'"),
        (None, "num_key_value_heads", 1, "num_key_value_heads is 1"),
        (None, "rope_scaling", {"type": "linear", "factor": 2.0}, "its type) is 'linear'"),
        (None, "tie_word_embeddings", True, "tie_word_embeddings is True"),
        (None, "visual_config", None, "visual_config.visual_model is missing"),
    ],
)
def test_another_model_is_refused_by_name(part, field, value, named):
    raw = tiny_settings()
    (raw if part is None else raw["visual_config"][part])[field] = value
    with pytest.raises(AuditError, match=None) as error:
        check_config(MplugOwl2Config(**raw))
    assert named in str(error.value)


@pytest.mark.parametrize("content", ["[]", '{"hidden_size": "wide"}', "{", '{"hidden_size": 65}'])
def test_an_unusable_configuration_file_is_one_sentence(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(AuditError, match=r"config\.json"):
        load_config(tmp_path)


# --- position tables (§3.4)


def test_query_table_is_sines_then_cosines():
    # 4 channels: frequencies 10000^0 and 10000^(-1/2) = 0.01
    want = [[0, 0, 1, 1], [math.sin(1), math.sin(0.01), math.cos(1), math.cos(0.01)]]
    assert torch.allclose(query_positions(2, 4), torch.tensor(want, dtype=torch.float64), atol=1e-15)


def test_image_table_has_the_column_first_and_a_zero_row_for_the_class_token():
    zero, one = [0, 0, 1, 1], [math.sin(1), math.sin(0.01), math.cos(1), math.cos(0.01)]
    # rows: class token, then (row, column) = (0,0), (0,1), (1,0), (1,1)
    want = [[0] * 8, zero + zero, one + zero, zero + one, one + one]
    assert torch.allclose(image_positions(2, 8), torch.tensor(want, dtype=torch.float64), atol=1e-15)


# --- modality routing (§5.1)


@given(st.lists(st.lists(st.integers(0, 1), min_size=3, max_size=3), min_size=1, max_size=4), st.booleans())
def test_each_position_goes_through_the_module_its_indicator_names(indicators, as_none):
    scales = iter([1.0, 10.0])
    module = Multiway(lambda: torch.nn.Linear(2, 2, bias=False))
    for linear in module.multiway:
        linear.weight.data = torch.eye(2) * next(scales)
    modality = torch.tensor(indicators)
    x = torch.arange(modality.numel() * 2, dtype=torch.float32).reshape(*modality.shape, 2)
    assert torch.equal(module(x, route(modality)), x * torch.where(modality == 1, 10.0, 1.0)[..., None])
    assert torch.equal(module(x, route(None)), x)


# --- splicing (§4)


def embed(ids):
    return ids[..., None].float().expand(*ids.shape, 2)


@pytest.mark.parametrize(
    ("ids", "expanded", "first_channel", "modalities"),
    [
        ([7, IMG, 8], [7, IMG, IMG, 8], [7, 100, 101, 8], [0, 1, 1, 0]),
        ([IMG, 8], [IMG, IMG, 8], [100, 101, 8], [1, 1, 0]),
        ([7, IMG], [7, IMG, IMG], [7, 100, 101], [0, 1, 1]),
        ([IMG, IMG], [IMG] * 4, [100, 101, 200, 201], [1, 1, 1, 1]),
        ([5, IMG, 6, IMG], [5, IMG, IMG, 6, IMG, IMG], [5, 100, 101, 6, 200, 201], [0, 1, 1, 0, 1, 1]),
        ([5, 6], [5, 6], [5, 6], [0, 0]),
    ],
)
def test_images_take_the_places_of_their_placeholders_in_order(ids, expanded, first_channel, modalities):
    images = torch.tensor([[[100.0, 0], [101, 0]], [[200, 0], [201, 0]]])[: ids.count(IMG)]
    assert expand_ids(ids, 2) == expanded
    embeds, indicators = splice(torch.tensor([expanded]), images, embed)
    assert embeds[0, :, 0].tolist() == first_channel
    assert indicators[0].tolist() == modalities


def test_images_go_to_the_rows_of_a_batch_in_order():
    ids = torch.tensor([[IMG, IMG, 5], [6, 7, 8], [9, IMG, IMG]])
    images = torch.tensor([[[100.0, 0], [101, 0]], [[200, 0], [201, 0]]])
    embeds, _ = splice(ids, images, embed)
    assert embeds[..., 0].tolist() == [[100, 101, 5], [6, 7, 8], [9, 200, 201]]


def test_padding_moves_no_position():
    prompts = [[7, IMG, IMG], [5]]
    left, right = (pad_prompts(prompts, side, torch.device("cpu")) for side in ("left", "right"))
    assert left.attention_mask.tolist() == [[1, 1, 1], [0, 0, 1]]
    assert right.attention_mask.tolist() == [[1, 1, 1], [1, 0, 0]]
    assert left.position_ids.tolist() == right.position_ids.tolist() == [[0, 1, 2], [0, 0, 0]]
    assert left.input_ids.tolist() == [[7, IMG, IMG], [0, 0, 5]]
    assert left.lengths.tolist() == right.lengths.tolist() == [3, 1]
    assert (left.last.tolist(), right.last.tolist()) == ([2, 2], [2, 0])


@pytest.mark.parametrize(("prompt", "positions"), [([1, IMG, IMG], 10), ([1], 0)])
def test_placeholders_and_images_must_match_in_number(model, prompt, positions):
    images = model.encode_images(tiny_images(1))
    with pytest.raises(AuditError, match=f"hold {positions} image positions but 1 images of 5 vectors"):
        model.splice(model.pad_prompts([prompt]).input_ids, images)


def test_a_placeholder_without_images_is_refused(model):
    with pytest.raises(AuditError, match="hold 5 image positions but 0 images"):
        model.splice(model.pad_prompts([[1, IMG]]).input_ids)


@pytest.mark.parametrize("token", [96, -1])
def test_an_id_outside_the_vocabulary_is_refused(model, token):
    with pytest.raises(AuditError, match=f"Token id {token} is outside the model's vocabulary of 96"):
        model.pad_prompts([[1, token]])


# --- the whole


def run(model, prompts, images=None, **kwargs):
    with torch.inference_mode():
        embeds, modality = model.splice(prompts.input_ids, images)
        return model(
            inputs_embeds=embeds,
            modality_indicators=modality,
            position_ids=prompts.position_ids,
            attention_mask=prompts.attention_mask,
            **kwargs,
        )


def encode(model, count):
    with torch.inference_mode():
        return model.encode_images(tiny_images(count))


prompt_rows = st.lists(
    st.lists(st.one_of(st.integers(0, 95), st.just(IMG)), min_size=1, max_size=9), min_size=1, max_size=4
)


@settings(max_examples=25)
@given(rows=prompt_rows, side=st.sampled_from(["left", "right"]))
def test_a_row_of_a_batch_is_what_it_is_alone(rows, side):
    model = tiny_model()
    images, used = encode(model, sum(row.count(IMG) for row in rows)), 0
    batch = model.pad_prompts(rows, padding_side=side)
    logits = run(model, batch, images).logits
    for index, row in enumerate(rows):
        alone = run(model, model.pad_prompts([row]), images[used : used + row.count(IMG)]).logits[0]
        used += row.count(IMG)
        assert (logits[index][batch.attention_mask[index].bool()] - alone).abs().max() < 1e-4


@pytest.mark.parametrize("cut", [1, 4, 9])
def test_a_prompt_in_two_parts_gives_the_same_as_in_one(model, cut):
    prompts, images = model.pad_prompts([[1, 5, IMG, 7, 8, 9, 3]]), encode(model, 1)
    whole = run(model, prompts, images).logits[0]
    embeds, modality = model.splice(prompts.input_ids, images)
    cache = DynamicCache()
    with torch.inference_mode():
        parts = [
            model(inputs_embeds=embeds[:, part], modality_indicators=modality[:, part], cache=cache).logits[0]
            for part in (slice(0, cut), slice(cut, 11))
        ]
    assert cache.get_seq_length() == 11
    assert (torch.cat(parts) - whole).abs().max() < 1e-4


def test_only_the_positions_asked_for_go_through_the_head(model):
    prompts = model.pad_prompts([[1, 2, 3, 4], [5, 6, 7, 8]])
    whole = run(model, prompts).logits
    assert torch.allclose(run(model, prompts, logits_to_keep=1).logits, whole[:, -1:], atol=1e-5)
    picked = run(model, prompts, logits_to_keep=torch.tensor([[0], [2]])).logits
    assert torch.allclose(picked[:, 0], torch.stack([whole[0, 0], whole[1, 2]]), atol=1e-5)


def test_ids_or_embeddings_and_not_both(model):
    with pytest.raises(ValueError, match="not both"):
        model()
    with pytest.raises(ValueError, match="not both"):
        model(input_ids=torch.tensor([[1]]), inputs_embeds=torch.zeros(1, 1, 128))


def test_an_unused_cache_is_not_made(model):
    assert model(input_ids=torch.tensor([[1, 2]]), use_cache=False).cache is None


def test_the_old_name_of_the_cache_still_works(model):
    cache = DynamicCache()
    model(input_ids=torch.tensor([[1, 2]]), past_key_values=cache)
    assert cache.get_seq_length() == 2


# --- generation (§5.3)


def constant_model(eos):
    """A model whose logits are all 0, so that the lowest allowed id is always chosen."""
    model = tiny_model()
    model.lm_head.weight.data.zero_()
    model.config.eos_token_id = eos
    return model


@pytest.mark.parametrize(
    ("eos", "least", "tokens"),
    [
        (0, 0, [0]),
        (0, 1, [1, 0]),
        (0, 2, [1, 1, 0]),
        ([0, 1], 1, [2, 0]),
        (2, 0, [0, 0, 0, 0]),
        (None, 1, [0, 0, 0, 0]),
    ],
)
def test_end_of_sequence_ends_a_row_and_can_be_put_off(eos, least, tokens):
    model = constant_model(eos)
    greedy = generate_greedy(model, model.pad_prompts([[1, 2]]), max_new_tokens=4, min_new_tokens=least)
    assert greedy.tokens == [tokens]
    assert greedy.logits.shape == (1, len(tokens), 96)
    assert greedy.logits.abs().max() == 0  # raw: what was forbidden is not written into them


def test_greedy_tokens_are_those_of_running_the_whole_text_again(model):
    images, prompt = encode(model, 1), [1, 4, IMG, 9]
    greedy = generate_greedy(model, model.pad_prompts([prompt]), images, max_new_tokens=4)
    for step, token in enumerate(greedy.tokens[0]):
        again = run(model, model.pad_prompts([prompt + greedy.tokens[0][:step]]), images).logits[0, -1]
        assert int(again.argmax()) == token
        assert (again - greedy.logits[0, step]).abs().max() < 1e-4


def test_a_row_that_has_ended_changes_no_other():
    model, rows = tiny_model(), [[1, 2, 3], [4, 5, 6, 7]]
    alone = [generate_greedy(model, model.pad_prompts([row]), max_new_tokens=5).tokens[0] for row in rows]
    model.config.eos_token_id = alone[0][0]
    assert alone[0][0] not in alone[1]
    together = generate_greedy(model, model.pad_prompts(rows), max_new_tokens=5)
    assert together.tokens == [alone[0][:1], alone[1]]


# --- half precision


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_half_precision_throughout(dtype):
    half, single = tiny_model().to(dtype), tiny_model()
    outputs = [run(model, model.pad_prompts([[1, IMG, 7, 8]]), encode(model, 1)) for model in (half, single)]
    assert outputs[0].cache.layers[0].keys.dtype == outputs[0].logits.dtype == dtype
    assert torch.allclose(outputs[0].logits.float(), outputs[1].logits, atol=0.3)
