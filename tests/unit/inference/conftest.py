"""A tiny model with a few pictures and questions, made once per test session."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from readout_audit.contracts import QUESTIONS
from readout_audit.fileio import sha256_text, write_table
from readout_audit.models import tiny
from readout_audit.stages import map_tokens

TEMPLATES = {
    "authors": {
        "text": "USER: <image>\n{question} Answer yes or no only.\nASSISTANT:",
        "suffix": "",
        "answer_boundary": "clean",
    }
}
OBJECTS = ["dog", "cat", "traffic light", "umbrella", "bus"]


@dataclass(frozen=True)
class World:
    """Paths of everything a job reads."""

    checkpoint: Path
    images: Path
    questions: Path
    tokens: Path

    def settings(self, **changes: Any) -> dict[str, Any]:
        return {
            "model": "tiny",
            "repository": None,
            "folder": "tiny",
            "revision": None,
            "adapter": "llava",
            "precision": "fp32",
            "compute_dtype": "float32",
            "template": {"name": "authors", **TEMPLATES["authors"]},
            "image_mode": "as_is",
            "attention": "sdpa",
            "engine": {"name": "sequential", "batch_size": 1},
            "max_new_tokens": 6,
            **changes,
        }

    def arguments(self, folder: Path, shard: int = 1, of: int = 1, **changes: Any) -> list[str]:
        """Command-line arguments of ask_model that write to `folder`."""
        values = {
            "settings": json.dumps(self.settings(**changes)),
            "questions": self.questions,
            "images": self.images,
            "checkpoint": self.checkpoint,
            "tokens": self.tokens,
            "reference-tokens": self.tokens,
            "parts": folder / "parts",
            "shard": shard,
            "of": of,
            "code": "c0de",
            "device": "cpu",
            "output": folder / f"{shard}-of-{of}.parquet",
        }
        return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def question_row(image: str, noun: str, split: str = "random", number: int = 0) -> dict[str, Any]:
    """One row of a question table."""
    question = f"Is there a {noun} in the image?"
    return {
        "uid": sha256_text(f"{image}|{question}")[:32],
        "dataset": "d",
        "split": split,
        "question_id": str(number),
        "image": image,
        "image_namespace": "tiny",
        "object": noun,
        "question": question,
        "label": "yes" if number % 2 else "no",
    }


def write_questions(path: Path, rows: list[dict[str, Any]]) -> None:
    write_table(path, pa.Table.from_pylist(rows, schema=QUESTIONS), QUESTIONS)


def make_image(path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(50, 90, size=2)
    Image.fromarray(rng.integers(0, 256, size=(height, width, 3), dtype=np.uint8)).save(path)


def make_world(folder: Path, checkpoint: Path, n_images: int) -> World:
    """Pictures, a question table in which questions repeat across splits, and the token map."""
    images = folder / "images"
    images.mkdir(parents=True)
    rows = []
    for number in range(n_images):
        name = f"picture_{number}.png"
        make_image(images / name, number)
        for split in ("random", "popular"):
            nouns = OBJECTS[:3] if split == "random" else OBJECTS[1:]
            rows += [question_row(name, noun, split, len(rows) + place) for place, noun in enumerate(nouns)]
    write_questions(folder / "questions.parquet", rows)
    arguments = ["--model", "tiny", "--tokenizer", str(checkpoint), "--templates", json.dumps(TEMPLATES)]
    map_tokens.main([*arguments, "--output", str(folder / "tokens.json")])
    return World(checkpoint, images, folder / "questions.parquet", folder / "tokens.json")


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "tiny-llava"
    tiny.build("llava", folder)
    return folder


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Path) -> World:
    return make_world(tmp_path_factory.mktemp("world"), tiny_checkpoint, n_images=4)


@pytest.fixture(scope="session")
def world_of(tmp_path_factory: pytest.TempPathFactory, tiny_checkpoint: Path) -> Callable[[int], World]:
    """Makes a world of any number of pictures, for tests that change it."""
    return lambda n_images: make_world(tmp_path_factory.mktemp("world") / "own", tiny_checkpoint, n_images)
