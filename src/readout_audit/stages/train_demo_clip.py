"""Stage: train one demo CLIP and write its folder (`python -m readout_audit.stages.train_demo_clip`)."""

import argparse
import json
import logging
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from readout_audit.demo.build import EVALUATION_IMAGES, write_world
from readout_audit.demo.clip import RECIPES, ClipRecipe, get_recipe, save
from readout_audit.demo.clip_acceptance import evaluate, shortcomings
from readout_audit.demo.clip_card import write_clip_card
from readout_audit.demo.clip_training import FULL, SMOKE, ClipSchedule, train
from readout_audit.errors import AuditError
from readout_audit.fileio import write_text
from readout_audit.logs import stage_main
from readout_audit.stages.train_demo import SMOKE_IMAGES, put_in_place

logger = logging.getLogger("readout_audit.stages.train_demo_clip")


def make_clip(
    recipe: ClipRecipe, schedule: ClipSchedule, images: int, folder: Path, world: Path
) -> list[str]:
    """Train a CLIP into `folder`, checkpoint, card and log; return its shortcomings on `images` pictures.

    What is evaluated is the 16-bit checkpoint as read back from the folder.
    """
    log: list[dict[str, Any]] = []

    def report(entry: dict[str, Any]) -> None:
        log.append(entry)
        logger.info("%s: %s", recipe.name, json.dumps(entry))

    trained = train(recipe, schedule, report)
    save(trained.to(torch.float16), folder)
    questions = write_world(world, images)
    areas = evaluate(folder, questions, world / "images")
    found = shortcomings(areas)
    parameters = sum(parameter.numel() for parameter in trained.parameters())
    write_text(folder / "README.md", write_clip_card(recipe, schedule, areas, parameters, found))
    write_text(folder / "training_log.jsonl", "".join(f"{json.dumps(entry)}\n" for entry in log))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Train, check and put the folder in place; a CLIP outside the acceptance bands replaces nothing."""
    parser = argparse.ArgumentParser(description="Train one demo CLIP.")
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
    schedule = SMOKE if arguments.smoke else FULL[arguments.model]
    images = SMOKE_IMAGES if arguments.smoke else EVALUATION_IMAGES
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as scratch:
        built, world = Path(scratch) / output.name, Path(scratch) / "world"
        found = make_clip(get_recipe(arguments.model), schedule, images, built, world)
        if found and not arguments.smoke:
            raise AuditError(
                f"{arguments.model}: the training ended outside the acceptance bands ({'; '.join(found)}); "
                f"{output} is left as it was, use the shipped checkpoint or train again with another seed."
            )
        put_in_place(built, output)
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
