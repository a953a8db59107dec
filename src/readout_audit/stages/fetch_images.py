"""Stage: the pictures of question tables, from a folder of one's own, the mirror, or their addresses."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from readout_audit.errors import AuditError
from readout_audit.fetch.images import (
    Fetched,
    downloaded,
    from_mirror,
    from_own_folder,
    images_asked,
    manifest,
)
from readout_audit.fileio import write_json
from readout_audit.logs import stage_main


def main(argv: Sequence[str] | None = None) -> int:
    """Fetch pictures from the command line."""
    parser = argparse.ArgumentParser(prog="fetch_images", description=__doc__)
    parser.add_argument("--questions", type=Path, nargs="+", required=True, help="question tables (Parquet)")
    parser.add_argument("--own", type=Path, help="folder that already has the pictures; goes before the rest")
    parser.add_argument("--mirror", type=Path, help="mirror folder; with one the network is not asked")
    parser.add_argument("--mirror-pattern", help="path inside a mirror, with {image}")
    parser.add_argument("--url-pattern", help="address with {image}")
    parser.add_argument("--folder", type=Path, required=True, help="where linked or downloaded pictures go")
    parser.add_argument("--output", type=Path, required=True, help="which pictures are there (JSON)")
    arguments = parser.parse_args(argv)
    fetched, source = _fetch(images_asked(arguments.questions), arguments)
    write_json(arguments.output, manifest(fetched, source))
    return 0


def _fetch(names: Sequence[str], arguments: argparse.Namespace) -> tuple[Fetched, str]:
    """Take the pictures from the first source that is named; return them and what it was."""
    if arguments.own is not None:
        return from_own_folder(names, arguments.own), "own folder"
    if arguments.mirror is not None and arguments.mirror_pattern:
        return from_mirror(names, arguments.mirror, arguments.mirror_pattern, arguments.folder), "mirror"
    if arguments.mirror is None and arguments.url_pattern:
        return downloaded(names, arguments.url_pattern, arguments.folder), arguments.url_pattern
    raise AuditError(
        "these pictures have no address of their own; put them into a mirror and name it in the config."
    )


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
