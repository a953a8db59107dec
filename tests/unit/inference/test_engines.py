"""Every family, every batch size: the shared-prefix engine gives the sequential engine's answers."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from readout_audit.errors import AuditError
from readout_audit.inference import packing, shared_prefix
from readout_audit.inference.base import Answer, ImageJob, Question
from readout_audit.inference.packing import PADDING, PREFIX, Piece, allowed_columns, common_prefix, pack
from readout_audit.inference.sequential import Sequential
from readout_audit.inference.shared_prefix import SharedPrefix
from readout_audit.models import registry, tiny
from readout_audit.models.base import DecoderStep, ModelSpec, VisionLanguageModel

FORMS = {
    "generic": "USER: <image>\n{} Answer yes or no only.\nASSISTANT:",
    "instructblip": "Question: {} Answer yes or no only. Answer:",
    "llava": "USER: <image>\n{} Answer yes or no only.\nASSISTANT:",
    "llava_next": "[INST] <image>\n{} [/INST]",
    "mplug_owl2": "USER: <|image|>{} Answer yes or no only.\nASSISTANT:",
    "qwen2_vl": "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>{}<|im_end|>\n<|im_start|>assistant\n",
}
SHARING = sorted(set(FORMS) - {"generic"})
TOLERANCE = 1e-4
"""In float32: largest allowed difference of any logit; the logits themselves go up to about 6."""

QUESTIONS = [
    "Is there a dog in the image?",
    "Is there a traffic light in the image?",
    "Is there an umbrella?",
    "Is",
    "Are there more than two people near the bus, or is it one?",
    "Was ist das?",
]


@pytest.fixture(scope="session")
def load(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., VisionLanguageModel]:
    """Loads a family's tiny model; the same arguments give the same object."""
    folders: dict[str, Path] = {}
    models: dict[tuple[str, ...], VisionLanguageModel] = {}

    def get(family: str, precision: str = "fp32", attention: str = "sdpa") -> VisionLanguageModel:
        if family not in folders:
            folders[family] = tmp_path_factory.mktemp(family)
            tiny.build(family, folders[family])
        key = (family, precision, attention)
        if key not in models:
            compute = "float32" if precision in ("int8", "nf4") else None
            device = torch.device("cpu")
            spec = ModelSpec(family, folders[family], precision, compute, "as_is", attention, device)
            models[key] = registry.get(family)(spec)
        return models[key]

    return get


def picture(seed: int) -> Image.Image:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(40, 150, size=2)
    return Image.fromarray(rng.integers(0, 256, size=(height, width, 3), dtype=np.uint8))


def job(family: str, seed: int, texts: list[str]) -> ImageJob:
    asked = [
        Question(f"{seed}:{place}", f"{seed}.png", None, text, FORMS[family].format(text))
        for place, text in enumerate(texts)
    ]
    return ImageJob(picture(seed), tuple(asked))


def by_uid(answers: Iterator[Answer]) -> dict[str, Answer]:
    return {answer.question.uid: answer for answer in answers}


def largest_difference(one: dict[str, Answer], other: dict[str, Answer]) -> float:
    assert set(one) == set(other)
    return max(float(np.abs(one[uid].logits - other[uid].logits).max()) for uid in one)


def assert_same(found: dict[str, Answer], reference: dict[str, Answer]) -> None:
    assert largest_difference(found, reference) < TOLERANCE
    for uid, answer in reference.items():
        got = found[uid]
        assert got.new_ids == answer.new_ids
        assert got.new_ids[0] == int(np.argmax(answer.logits))
        assert (got.n_prompt_tokens, got.n_image_tokens, got.ids) == (
            answer.n_prompt_tokens,
            answer.n_image_tokens,
            answer.ids,
        )
        # The same twenty at the top, up to values within the tolerance of the twentieth.
        order = np.sort(answer.logits)[::-1]
        sure = {int(token_id) for token_id in np.flatnonzero(answer.logits > order[19] + TOLERANCE)}
        assert sure <= set(np.argsort(-got.logits, kind="stable")[:20].tolist())


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("family", sorted(FORMS))
def test_the_same_answers(load: Callable[..., Any], family: str, attention: str) -> None:
    model = load(family, attention=attention)
    jobs = [job(family, seed, QUESTIONS[: 1 + seed]) for seed in range(5)]
    reference = by_uid(Sequential(model, 1, 6).answer(jobs))
    assert len(reference) == 15 and all(answer.fault is None for answer in reference.values())
    for batch_size in (1, 2, 3, 32, 160):
        assert_same(by_uid(SharedPrefix(model, batch_size, 6).answer(jobs)), reference)


