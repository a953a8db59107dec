"""Stage: join the shards of one cell into its signals file."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from readout_audit.contracts import QUESTIONS
from readout_audit.fileio import read_table, write_json, write_table
from readout_audit.inference.questions import distinct_questions
from readout_audit.logs import stage_main
from readout_audit.signals.schema import SIGNALS
from readout_audit.stages.merge_shards import check_complete, common_description, joined_manifest


def main(argv: Sequence[str] | None = None) -> int:
    """Write the signals file and its manifest."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--shards", required=True, type=Path, nargs="+", help="signals files of the shards")
    parser.add_argument("--questions", required=True, type=Path, help="question table")
    parser.add_argument("--output", required=True, type=Path, help="signals file of the cell")
    arguments = parser.parse_args(argv)
    run(arguments.shards, arguments.questions, arguments.output)
    return 0


def run(shards: Sequence[Path], questions: Path, output: Path) -> None:
    """Join `shards`; every distinct question of `questions` must be in exactly one of them.

    Raises:
        AuditError: a question is missing, twice there or not asked for, or two shards were made
            under different settings.
    """
    tables = [read_table(path, SIGNALS, "the shard") for path in shards]
    described = common_description(shards, tables)
    uids = [row["uid"] for row in distinct_questions(read_table(questions, QUESTIONS, "the question table"))]
    joined = pa.concat_tables(tables)
    check_complete(joined["uid"].to_pylist(), uids, output)
    places = {uid: place for place, uid in enumerate(joined["uid"].to_pylist())}
    ordered = joined.take(pa.array([places[uid] for uid in uids], pa.int64()))
    valid = ordered["status"].to_pylist().count("ok")
    counts = {"n_ok": valid, "n_invalid": len(ordered) - valid}
    write_table(output, ordered, SIGNALS, {**described, **counts})
    write_json(output.with_suffix(".manifest.json"), joined_manifest(shards))


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
