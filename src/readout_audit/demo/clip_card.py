"""Write the model card of a demo CLIP: what it is, how it was made, what was measured, what it is not."""

from readout_audit.demo.clip import PROJECTION, TEXT_LAYERS, TEXT_WIDTH, ClipRecipe
from readout_audit.demo.clip_acceptance import SIMILARITIES, Areas
from readout_audit.demo.clip_training import CUT_SHARE, MIN_CUT, ClipSchedule
from readout_audit.demo.scenes import SIDE

_CARD = """# {name}

A CLIP of {parameters:,} parameters, trained by readout-audit to compare the pictures of its demo world with
nouns. It stands where {stands_for} stands in a real run, so that the signals and corrections can be run and
tested on any machine.

- form: `CLIPModel`; vision part of {layers} layers, {width} channels, {patches} patches of {patch} px ({side} px
  pictures); text part of {text_layers} layers, {text_width} channels; {projection} shared dimensions; float16
  safetensors
- text: one token per letter, lower case
- licence: MIT, as the project

## Data and training

{scenes:,} drawn scenes with seeds that no evaluation picture has, {steps:,} steps of {batch} pictures, {cut:.0%} of them
cut to a random part of at least {min_cut} px and enlarged. Contrastive loss in both directions over all thirty nouns,
one positive for each thing that is there; no loss on patches (`src/readout_audit/demo/clip_training.py`).
`training_log.jsonl` holds losses and times. Made by
`python -m readout_audit.stages.train_demo_clip --model {name} --output DIR`; another machine may get other
weights, so it is held to bands (`src/readout_audit/demo/clip_acceptance.py`).

## Measured

ROC AUC of "the object is there" from one similarity with the bare noun, on the 200 evaluation pictures, 1,200
questions per split, float16 weights computed in float32. Crops: the largest of 4 × 4 crops and the whole.

| split | whole image | largest patch | crops |
|---|---|---|---|
{rows}

Acceptance: {verdict}

## Limits

- It knows thirty glyphs and their names. Its similarities are on a scale of its own and say nothing about
  published CLIPs; a map to [0, 1] that was made for those does not fit it.
"""

_STANDS_FOR = {"tiny-clip-b": "CLIP-B/32", "tiny-clip-l": "CLIP-L/14-336"}


def write_clip_card(
    recipe: ClipRecipe, schedule: ClipSchedule, areas: Areas, parameters: int, shortcomings: list[str]
) -> str:
    """Return the card as Markdown.

    Args:
        recipe: of the model.
        schedule: it was trained by.
        areas: of the 16-bit checkpoint, on the demo world.
        parameters: how many there are.
        shortcomings: what the acceptance found; empty for an accepted model.
    """
    rows = [
        f"| {split} | {' | '.join(f'{values[kind]:.3f}' for kind in SIMILARITIES)} |"
        for split, values in areas.items()
    ]
    return _CARD.format(
        name=recipe.name,
        parameters=parameters,
        stands_for=_STANDS_FOR[recipe.name],
        layers=recipe.layers,
        width=recipe.width,
        patches=(SIDE // recipe.patch) ** 2,
        patch=recipe.patch,
        side=SIDE,
        text_layers=TEXT_LAYERS,
        text_width=TEXT_WIDTH,
        projection=PROJECTION,
        scenes=schedule.scenes,
        steps=schedule.steps,
        batch=schedule.batch,
        cut=CUT_SHARE,
        min_cut=MIN_CUT,
        rows="\n".join(rows),
        verdict="within the bands." if not shortcomings else f"NOT accepted: {'; '.join(shortcomings)}.",
    )
