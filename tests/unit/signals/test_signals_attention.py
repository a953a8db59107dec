"""A few rows of attention against the full matrices of eager attention, on every family."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from readout_audit.models.base import Encoded, VisionLanguageModel
from readout_audit.signals import passes
from readout_audit.signals.attention import ANSWER, NOUN, SPATIAL, WORDS, attention_rows
from readout_audit.signals.decoder import find_decoder
from readout_audit.signals.passes import Instruments, Row

from .conftest import FAMILIES, encode

Load = Callable[..., VisionLanguageModel]
CANDIDATES = (3, 5, 100)


def instruments(model: VisionLanguageModel, window: tuple[int, int] = (1, 7)) -> Instruments:
    decoder = find_decoder(model.network)
    assert decoder is not None
    return Instruments(decoder, torch.tensor(CANDIDATES), window, (1, 2))


def watched(encoded: list[Encoded]) -> list[Row]:
    """Every row asks its last position, two or three others, and one set is empty."""
    rows = []
    for number, item in enumerate(encoded):
        last = len(item.ids) - 1
        sets = [[last], [last - 9, last - 8], [last - 5], [] if number == 0 else [last - 5, last - 2, last]]
        rows.append(Row(item, (), sets))
    return rows


def in_batches(model: VisionLanguageModel, rows: list[Row], probe: Instruments) -> list[passes.Reading]:
    """All rows together where the model can, else one by one."""
    groups = [rows] if model.shares_prefix else [[row] for row in rows]
    return [passes.run(model, group, True, probe) for group in groups]


def eager_matrices(model: VisionLanguageModel, item: Encoded) -> torch.Tensor:
    """(layers, heads, n, n) of one plain pass with `output_attentions`."""
    adapter: Any = model
    with torch.no_grad():
        output = adapter.network(**adapter.forward_arguments(item), output_attentions=True)
    found = getattr(output, "language_model_outputs", output).attentions
    return torch.stack([layer[0] for layer in found])


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("family", FAMILIES)
def test_equal_to_eager_attention(load: Load, family: str, attention: str) -> None:
    eager, model = load(family, "eager"), load(family, attention)
    encoded = encode(eager, family)
    rows = watched(encoded)
    readings = in_batches(model, rows, instruments(model))
    number = 0
    for reading in readings:
        assert reading.seen is not None
        for place in range(len(reading.answer)):
            item, row = encoded[number], rows[number]
            full = eager_matrices(eager, item)
            n, image = full.shape[-1], item.ids == model.image_token_id
            last = full[:, :, -1]
            assert torch.allclose(reading.seen.image[:, place], last[..., image].sum(-1), atol=1e-5)
            assert torch.allclose(reading.seen.window[:, place], last[..., 1:7].sum(-1), atol=1e-5)
            for kind, layers in ((ANSWER, slice(1, 2)), *((k, slice(None)) for k in (NOUN, SPATIAL, WORDS))):
                places = row.sets[kind]
                expected = full[layers][:, :, places].mean(dim=(0, 1, 2)) if places else torch.zeros(n)
                assert torch.allclose(reading.seen.means[place, kind, :n], expected, atol=1e-5)
                assert not reading.seen.means[place, kind, n:].any(), "padding is never looked at"
            number += 1
    assert number == len(encoded)


def test_sums_over_image_positions_are_no_means(load: Load) -> None:
    """What the paper calls attention (0.0738 on average) is a sum of weights, so at most 1."""
    model = load("llava")
    (row,) = watched(encode(model, "llava"))[:1]
    reading = passes.run(model, [row], True, instruments(model, window=(0, len(row.encoded.ids))))
    assert reading.seen is not None
    assert torch.allclose(reading.seen.window, torch.ones_like(reading.seen.window), atol=1e-5)
    assert (reading.seen.image < 1).all() and (reading.seen.image > 0).all()


def test_the_window_is_cut_at_the_end_of_the_sequence(load: Load) -> None:
    model = load("llava")
    (row,) = watched(encode(model, "llava"))[:1]
    cut = passes.run(model, [row], True, instruments(model, window=(1, 577))).seen
    whole = passes.run(model, [row], True, instruments(model, window=(1, len(row.encoded.ids)))).seen
    assert cut is not None and whole is not None
    assert torch.equal(cut.window, whole.window)


def test_watching_changes_no_logit_and_leaves_no_trace(load: Load) -> None:
    model = load("llava")
    rows = watched(encode(model, "llava"))
    before = passes.run(model, rows, True)
    plain = ALL_ATTENTION_FUNCTIONS["sdpa"]
    seen = passes.run(model, rows, True, instruments(model))
    assert ALL_ATTENTION_FUNCTIONS["sdpa"] is plain
    assert torch.equal(before.answer, seen.answer)
    decoder = find_decoder(model.network)
    assert decoder is not None
    assert not any(layer._forward_hooks for layer in (*decoder.layers, *decoder.attentions))


class _Largest(TorchDispatchMode):
    """Notes the shapes of all tensors that operations return."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[tuple[int, ...]] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for item in result if isinstance(result, tuple | list) else (result,):
            if isinstance(item, torch.Tensor):
                self.shapes.add(tuple(item.shape))
        return result


