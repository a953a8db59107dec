"""Stage: draw the demo world's pictures and ask about them (`python -m readout_audit.stages.make_demo_world`)."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from readout_audit.demo.build import EVALUATION_IMAGES, write_world
from readout_audit.logs import stage_main

logger = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Write `images/`, `annotations.json` and `demo_pope_{split}.json`; the same bytes every time."""
    parser = argparse.ArgumentParser(description="Draw the demo world and build its POPE questions.")
    parser.add_argument("--output", type=Path, required=True, help="folder to write to")
    parser.add_argument("--images", type=int, default=EVALUATION_IMAGES, help="number of pictures")
    arguments = parser.parse_args(argv)
    questions = write_world(arguments.output, arguments.images)
    counts = ", ".join(f"{split} {len(rows)}" for split, rows in questions.items())
    logger.info("%d pictures, questions: %s, in %s", arguments.images, counts, arguments.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
