"""Stage: write a random-weight tiny model of one family, for running the whole pipeline without weights."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from readout_audit.logs import stage_main
from readout_audit.models import tiny


def main(argv: Sequence[str] | None = None) -> int:
    """Write the checkpoint folder; see `readout_audit.models.tiny`."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--family", required=True, choices=sorted(tiny.FAMILIES), help="adapter name")
    parser.add_argument("--folder", required=True, type=Path, help="where the checkpoint goes")
    parser.add_argument("--tokenizer", type=Path, help="folder of a real tokenizer (default: a small one)")
    parser.add_argument("--seed", type=int, default=0, help="of the random weights")
    arguments = parser.parse_args(argv)
    tiny.build(arguments.family, arguments.folder, arguments.seed, arguments.tokenizer)
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
