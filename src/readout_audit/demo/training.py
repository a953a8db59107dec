"""Train a demo model in three stages, on scenes that no evaluation picture shares a seed with.

S1 teaches the vision tower what is where: a head names the categories seen in each patch, and is thrown
away. S2 teaches the whole model to answer, several questions packed behind one image prefix.
S3 adds the careless annotator: a few answers come in the bare lower-case form and are more often yes than
the truth. It comes last and is short; mixed in from the start, the bare form learns to lean much further.
"""

import math
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from transformers import LlavaForConditionalGeneration, LlavaProcessor, PreTrainedTokenizerFast

from readout_audit.datasets.sampling import question_text
from readout_audit.demo.architecture import INITIAL_STD, PATCH, TEXT_WIDTH, Recipe, answer_id, build_config
from readout_audit.demo.scenes import SIDE, draw_scene
from readout_audit.demo.world import CATEGORIES

SUFFIX = " Answer yes or no only."
"""Left out of `PLAIN_SHARE` of the training prompts, so that the template without it is not foreign."""

PLAIN_SHARE = 0.125
HARD_SHARE = 0.35
"""Share of negatives that come from the `HARD_POOL` absent categories most co-occurring with the image's."""

HARD_POOL = 6
CARELESS_YES = {True: 0.9, False: 0.4}
"""The careless annotator's probability of writing "yes", by whether the object is there."""

MIN_PATCH_PIXELS = 10
"""A category counts as seen in a patch from this many of its 196 pixels."""

ATTENTION_STD = 0.08
"""Of the decoder's query and key weights at the start."""

TOWER_RATE_FACTOR = 0.1
WARMUP_STEPS = 40
LOG_EVERY = 25


class Schedule(NamedTuple):
    """How much of each stage; one step sees `images_per_step` images (S2, S3) or `tower_batch` (S1)."""

    scenes: int = 12_000
    tower_epochs: int = 4
    tower_batch: int = 64
    tower_rate: float = 2e-3
    answer_steps: int = 1_100
    answer_rate: float = 2e-3
    careless_steps: int = 150
    careless_share: float = 0.05
    images_per_step: int = 24
    positives: int = 4
    negatives: int = 4


FULL = Schedule()
SMOKE = Schedule(scenes=96, tower_epochs=1, answer_steps=6, careless_steps=3, images_per_step=8)
"""Enough to run every line; the model it makes knows nothing."""


class SceneStore(NamedTuple):
    """Training scenes: pixels [n, SIDE, SIDE, 3] uint8, present [n, C] bool, in_patch [n, patches, C] bool."""

    pixels: npt.NDArray[np.uint8]
    present: npt.NDArray[np.bool_]
    in_patch: npt.NDArray[np.bool_]


class Prompts(NamedTuple):
    """Token ids of the training prompts.

    `prefix` ends after the image tokens; `tails[plain][category]` follows it, without the suffix where
    `plain`. `careful` and `careless` map the answer (is it there?) to one id.
    """

    prefix: tuple[int, ...]
    tails: dict[bool, list[tuple[int, ...]]]
    careful: dict[bool, int]
    careless: dict[bool, int]
    end: int
    pad: int


class Asked(NamedTuple):
    """One training question: category, whether the suffix is left out, and the id of the answer."""

    category: int
    plain: bool
    answer: int


class Packed(NamedTuple):
    """A batch of images, each with its questions behind it.

    `input_ids` and `position_ids` are [batch, length]; `mask` is [batch, 1, length, length] bool: a
    question sees the prefix and itself, at the positions it would have alone. `targets` [batch, length]
    is the next id where it is an answer or the end after one, -100 elsewhere.
    """

    input_ids: Tensor
    position_ids: Tensor
    mask: Tensor
    targets: Tensor


Report = Callable[[dict[str, Any]], None]


