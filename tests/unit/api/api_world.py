"""A few pictures and questions to ask a server about."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from readout_audit.contracts import QUESTIONS
from readout_audit.fileio import sha256_text, write_table

OBJECTS = ("dog", "cat", "bus")
AUTHORS = {"name": "authors", "text": None, "chat": True, "suffix": " Answer yes or no only."}


@dataclass(frozen=True)
class World:
    """Paths of what a job reads."""

    images: Path
    questions: Path

    def settings(self, server: str, **changes: Any) -> dict[str, Any]:
        return {
            "model": "served-model",
            "adapter": "openai",
            "server": server,
            "served_model": "org/served",
            "revision": None,
            "precision": "served",
            "template": AUTHORS,
            "image": "data_uri",
            "max_tokens": 6,
            "top_logprobs": 3,
            "extra": {},
            **changes,
        }

    def arguments(self, folder: Path, server: str, *words: str, **changes: Any) -> list[str]:
        """Command-line arguments of ask_api that write to `folder`."""
        values = {
            "settings": json.dumps(self.settings(server, **changes)),
            "questions": self.questions,
            "images": self.images,
            "parts": folder / "parts",
            "code": "c0de",
            "output": folder / "records.parquet",
        }
        return [*(word for name, value in values.items() for word in (f"--{name}", str(value))), *words]


def make_world(folder: Path) -> World:
    """Two pictures with three questions each; the first question stands in two splits."""
    images = folder / "images"
    images.mkdir()
    rows = []
    for number, colour in enumerate([(250, 10, 10), (10, 10, 250)]):
        name = f"picture{number}.png"
        Image.fromarray(np.full((8, 8, 3), colour, dtype=np.uint8)).save(images / name)
        for noun in OBJECTS:
            question = f"Is there a {noun} in the image?"
            rows.append(
                {
                    "uid": sha256_text(f"{name}|{question}")[:32],
                    "dataset": "d",
                    "split": "random",
                    "question_id": str(len(rows)),
                    "image": name,
                    "image_namespace": "tests",
                    "object": noun,
                    "question": question,
                    "label": "yes" if noun == "dog" else "no",
                }
            )
    rows.append({**rows[0], "split": "popular"})
    path = folder / "questions.parquet"
    write_table(path, pa.Table.from_pylist(rows, schema=QUESTIONS), QUESTIONS)
    return World(images, path)
