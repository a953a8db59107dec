"""How many answers the shared-prefix engine changes, by model family and precision.

Every family at tiny size with random weights, and the demo's trained models, are asked the same questions one by
one and with shared prefixes. Counted are first tokens and decisions (under five readouts) that differ, with the
margin by which the one-by-one engine prefers its own answer, in steps of the computing type at that size.

    python benchmarks/agreement.py                      all of it, a Markdown table
    python benchmarks/agreement.py --precisions bf16    one precision
    python benchmarks/agreement.py --device cuda        on a GPU

int8 and nf4 compute in float16, as the paper's run does.
"""

import argparse
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import yaml
from PIL import Image

from readout_audit.demo.build import write_world
from readout_audit.inference.base import ImageJob, Question
from readout_audit.inference.description import token_sets
from readout_audit.inference.shared_prefix import SharedPrefix
from readout_audit.inference.verification import compare_engine, decision_sets
from readout_audit.models import preflight, tiny
from readout_audit.models.base import ModelSpec, VisionLanguageModel
from readout_audit.models.precision import QUANTISED, compute_dtype
from readout_audit.models.templates import Template, render
from readout_audit.tokens import tokenmap

ROOT = Path(__file__).resolve().parents[1]
PRECISIONS = ("fp32", "fp16", "bf16", "nf4", "int8")
RANDOM = ("llava", "llava_next", "instructblip", "mplug_owl2", "qwen2_vl")
TRAINED = ("tiny-llava", "tiny-mistral", "tiny-qwen")


def main() -> None:
    """Print one row per model and precision."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--precisions", nargs="+", default=PRECISIONS, choices=PRECISIONS)
    parser.add_argument("--images", type=int, default=20, help="pictures each model is asked about")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--device", default="cpu")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{platform.machine()}, torch {torch.__version__}, {arguments.images} pictures, one thread")
    print("| model | precision | questions | largest difference | first tokens | steps | decisions | steps |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        pictures = dict(read_world(Path(folder) / "world", arguments.images))
        for name, adapter, checkpoint in checkpoints(Path(folder)):
            for precision in arguments.precisions:
                found = measure(name, adapter, checkpoint, precision, pictures, arguments)
                print(row(name, precision, found), flush=True)


def read_world(folder: Path, images: int) -> Iterator[tuple[str, tuple[Image.Image, list[str]]]]:
    """Yield the demo's pictures by name, each with its distinct questions."""
    splits = write_world(folder, images)
    for path in sorted((folder / "images").iterdir()):
        asked = [entry.text for rows in splits.values() for entry in rows if entry.image == path.name]
        yield path.name, (Image.open(path).convert("RGB"), list(dict.fromkeys(asked)))


def checkpoints(folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield name, adapter and folder of every model; random ones are made."""
    for adapter in RANDOM:
        tiny.build(adapter, folder / adapter)
        yield f"random-{adapter.replace('_', '-')}", adapter, folder / adapter
    for name in TRAINED:
        yield name, "llava", ROOT / "resources/demo/models" / name


def measure(
    name: str,
    adapter: str,
    checkpoint: Path,
    precision: str,
    pictures: dict[str, tuple[Image.Image, list[str]]],
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Return the comparison of the two engines on all questions."""
    declared = "float16" if precision in QUANTISED else None
    device = torch.device(arguments.device)
    model = preflight.load(adapter, ModelSpec(name, checkpoint, precision, declared, "as_is", "sdpa", device))
    known = yaml.safe_load((ROOT / "config/templates.yaml").read_text(encoding="utf-8"))["known_templates"]
    template = Template.from_dict({**known[name]["authors"], "name": "authors"})
    token_map = tokenmap.build(name, checkpoint, {"authors": template})
    every = list(range(model.vocabulary_rows))
    described = {"token_sets": token_sets(token_map, token_map, "authors"), "candidate_ids": every}
    return compare_engine(
        SharedPrefix(model, arguments.batch_size, 1),
        jobs(model, template, checkpoint, pictures),
        precision,
        compute_dtype(precision, declared),
        decision_sets(described),
    )


def jobs(
    model: VisionLanguageModel,
    template: Template,
    checkpoint: Path,
    pictures: dict[str, tuple[Image.Image, list[str]]],
) -> list[ImageJob]:
    """Return the pictures with their questions, rendered for a model."""
    return [
        ImageJob(
            pixels,
            tuple(
                Question(
                    f"{name} {text}", name, None, text, render(template, text, model.tokenizer, checkpoint)
                )
                for text in texts
            ),
        )
        for name, (pixels, texts) in pictures.items()
    ]


def row(name: str, precision: str, found: dict[str, Any]) -> str:
    """Return one line of the table."""

    def steps(entries: list[dict[str, Any]]) -> str:
        return f"{max(entry['steps'] for entry in entries):.1f}" if entries else "–"

    decisions = found["decision_flips"]
    cells = (
        name,
        precision,
        str(found["compared"]),
        f"{found['largest_difference']:.2g}",
        str(len(found["flips"])),
        steps(found["flips"]),
        f"{len(decisions)} of {found['compared'] * len(found['readouts'])}",
        steps(decisions),
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