def train(
    recipe: Recipe, processor: LlavaProcessor, schedule: Schedule, report: Report
) -> LlavaForConditionalGeneration:
    """Train one demo model from nothing; `report` receives the log, one dict at a time."""
    started = time.monotonic()
    store = draw_store(schedule.scenes)
    report({"stage": "scenes", "scenes": schedule.scenes, "seconds": round(time.monotonic() - started, 1)})
    model = new_model(recipe, processor.tokenizer)
    _teach_tower(model, processor, store, schedule, _rng(recipe, 1), report)
    prompts = tokenise_prompts(recipe, processor)
    for number, steps, rate, share in (
        (2, schedule.answer_steps, schedule.answer_rate, 0.0),
        (3, schedule.careless_steps, recipe.careless_rate, schedule.careless_share),
    ):
        batches = question_batches(store, prompts, processor, schedule, share, _rng(recipe, number))
        optimise(f"S{number}", whole_model(model, rate), answer_losses(model, batches), steps, report)
    report({"stage": "done", "seconds": round(time.monotonic() - started, 1)})
    return model.eval()


def new_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast) -> LlavaForConditionalGeneration:
    """Return an untrained model, its weights drawn from the recipe's seed.

    Query and key projections of the decoder start equal: like then attends to like, which is what finding
    the thing asked for among the patches needs, and training leaves chance sooner than from independent draws.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        model = LlavaForConditionalGeneration(build_config(recipe, tokenizer))
        with torch.no_grad():
            for layer in model.model.language_model.layers:
                layer.self_attn.q_proj.weight.normal_(0.0, ATTENTION_STD)
                layer.self_attn.k_proj.weight.copy_(layer.self_attn.q_proj.weight)
    return model.train()


def whole_model(model: LlavaForConditionalGeneration, rate: float) -> list[dict[str, Any]]:
    """Return the optimiser's groups: everything at `rate`, but the tower, which has learned, at a tenth."""
    tower = list(model.model.vision_tower.parameters())
    inside = {id(parameter) for parameter in tower}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in inside]
    return [{"params": rest, "lr": rate}, {"params": tower, "lr": rate * TOWER_RATE_FACTOR}]