def test_no_matrix_of_all_against_all_is_ever_formed(load: Load) -> None:
    """Every tensor of the instrumented pass is smaller than sequence × sequence."""
    model = load("llava")
    (encoded,) = encode(model, "llava", ("Is there a dog in the image? " + "Look again. " * 60,))
    n = len(encoded.ids)
    assert n > 600
    row = Row(encoded, (), [[n - 1], [n - 4], [n - 6], []])
    with _Largest() as watching:
        passes.run(model, [row], True, instruments(model))
    square = [shape for shape in watching.shapes if shape[-2:] == (n, n) or shape[-2:] == (n, n + 1)]
    assert square == []
    assert any(n in shape for shape in watching.shapes), "the pass went through this mode"


def test_weights_by_hand() -> None:
    # scores ln 3 and 0 → 3/4, 1/4; the second query is equally drawn to both of its keys
    query = torch.tensor([[[[1.0, 0.0], [1.0, 1.0]]]])
    key = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    found = attention_rows(query, key, math.log(3.0), None, torch.tensor([[1, 0]]))
    assert found[0, 0, 0].tolist() == pytest.approx([0.5, 0.5])
    assert found[0, 0, 1].tolist() == [1.0, 0.0], "the first position sees itself alone"
    cached = attention_rows(query[:, :, :1], key, math.log(3.0), None, torch.tensor([[0]]))
    assert cached[0, 0, 0].tolist() == pytest.approx([0.75, 0.25]), "one new query after a cached key"


@pytest.mark.parametrize("kind", ["bool", "added"])
def test_a_mask_counts(kind: str) -> None:
    allowed = torch.tensor([[[[True, False, False], [True, True, False], [False, True, True]]]])
    mask = allowed if kind == "bool" else torch.zeros(1, 1, 3, 3).masked_fill(~allowed, -1e30)
    query = key = torch.zeros(2, 1, 3, 4)
    found = attention_rows(query, key, 1.0, mask, torch.tensor([[2], [1]]))
    assert found[0, 0, 0].tolist() == pytest.approx([0.0, 0.5, 0.5])
    assert found[1, 0, 0].tolist() == pytest.approx([0.5, 0.5, 0.0])


def test_heads_that_share_keys() -> None:
    rng = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 6, 5, 8, generator=rng), torch.randn(2, 3, 5, 8, generator=rng)
    places = torch.tensor([[4, 2], [3, 3]])
    shared = attention_rows(query, key, 0.3, None, places)
    repeated = attention_rows(query, key.repeat_interleave(2, dim=1), 0.3, None, places)
    assert torch.allclose(shared, repeated, atol=1e-7)
    assert torch.allclose(shared.sum(-1), torch.ones(2, 6, 2))


def test_a_network_without_a_known_decoder() -> None:
    assert find_decoder(torch.nn.Sequential(torch.nn.Linear(2, 2))) is None
