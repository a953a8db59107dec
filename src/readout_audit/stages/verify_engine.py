"""Stage: ask a seeded sample of a record file again, one question at a time, and report what differs."""

import argparse
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata, write_json
from readout_audit.inference import verification
from readout_audit.inference.settings import Settings
from readout_audit.logs import stage_main
from readout_audit.models import preflight
from readout_audit.models.checkpoint import check_folder
from readout_audit.models.precision import choose_device, compute_dtype, dtype_name
from readout_audit.tokens.loading import tokenizer_hashes

LOGGER = logging.getLogger("readout_audit.stages.verify_engine")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the report; a failed comparison is part of it and stops nothing."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--records", required=True, type=Path, help="record file of one cell")
    parser.add_argument("--images", required=True, type=Path, help="folder of image files")
    parser.add_argument("--checkpoint", required=True, type=Path, help="model folder")
    parser.add_argument("--sample", type=int, default=100, help="how many questions to ask again")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--dataset", help="name of the question release, written into the report")
    parser.add_argument("--output", required=True, type=Path, help="report, JSON")
    arguments = parser.parse_args(argv)
    report = run(
        arguments.records,
        arguments.images,
        arguments.checkpoint,
        arguments.sample,
        arguments.seed,
        arguments.device,
    )
    write_json(arguments.output, {"dataset": arguments.dataset, **report})
    return 0


def run(records: Path, images: Path, checkpoint: Path, size: int, seed: int, device: str) -> dict[str, Any]:
    """Return the comparison of a sample of `records` with the sequential engine's answers."""
    table = read_table(records, RECORDS, "the record file")
    described = table_metadata(table)
    if "settings" not in described:
        raise AuditError(f"{records}: it does not say under which settings it was made; nothing to verify.")
    check_checkpoint(checkpoint, described, records)
    settings = Settings.parse(json.dumps(described["settings"]))
    model = preflight.load(settings.value["adapter"], settings.spec(checkpoint, choose_device(device)))
    rows = verification.sample(table.to_pylist(), size, seed)
    pairs = verification.ask_again(rows, images, model, settings.max_new_tokens)
    dtype = compute_dtype(settings.value["precision"], settings.value["compute_dtype"])
    found = verification.compare(
        pairs,
        described["candidate_ids"],
        dtype_name(dtype),
        settings.value["precision"],
        verification.decision_sets(described),
    )
    for entry in found["flips"]:
        entry |= {f"{kind}_piece": model.piece(entry[kind]) for kind in ("recorded", "sequential")}
    LOGGER.info("%s", summary(found))
    return {
        "model": described["model"],
        "precision": settings.value["precision"],
        "dtype": dtype_name(dtype),
        "template": settings.template.name,
        "engine": settings.engine,
        "settings_id": described["settings_id"],
        "seed": seed,
        "steps_allowed": verification.STEPS,
        **found,
    }


def check_checkpoint(checkpoint: Path, described: dict[str, Any], records: Path) -> None:
    """Refuse a checkpoint whose tokenizer is not the one that a record file says it was made with."""
    check_folder(checkpoint)
    if tokenizer_hashes(checkpoint) != described["token_map"]["tokenizer_sha256"]:
        raise AuditError(
            f"{checkpoint}: its tokenizer is not the one that {records} was made with; name the folder of "
            f"{described['model']}."
        )


def summary(found: dict[str, Any]) -> str:
    """Return one line about a comparison."""
    without = f", {len(found['unanswered'])} have no second answer" if found["unanswered"] else ""
    return (
        f"{found['same_first_token']} of {found['compared']} first tokens and {found['same_continuation']} "
        f"continuations are the same, candidate logits differ by at most {found['largest_difference']:.2g}, "
        f"{len(found['flips'])} first tokens and {len(found['decision_flips'])} decisions flip{without}: "
        f"{'passed' if found['passed'] else 'FAILED'}"
    )


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
