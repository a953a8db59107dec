"""Stage: join the shards of one cell into its record file."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from readout_audit.contracts import RECORDS
from readout_audit.inference.merging import merge
from readout_audit.logs import stage_main


def main(argv: Sequence[str] | None = None) -> int:
    """Write the record file and its manifest."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--shards", required=True, type=Path, nargs="+", help="record files of the shards")
    parser.add_argument("--questions", required=True, type=Path, help="question table")
    parser.add_argument("--output", required=True, type=Path, help="record file of the cell")
    arguments = parser.parse_args(argv)
    merge(arguments.shards, arguments.questions, arguments.output, RECORDS)
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
