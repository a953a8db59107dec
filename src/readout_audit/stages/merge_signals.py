"""Stage: join the shards of one cell into its signals file."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from readout_audit.inference.merging import merge
from readout_audit.logs import stage_main
from readout_audit.signals.schema import SIGNALS


def main(argv: Sequence[str] | None = None) -> int:
    """Write the signals file and its manifest."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--shards", required=True, type=Path, nargs="+", help="signals files of the shards")
    parser.add_argument("--questions", required=True, type=Path, help="question table")
    parser.add_argument("--output", required=True, type=Path, help="signals file of the cell")
    arguments = parser.parse_args(argv)
    merge(arguments.shards, arguments.questions, arguments.output, SIGNALS)
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