@pytest.mark.parametrize("family", SHARING)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_same_answers_for_any_questions(
    load: Callable[..., Any], family: str, data: st.DataObject
) -> None:
    """Random question lengths, batch sizes, orders of images and of questions."""
    model = load(family)
    letters = st.text(alphabet="abcdefgh ?,", min_size=1, max_size=40)
    asked = data.draw(
        st.lists(st.lists(letters, min_size=1, max_size=6, unique=True), min_size=1, max_size=4)
    )
    jobs = [job(family, seed, texts) for seed, texts in enumerate(asked)]
    reference = by_uid(Sequential(model, 1, 4).answer(jobs))
    shuffled = [replace(one, questions=tuple(data.draw(st.permutations(one.questions)))) for one in jobs]
    batch_size = data.draw(st.integers(1, 130))
    assert_same(
        by_uid(SharedPrefix(model, batch_size, 4).answer(data.draw(st.permutations(shuffled)))), reference
    )


@pytest.mark.parametrize("family", SHARING)
def test_nothing_leaks_between_neighbours(load: Callable[..., Any], family: str) -> None:
    """A neighbour's picture or a neighbouring question is swapped: the other answers stay."""
    model = load(family)
    engine = SharedPrefix(model, 96, 6)
    mine, other = job(family, 1, QUESTIONS[:3]), job(family, 2, QUESTIONS[:3])
    before = by_uid(engine.answer([mine, other]))
    swapped = by_uid(engine.answer([mine, replace(other, pixels=picture(77))]))
    kept = {uid for uid in before if uid.startswith("1:")}
    assert largest_difference({u: before[u] for u in kept}, {u: swapped[u] for u in kept}) < TOLERANCE
    gone = {uid for uid in before if uid.startswith("2:")}
    assert largest_difference({u: before[u] for u in gone}, {u: swapped[u] for u in gone}) > 100 * TOLERANCE
    reworded = by_uid(engine.answer([job(family, 1, [QUESTIONS[0], "Zzz?", QUESTIONS[2]])]))
    assert all(np.abs(before[uid].logits - reworded[uid].logits).max() < TOLERANCE for uid in ("1:0", "1:2"))
    assert np.abs(before["1:1"].logits - reworded["1:1"].logits).max() > 100 * TOLERANCE


