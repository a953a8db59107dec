"""Stage: train one demo model and write its folder (`python -m readout_audit.stages.train_demo`)."""

import argparse
import json
import logging
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import LlavaForConditionalGeneration

from readout_audit.demo.acceptance import check, load
from readout_audit.demo.architecture import RECIPES, Recipe, build_processor, get_recipe
from readout_audit.demo.build import EVALUATION_IMAGES, write_world
from readout_audit.demo.card import write_card
from readout_audit.demo.evaluate import in_context_pieces
from readout_audit.demo.training import FULL, SMOKE, Schedule, train
from readout_audit.errors import AuditError
from readout_audit.fileio import write_text
from readout_audit.logs import stage_main

logger = logging.getLogger(__name__)

SMOKE_IMAGES = 8


def make_model(recipe: Recipe, schedule: Schedule, images: int, folder: Path, world: Path) -> list[str]:
    """Train a model into `folder`, checkpoint, card and log; return its shortcomings on `images` pictures.

    What is evaluated is the 16-bit checkpoint as read back from the folder.
    """
    processor = build_processor(recipe)
    log: list[dict[str, Any]] = []

    def report(entry: dict[str, Any]) -> None:
        log.append(entry)
        logger.info("%s: %s", recipe.name, json.dumps(entry))

    trained = train(recipe, processor, schedule, report)
    save_half(trained, folder)
    processor.save_pretrained(folder)
    model, processor = load(folder)
    questions = write_world(world, images)
    evaluation, shortcomings = check(model, processor, recipe, questions, world / "images")
    parameters = sum(parameter.numel() for parameter in model.parameters())
    pieces = in_context_pieces(recipe, processor)
    card = write_card(
        recipe, schedule, evaluation, parameters, len(processor.tokenizer), pieces, shortcomings
    )
    write_text(folder / "README.md", card)
    write_text(folder / "training_log.jsonl", "".join(f"{json.dumps(entry)}\n" for entry in log))
    return shortcomings


def save_half(model: LlavaForConditionalGeneration, folder: Path) -> None:
    """Write the weights as float16, and say so in every part of the configuration."""
    half = model.to(torch.float16)
    for part in (half.config, half.config.text_config, half.config.vision_config):
        part.dtype = torch.float16
    half.save_pretrained(folder)
    (folder / "model.safetensors").chmod(0o644)  # safetensors lets nobody else read it


def put_in_place(built: Path, output: Path) -> None:
    """Make the finished folder `built` the folder `output`, replacing what was there."""
    retired = built.with_name(f"{built.name}.old")
    if output.exists():
        output.rename(retired)
    built.rename(output)
    if retired.exists():
        shutil.rmtree(retired)


def main(argv: Sequence[str] | None = None) -> int:
    """Train, check and put the folder in place; a model outside the acceptance bands replaces nothing."""
    parser = argparse.ArgumentParser(description="Train one demo model.")
    parser.add_argument("--model", required=True, choices=sorted(RECIPES))
    parser.add_argument("--output", type=Path, required=True, help="the model's folder, replaced as a whole")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.add_argument(
        "--smoke", action="store_true", help="a few steps only: every line runs, nothing is learned"
    )
    arguments = parser.parse_args(argv)
    torch.set_num_threads(arguments.threads)
    output: Path = arguments.output
    output.parent.mkdir(parents=True, exist_ok=True)
    schedule, images = (SMOKE, SMOKE_IMAGES) if arguments.smoke else (FULL, EVALUATION_IMAGES)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as scratch:
        built, world = Path(scratch) / output.name, Path(scratch) / "world"
        shortcomings = make_model(get_recipe(arguments.model), schedule, images, built, world)
        if shortcomings and not arguments.smoke:
            raise AuditError(
                f"{arguments.model}: the training ended outside the acceptance bands ({'; '.join(shortcomings)}); "
                f"{output} is left as it was, use the shipped checkpoint or train again with another seed."
            )
        put_in_place(built, output)
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
