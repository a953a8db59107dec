"""What a demo CLIP must do to be shipped: bands on how well its similarities tell what is there.

`python -m readout_audit.demo.clip_acceptance --folder resources/demo/models/tiny-clip-b` checks a checkpoint.
"""

import argparse
import logging
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image

from readout_audit.datasets.sampling import Question
from readout_audit.demo.build import write_world
from readout_audit.demo.clip import get_recipe
from readout_audit.errors import AuditError
from readout_audit.logs import stage_main
from readout_audit.signals.clip import Clip, crops, largest

logger = logging.getLogger(__name__)

SIMILARITIES = ("image", "patches", "crops")


class Band(NamedTuple):
    """Smallest and largest ROC AUC that is accepted."""

    low: float
    high: float


BANDS: Mapping[str, Mapping[str, Band]] = {
    "random": {"image": Band(0.85, 0.995)},
    "popular": {"image": Band(0.80, 0.99)},
    "adversarial": {"image": Band(0.75, 0.99)},
}

Areas = dict[str, dict[str, float]]
"""ROC AUC of "the object is there" by split and similarity."""


def evaluate(folder: Path, questions: Mapping[str, Sequence[Question]], images: Path) -> Areas:
    """Return how well a checkpoint's similarities tell the questions' answers, by split.

    Args:
        folder: of the checkpoint, read as the pipeline reads it.
        questions: split -> rows.
        images: folder with the pictures.
    """
    clip = Clip(folder, "{noun}", patch_norm=False, device=torch.device("cpu"))
    nouns: dict[str, set[str]] = {}
    for row in (row for rows in questions.values() for row in rows):
        nouns.setdefault(row.image, set()).add(row.object)
    found = {
        (name, noun): values
        for name, about in nouns.items()
        for noun, values in similarities(clip, images / name, sorted(about)).items()
    }
    return {
        split: {
            kind: roc_auc(
                [found[row.image, row.object][kind] for row in rows], [row.label == "yes" for row in rows]
            )
            for kind in SIMILARITIES
        }
        for split, rows in questions.items()
    }


def similarities(clip: Clip, path: Path, nouns: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the similarities of one picture with each noun."""
    views = clip.images(crops(Image.open(path).convert("RGB")))
    every = torch.stack([view.whole for view in views])
    return {
        noun: {
            "image": largest(views[-1].whole, clip.text(noun)),
            "patches": largest(views[-1].patches, clip.text(noun)),
            "crops": largest(every, clip.text(noun)),
        }
        for noun in nouns
    }


def roc_auc(scores: Sequence[float], truth: Sequence[bool]) -> float:
    """Return the share of (true, false) pairs in which the true one scores higher; ties count one half."""
    values, is_true = np.asarray(scores), np.asarray(truth, dtype=bool)
    above, below = values[is_true][:, None], values[~is_true][None, :]
    return float((above > below).mean() + 0.5 * (above == below).mean())


def shortcomings(areas: Areas) -> list[str]:
    """Return what is wrong with a checkpoint, one clause each; empty means accepted."""
    return [
        f"{split}: ROC AUC {areas[split][kind]:.3f} of {kind} is not in {band.low} to {band.high}"
        for split, bands in BANDS.items()
        for kind, band in bands.items()
        if not band.low <= areas[split][kind] <= band.high
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Check the checkpoint in a folder; status 1 where it is not accepted."""
    parser = argparse.ArgumentParser(description="Check a demo CLIP against the acceptance bands.")
    parser.add_argument("--folder", type=Path, required=True, help="the checkpoint; its name is the model's")
    arguments = parser.parse_args(argv)
    get_recipe(arguments.folder.resolve().name)
    with tempfile.TemporaryDirectory() as scratch:
        questions = write_world(Path(scratch))
        areas = evaluate(arguments.folder, questions, Path(scratch) / "images")
    for split, values in areas.items():
        logger.info("%s: %s", split, {kind: round(area, 4) for kind, area in values.items()})
    found = shortcomings(areas)
    if found:
        raise AuditError(f"{arguments.folder}: not accepted; {'; '.join(found)}.")
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