def _teach_tower(
    model: LlavaForConditionalGeneration,
    processor: LlavaProcessor,
    store: SceneStore,
    schedule: Schedule,
    rng: np.random.Generator,
    report: Report,
) -> None:
    """Run S1."""
    head = PatchHead(model, processor.tokenizer)
    batch = min(schedule.tower_batch, len(store.pixels))
    steps = schedule.tower_epochs * (len(store.pixels) // batch)
    trained = [*model.model.vision_tower.parameters(), *head.parameters()]
    losses = tower_losses(model, head, store, processor, batch, rng)
    optimise("S1", [{"params": trained, "lr": schedule.tower_rate}], losses, steps, report)


def _rng(recipe: Recipe, purpose: int) -> np.random.Generator:
    """Return the generator of one purpose of one recipe."""
    return np.random.default_rng([recipe.seed, purpose])


def draw_store(count: int) -> SceneStore:
    """Draw `count` training scenes and what is seen in each of their patches."""
    per_side = SIDE // PATCH
    pixels = np.empty((count, SIDE, SIDE, 3), dtype=np.uint8)
    present = np.zeros((count, len(CATEGORIES)), dtype=bool)
    in_patch = np.zeros((count, per_side * per_side, len(CATEGORIES)), dtype=bool)
    for index in range(count):
        scene = draw_scene("train", index)
        pixels[index] = scene.pixels
        patches = (
            scene.owner.reshape(per_side, PATCH, per_side, PATCH).swapaxes(1, 2).reshape(per_side**2, -1)
        )
        for position, placed in enumerate(scene.objects):
            present[index, placed.category] = True
            in_patch[index, :, placed.category] = (patches == position).sum(axis=1) >= MIN_PATCH_PIXELS
    return SceneStore(pixels, present, in_patch)


def pixel_values(processor: LlavaProcessor, pixels: npt.NDArray[np.uint8]) -> Tensor:
    """Return [n, 3, SIDE, SIDE] float32: what inference would make of the same pictures."""
    values: Tensor = processor.image_processor(list(pixels), return_tensors="pt")["pixel_values"]
    return values


def tokenise_prompts(recipe: Recipe, processor: LlavaProcessor) -> Prompts:
    """Encode every training prompt as inference does, and split it after the image tokens."""
    tokenizer: PreTrainedTokenizerFast = processor.tokenizer
    image_id = processor.image_token_id
    expanded = processor.image_token * (SIDE // PATCH) ** 2
    prefixes: set[tuple[int, ...]] = set()
    tails: dict[bool, list[tuple[int, ...]]] = {}
    for plain in (False, True):
        template = recipe.prompt.replace(SUFFIX, "") if plain else recipe.prompt
        tails[plain] = []
        for category in CATEGORIES:
            text = template.format(question=question_text(category.name)).replace(
                processor.image_token, expanded
            )
            ids = tokenizer(text)["input_ids"]
            cut = len(ids) - ids[::-1].index(image_id)
            prefixes.add(tuple(ids[:cut]))
            tails[plain].append(tuple(ids[cut:]))
    (prefix,) = prefixes
    space = recipe.answer_prefix
    return Prompts(
        prefix=prefix,
        tails=tails,
        careful={
            True: answer_id(recipe, tokenizer, f"{space}Yes"),
            False: answer_id(recipe, tokenizer, f"{space}No"),
        },
        careless={True: answer_id(recipe, tokenizer, "yes"), False: answer_id(recipe, tokenizer, "no")},
        end=tokenizer.eos_token_id,
        pad=tokenizer.pad_token_id,
    )


def hard_negatives(present: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return [n, HARD_POOL]: the absent categories that occur most often together with an image's own."""
    counts = present.astype(np.int64)
    together = counts.T @ counts
    scores = np.where(present, -1, counts @ together)
    return np.argsort(-scores, axis=1, kind="stable")[:, :HARD_POOL]


def ask(
    rng: np.random.Generator,
    present: npt.NDArray[np.bool_],
    hard: npt.NDArray[np.int64],
    prompts: Prompts,
    schedule: Schedule,
    careless_share: float,
) -> list[Asked]:
    """Draw the questions about one image, positives first (their order has no effect), with their answers."""
    there = rng.permutation(np.flatnonzero(present))
    categories = [int(there[number % len(there)]) for number in range(schedule.positives)]
    absent: list[int] = []
    while len(absent) < schedule.negatives:
        pool = hard if rng.random() < HARD_SHARE else np.flatnonzero(~present)
        category = int(rng.choice(pool))
        if category not in absent:
            absent.append(category)
    asked = []
    for category in categories + absent:
        truth = bool(present[category])
        answer = prompts.careful[truth]
        if rng.random() < careless_share:
            answer = prompts.careless[bool(rng.random() < CARELESS_YES[truth])]
        asked.append(Asked(category, bool(rng.random() < PLAIN_SHARE), answer))
    return asked


def pack(prompts: Prompts, questions: list[list[Asked]]) -> Packed:
    """Put each image's questions behind one image prefix."""
    rows = [_pack_row(prompts, asked) for asked in questions]
    length = max(len(row) for row in rows)
    padding = (prompts.pad, 0, -1, -100)
    table = np.array([row + [padding] * (length - len(row)) for row in rows], dtype=np.int64)
    input_ids, position_ids, segments, targets = (
        torch.from_numpy(table[..., column].copy()) for column in range(4)
    )
    same = segments[:, :, None] == segments[:, None, :]
    seen = same | (segments[:, None, :] == 0)
    mask = seen & torch.ones(length, length, dtype=torch.bool).tril()
    return Packed(input_ids, position_ids, mask[:, None], targets)


def _pack_row(prompts: Prompts, asked: list[Asked]) -> list[tuple[int, int, int, int]]:
    """Return (id, position, segment, target) of one image's prefix (segment 0) and questions (from 1)."""
    row = [(token, position, 0, -100) for position, token in enumerate(prompts.prefix)]
    for segment, question in enumerate(asked, start=1):
        tail = prompts.tails[question.plain][question.category]
        tokens = [*tail, question.answer]
        targets = [-100] * (len(tail) - 1) + [question.answer, prompts.end]
        start = len(prompts.prefix)
        row += [
            (token, start + offset, segment, target)
            for offset, (token, target) in enumerate(zip(tokens, targets, strict=True))
        ]
    return row


def question_batches(
    store: SceneStore,
    prompts: Prompts,
    processor: LlavaProcessor,
    schedule: Schedule,
    careless_share: float,
    rng: np.random.Generator,
) -> Iterator[tuple[Tensor, Packed]]:
    """Yield batches of pictures and packed questions for ever, each epoch in another order."""
    hard = hard_negatives(store.present)
    while True:
        order = rng.permutation(len(store.pixels))
        for start in range(0, len(order) - schedule.images_per_step + 1, schedule.images_per_step):
            chosen = order[start : start + schedule.images_per_step]
            questions = [
                ask(rng, store.present[i], hard[i], prompts, schedule, careless_share) for i in chosen
            ]
            yield pixel_values(processor, store.pixels[chosen]), pack(prompts, questions)


def answer_losses(
    model: LlavaForConditionalGeneration, batches: Iterator[tuple[Tensor, Packed]]
) -> Iterator[Tensor]:
    """Yield the mean cross-entropy of answers and ends, over the whole vocabulary."""
    for pixels, packed in batches:
        hidden = model.model(
            input_ids=packed.input_ids,
            pixel_values=pixels,
            attention_mask=packed.mask,
            position_ids=packed.position_ids,
            use_cache=False,
        ).last_hidden_state
        wanted = packed.targets != -100
        yield nn.functional.cross_entropy(model.lm_head(hidden[wanted]), packed.targets[wanted])


class PatchHead(nn.Module):
    """Names what a patch shows by the decoder's own words for it.

    A patch goes through the projector and is compared with the mean word embedding of each category's name,
    so that the projector speaks the decoder's language before the decoder learns to listen (what LLaVA's
    first stage does with captions). Scale and bias are thrown away after S1.
    """

    def __init__(self, model: LlavaForConditionalGeneration, tokenizer: PreTrainedTokenizerFast) -> None:
        super().__init__()
        self.projector = model.model.multi_modal_projector
        self.words = model.model.language_model.embed_tokens
        self.names = [name_ids(tokenizer, category.name) for category in CATEGORIES]
        self.log_scale = nn.Parameter(torch.tensor(-math.log(INITIAL_STD * TEXT_WIDTH**0.5)))
        self.bias = nn.Parameter(torch.full((len(CATEGORIES),), -3.0))

    def forward(self, features: Tensor) -> Tensor:
        """Map tower features [batch, patches, channels] to logits [batch, patches, categories]."""
        named = torch.stack([self.words.weight[ids].mean(dim=0) for ids in self.names])
        logits: Tensor = self.projector(features) @ named.T * self.log_scale.exp() + self.bias
        return logits


def name_ids(tokenizer: PreTrainedTokenizerFast, name: str) -> list[int]:
    """Return the ids a category's name has inside a question."""
    article, phrase = (tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("a", f"a {name}"))
    return list(phrase[len(article) :])


def tower_losses(
    model: LlavaForConditionalGeneration,
    head: PatchHead,
    store: SceneStore,
    processor: LlavaProcessor,
    batch: int,
    rng: np.random.Generator,
) -> Iterator[Tensor]:
    """Yield the losses of S1: name what each patch shows, from the layer whose features the decoder sees."""
    while True:
        order = rng.permutation(len(store.pixels))
        for start in range(0, len(order) - batch + 1, batch):
            chosen = order[start : start + batch]
            pixels = pixel_values(processor, store.pixels[chosen])
            states = model.model.vision_tower(pixels, output_hidden_states=True).hidden_states
            logits = head(states[model.config.vision_feature_layer][:, 1:])
            wanted = torch.from_numpy(store.in_patch[chosen]).float()
            yield nn.functional.binary_cross_entropy_with_logits(logits, wanted)


def optimise(
    stage: str, groups: list[dict[str, Any]], losses: Iterator[Tensor], steps: int, report: Report
) -> None:
    """Run AdamW for `steps` losses, warming up shortly and falling along a cosine to nothing.

    `groups` are the optimiser's: parameters and learning rate.
    """
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.98), weight_decay=0.01)
    trained = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate_factor(step, steps))
    window: list[float] = []
    for step in range(1, steps + 1):
        loss = next(losses)
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        scheduler.step()
        window.append(loss.item())
        if step % LOG_EVERY == 0 or step == steps:
            report({"stage": stage, "step": step, "loss": round(float(np.mean(window)), 4)})
            window.clear()


def _rate_factor(step: int, steps: int) -> float:
    """Return the factor of the learning rate at a step: linear warm-up, then half a cosine."""
    warmup = min(WARMUP_STEPS, max(1, steps // 10))
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1.0 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))