@pytest.mark.parametrize("family", SHARING)
def test_a_broken_mask_is_noticed(
    load: Callable[..., Any], family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were every question to see its neighbours, these tests would fail by far."""
    model = load(family)
    jobs = [job(family, 1, QUESTIONS[:3])]
    reference = by_uid(Sequential(model, 1, 6).answer(jobs))

    def causal_only(owners: torch.Tensor, new: int) -> torch.Tensor:
        everyone = torch.full_like(owners, PREFIX)
        return packing.allowed_columns(everyone, new)

    monkeypatch.setattr(shared_prefix, "allowed_columns", causal_only)
    found = by_uid(SharedPrefix(model, 32, 6).answer(jobs))
    assert largest_difference(found, reference) > 100 * TOLERANCE


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("family", SHARING)
def test_half_precision_flips_only_near_ties(load: Callable[..., Any], family: str, precision: str) -> None:
    """A first token that differs has a margin of at most two steps of the dtype at that magnitude."""
    model = load(family, precision)
    jobs = [job(family, seed, QUESTIONS) for seed in range(4)]
    reference = by_uid(Sequential(model, 1, 1).answer(jobs))
    found = by_uid(SharedPrefix(model, 32, 1).answer(jobs))
    bits = {"bf16": 8, "fp16": 11}[precision]
    for uid, answer in reference.items():
        mine, theirs = answer.new_ids[0], found[uid].new_ids[0]
        if mine != theirs:
            margin = float(answer.logits[mine] - answer.logits[theirs])
            step = 2.0 ** (np.floor(np.log2(abs(float(answer.logits[mine])))) - bits + 1)
            assert margin <= 2 * step


@pytest.mark.parametrize("family", SHARING)
def test_nf4_gives_the_same_answers_and_int8_nearly(load: Callable[..., Any], family: str) -> None:
    """int8 picks its outlier columns per batch, so its logits depend on the batch: bounded loosely."""
    jobs = [job(family, seed, QUESTIONS[:3]) for seed in range(2)]
    for precision, bound in (("nf4", TOLERANCE), ("int8", 0.5)):
        model = load(family, precision)
        reference = by_uid(Sequential(model, 1, 1).answer(jobs))
        found = by_uid(SharedPrefix(model, 32, 1).answer(jobs))
        assert largest_difference(found, reference) < bound


def test_a_logit_that_is_not_finite_stays_with_its_question(
    load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One question's vectors are poisoned; in the packed row 0 times NaN would spoil its neighbours."""
    model = load("llava")
    jobs = [job("llava", 1, ["Is it a cat?", "Is it a #?", "Is it a dog?"])]
    reference = by_uid(Sequential(model, 1, 6).answer(jobs))
    mark = model.tokenizer.convert_tokens_to_ids("#")
    table = model.network.get_input_embeddings().weight
    kept = table[mark].clone()
    with torch.no_grad():
        table[mark] = float("nan")
    try:
        found = by_uid(SharedPrefix(model, 32, 6).answer(jobs))
    finally:
        with torch.no_grad():
            table[mark] = kept
    assert found["1:1"].fault is not None and "not finite" in found["1:1"].fault
    assert_same({u: found[u] for u in ("1:0", "1:2")}, {u: reference[u] for u in ("1:0", "1:2")})


class Greedy:
    """A decoder that runs out of memory above a number of row positions."""

    def __init__(self, step: Callable[..., torch.Tensor], limit: int) -> None:
        self.step, self.limit = step, limit

    def __call__(self, step: DecoderStep, cache: Any) -> torch.Tensor:
        if step.allowed is not None and step.vectors.shape[0] * step.vectors.shape[1] > self.limit:
            raise torch.OutOfMemoryError("out of memory")
        return self.step(step, cache)


def test_batches_that_do_not_fit_are_halved(
    load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load("llava")
    jobs = [job("llava", seed, QUESTIONS) for seed in range(4)]
    reference = by_uid(Sequential(model, 1, 6).answer(jobs))
    monkeypatch.setattr(model, "decode_step", Greedy(model.decode_step, 150))
    engine = SharedPrefix(model, 128, 6)
    assert_same(by_uid(engine.answer(jobs)), reference)
    assert engine.halvings > 1 and engine.batch_size < 128
    monkeypatch.setattr(model, "decode_step", Greedy(model.decode_step, 3))
    with pytest.raises(AuditError, match="a single question does not fit"):
        list(SharedPrefix(model, 128, 6).answer(jobs))


def test_prompts_beyond_the_window_are_asked_alone(
    load: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The block mask knows no sliding window; what exceeds one goes to the sequential engine."""
    model = load("llava")
    jobs = [job("llava", 1, QUESTIONS)]
    reference = by_uid(Sequential(model, 1, 6).answer(jobs))
    lengths = sorted(answer.n_prompt_tokens for answer in reference.values())
    monkeypatch.setattr(model, "window", lengths[3] + 6)
    engine = SharedPrefix(model, 32, 6)
    alone: list[str] = []
    ask = engine.one_by_one.ask
    monkeypatch.setattr(engine.one_by_one, "ask", lambda q, image: alone.append(q.uid) or ask(q, image))
    assert_same(by_uid(engine.answer(jobs)), reference)
    assert sorted(alone) == sorted(u for u, a in reference.items() if a.n_prompt_tokens > lengths[3])


def test_a_picture_the_processor_refuses_is_named(load: Callable[..., Any]) -> None:
    """Qwen2-VL's processor refuses aspect ratios beyond 200; the other picture is asked about."""
    model = load("qwen2_vl")
    thin = replace(job("qwen2_vl", 1, QUESTIONS[:2]), pixels=Image.new("RGB", (900, 2)))
    for engine in (Sequential(model, 1, 2), SharedPrefix(model, 32, 2)):
        found = by_uid(engine.answer([thin, job("qwen2_vl", 2, QUESTIONS[:2])]))
        assert all("refuses 900x2 pixels" in str(found[uid].fault) for uid in ("1:0", "1:1"))
        assert all(found[uid].fault is None for uid in ("2:0", "2:1"))


def piece(owner: int, n: int, start: int = 0) -> Piece:
    ids = torch.arange(start + 1, start + 1 + n)
    return Piece(owner, ids, ids[None] * 10, torch.zeros(n, dtype=torch.bool), torch.zeros(0, 4))


def test_packing_lays_pieces_end_to_end() -> None:
    packed = pack([[piece(0, 2), piece(1, 1, start=5)], [piece(0, 1)]])
    assert packed.ids.tolist() == [[1, 2, 6], [1, 0, 0]]
    assert packed.positions.tolist() == [[[10, 20, 60], [10, 0, 0]]]
    assert packed.owners.tolist() == [[0, 0, 1], [0, PADDING, PADDING]]
    assert packed.last == [[1, 2], [0]]


def test_who_may_look_at_whom() -> None:
    # Columns: prefix, question 0, question 0, question 1, padding; the last four are new.
    owners = torch.tensor([[PREFIX, 0, 0, 1, PADDING]])
    assert allowed_columns(owners, 4)[0].int().tolist() == [
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 0, 0, 1, 0],
        [1, 0, 0, 0, 1],
    ]


@pytest.mark.parametrize(
    ("prompts", "length"),
    [
        ([[1, 2, 3, 4], [1, 2, 9]], 2),
        ([[1, 2, 3], [1, 2, 3, 4]], 2),
        ([[1, 2, 3]], 2),
        ([[5, 2], [6, 2]], 0),
        ([[1], [1, 2]], 0),
        ([[1, 2, 9, 4], [1, 2, 8, 4]], 2),
    ],
)
def test_common_prefix_leaves_each_prompt_something(prompts: list[list[int]], length: int) -> None:
    assert common_prefix([torch.tensor(prompt) for prompt in prompts]) == length
