"""Stage: POPE's questions about pictures of one's own, drawn from a COCO-format annotation."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from readout_audit.datasets.sampling import (
    SPLITS,
    build_questions,
    choose_images,
    read_coco_objects,
    write_pope_file,
)
from readout_audit.errors import AuditError
from readout_audit.logs import stage_main

LOGGER = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Write `random.json`, `popular.json` and `adversarial.json`; the same bytes for the same arguments."""
    parser = argparse.ArgumentParser(prog="sample_questions", description=__doc__, allow_abbrev=False)
    parser.add_argument("--annotations", type=Path, required=True, help="COCO-format instances (JSON)")
    parser.add_argument("--images", type=int, required=True, help="pictures to ask about; POPE has 500")
    parser.add_argument("--per-image", type=int, default=3, help="positives, and as many negatives (3)")
    parser.add_argument("--seed", type=int, default=0, help="of the draws (0)")
    parser.add_argument("--folder", type=Path, required=True, help="where the three files go")
    arguments = parser.parse_args(argv)
    for name in ("images", "per_image"):
        if getattr(arguments, name) < 1:
            raise AuditError(
                f"--{name.replace('_', '-')} is {getattr(arguments, name)}; it must be at least 1."
            )
    annotated, categories = read_coco_objects(arguments.annotations)
    chosen, fit = choose_images(
        annotated,
        categories,
        arguments.per_image,
        arguments.images,
        arguments.seed,
        str(arguments.annotations),
    )
    LOGGER.info(
        "%d of the %d annotated pictures have %d objects present and absent; %d are drawn",
        fit, len(annotated), arguments.per_image, len(chosen),
    )  # fmt: skip
    questions = build_questions(chosen, categories, arguments.per_image, arguments.seed, counted=annotated)
    for split in SPLITS:
        write_pope_file(arguments.folder / f"{split}.json", questions[split])
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
