"""Stage: a checkpoint at one commit, from the mirror or the hub, into a folder of ours."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from readout_audit.fetch.model import check_revision, fetch_from_hub, fetch_from_mirror
from readout_audit.fileio import write_json
from readout_audit.logs import stage_main


def main(argv: Sequence[str] | None = None) -> int:
    """Fetch one checkpoint from the command line."""
    parser = argparse.ArgumentParser(prog="fetch_model", description=__doc__)
    parser.add_argument("--model", required=True, help="its name in models.yaml")
    parser.add_argument("--repository", required=True, help="owner/name on the hub")
    parser.add_argument(
        "--revision", help="40-digit commit; without one the newest is locked on the first fetch"
    )
    parser.add_argument("--pickled", action="store_true", help="allow pickled weights; they are converted")
    parser.add_argument("--mirror", type=Path, help="mirror folder; with one the network is not asked")
    parser.add_argument("--lock", type=Path, required=True, help="lock file (JSON)")
    parser.add_argument("--folder", type=Path, required=True, help="where the checkpoint goes")
    parser.add_argument("--output", type=Path, required=True, help="manifest of the checkpoint (JSON)")
    arguments = parser.parse_args(argv)
    model, folder, lock = arguments.model, arguments.folder, arguments.lock
    check_revision(model, arguments.revision)
    if arguments.mirror is not None:
        manifest = fetch_from_mirror(model, arguments.mirror, folder, lock, pickled=arguments.pickled)
    else:
        manifest = fetch_from_hub(
            model, arguments.repository, arguments.revision, folder, lock, pickled=arguments.pickled
        )
    write_json(arguments.output, manifest)
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
