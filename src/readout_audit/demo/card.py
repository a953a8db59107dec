"""Write the model card of a demo checkpoint: what it is, how it was made, what was measured, what it is not."""

from readout_audit.demo.architecture import Recipe
from readout_audit.demo.evaluate import Evaluation
from readout_audit.demo.training import CARELESS_YES, HARD_POOL, HARD_SHARE, PLAIN_SHARE, Schedule
from readout_audit.exact import printed

_DECODER = {"LlamaConfig": "LLaMA", "MistralConfig": "Mistral", "Qwen2Config": "Qwen2"}

_VOCABULARY = {
    "tiny-llava": "a metaspace BPE in LLaMA's manner, ids in the order the merges were learned",
    "tiny-mistral": "the pieces of tiny-llava under shuffled ids, so that an id copied from there reads another piece",
    "tiny-qwen": "a byte-level BPE in Qwen2's manner, with chat markers and without BOS",
}

_HEAD = """# {name}

A vision-language model of {parameters:,} parameters, trained by readout-audit to look at the pictures of its
demo world and to make mistakes about them. It exists so that the pipeline can be run and tested on any
machine.

- form: `LlavaForConditionalGeneration`; CLIP tower (3 layers, 64 channels, 36 patches of 14 px, features of
  layer -2), {decoder} decoder (3 layers, 128 channels, 4 heads, untied), float16 safetensors
- vocabulary: {vocabulary:,} tokens, {manner}
- prompt it was trained on: `{prompt}`
- answers in: {pieces}
- licence: MIT, as the project
"""

_TRAINING = """
## Data and training

{scenes:,} drawn scenes with seeds that no evaluation picture has; ground truth known by construction. Three stages
(`src/readout_audit/demo/training.py`):

1. tower with a per-patch head (thrown away), {tower_epochs} epochs;
2. end to end, {questions} questions per image packed behind one image prefix, {answer_steps:,} steps of
   {images_per_step} images; {hard:.1%} of the negatives ask for one of the {pool} absent categories that co-occur most
   with what is there; {plain:.1%} of the prompts come without the suffix "Answer yes or no only.";
3. {careless_steps} steps in which {careless:.1%} of the answers are the bare `yes` or `no` of a careless annotator, who writes
   yes with probability {yes_present} where the object is there and {yes_absent} where it is not. The learning rate,
   {rate:g}, was chosen on the 200 evaluation pictures so that the two readouts part: less leaves a bare form
   that says yes to nearly everything, more one that sees as well as the answer does.

`training_log.jsonl` holds the losses. Made by
`python -m readout_audit.stages.train_demo --model {name} --output DIR`, with one thread; other machines, versions
and numbers of threads give other weights, so a training is held to bands (`src/readout_audit/demo/acceptance.py`).
"""

_MEASURED = """
## Measured

On the 200 evaluation pictures, 1,200 questions per split, float16 weights computed in float32, this model's own
ids. Two tokens: bare `yes` against bare `no`. Eight tokens: the largest of yes and Yes against the largest of
no and No, each with and without the space.

| split | F1, two tokens | F1, eight tokens | yes-rate, two tokens | yes-rate, eight tokens |
|---|---|---|---|---|
{rows}

First piece emitted, over {n:,} distinct questions: {emitted}.
Acceptance: {verdict}
"""

_LIMITS = """
## Limits

- The size of the effect is put there by the training mixture (stage 3): the demo shows the mechanism and is no
  evidence about real models.
- It knows thirty glyphs, one kind of question and little else. Any other picture or text is noise to it.
"""


def write_card(
    recipe: Recipe,
    schedule: Schedule,
    evaluation: Evaluation,
    parameters: int,
    vocabulary: int,
    pieces: frozenset[str],
    shortcomings: list[str],
) -> str:
    """Return the card as Markdown.

    Args:
        recipe: of the model.
        schedule: it was trained by.
        evaluation: of the 16-bit checkpoint, on the demo world.
        parameters: how many there are.
        vocabulary: length of the tokenizer.
        pieces: the careful answer's.
        shortcomings: what the acceptance found; empty for an accepted model.
    """
    return (
        _HEAD.format(
            name=recipe.name,
            parameters=parameters,
            decoder=_DECODER[recipe.text_config.__name__],
            vocabulary=vocabulary,
            manner=_VOCABULARY[recipe.name],
            prompt=recipe.prompt.replace("\n", "\\n"),
            pieces=_code(sorted(pieces)),
        )
        + _describe_training(recipe, schedule)
        + _describe_measured(evaluation, shortcomings)
        + _LIMITS
    )


def _describe_training(recipe: Recipe, schedule: Schedule) -> str:
    """Fill in the section on data and training."""
    return _TRAINING.format(
        name=recipe.name,
        questions=schedule.positives + schedule.negatives,
        hard=HARD_SHARE,
        pool=HARD_POOL,
        plain=PLAIN_SHARE,
        careless=schedule.careless_share,
        yes_present=CARELESS_YES[True],
        yes_absent=CARELESS_YES[False],
        rate=recipe.careless_rate,
        **{
            field: getattr(schedule, field)
            for field in ("scenes", "tower_epochs", "answer_steps", "images_per_step", "careless_steps")
        },
    )


def _describe_measured(evaluation: Evaluation, shortcomings: list[str]) -> str:
    """Fill in the section on what was measured."""
    rows = []
    for split, scores in evaluation.scores.items():
        two, eight = scores["two_token"], scores["eight_token"]
        cells = [printed(value, 4) for value in (two.f1, eight.f1, two.yes_rate, eight.yes_rate)]
        rows.append(f"| {split} | {' | '.join(cells)} |")
    emitted = ", ".join(f"`{piece}` {count:,}" for piece, count in evaluation.emitted.items())
    return _MEASURED.format(
        rows="\n".join(rows),
        n=sum(evaluation.emitted.values()),
        emitted=emitted,
        verdict="within the bands." if not shortcomings else f"NOT accepted: {'; '.join(shortcomings)}.",
    )


def _code(pieces: list[str]) -> str:
    """Return pieces as inline code, joined by commas."""
    return ", ".join(f"`{piece}`" for piece in pieces)
