"""Stage: one pinned file, from the mirror or its address, checked."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from readout_audit.fetch.file import fetch_file
from readout_audit.logs import stage_main


def main(argv: Sequence[str] | None = None) -> int:
    """Fetch one file from the command line."""
    parser = argparse.ArgumentParser(prog="fetch_file", description=__doc__)
    parser.add_argument("--url", help="its address, used without a mirror")
    parser.add_argument(
        "--mirror-path", required=True, help="its path inside a mirror; its name in the lock file"
    )
    parser.add_argument("--mirror", type=Path, help="mirror folder; with one the network is not asked")
    parser.add_argument("--sha256", help="hash it must have; without one it is locked on the first fetch")
    parser.add_argument("--lock", type=Path, required=True, help="lock file (JSON)")
    parser.add_argument("--output", type=Path, required=True, help="where it goes")
    arguments = parser.parse_args(argv)
    fetch_file(
        arguments.mirror_path,
        arguments.output,
        arguments.lock,
        url=arguments.url,
        mirror=arguments.mirror,
        sha256=arguments.sha256,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
