"""Stage: measure the signals of one shard's distinct questions in an instrumented pass.

Entropy, layers, midpoint, attention, CLIP similarities and contrastive passes, for every question of a
record file. Finished work is kept under the parts folder as it comes; the same command after a kill goes
on from there.
"""

import argparse
import json
import logging
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from readout_audit.contracts import QUESTIONS, RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import (
    canonical_json,
    read_table,
    table_metadata,
    write_json,
    write_table,
)
from readout_audit.inference.asking import load_images
from readout_audit.inference.base import Question
from readout_audit.inference.description import library_versions
from readout_audit.inference.parts import PartsStore
from readout_audit.inference.progress import AskingProgress, peak_memory
from readout_audit.inference.questions import distinct_questions, in_order, shard_of
from readout_audit.inference.settings import Settings
from readout_audit.logs import stage_main
from readout_audit.models import preflight
from readout_audit.models.checkpoint import check_folder, resolved_revision
from readout_audit.models.precision import choose_device
from readout_audit.signals.clip import Clip
from readout_audit.signals.computing import Computer, split_finished
from readout_audit.signals.measuring import Measurer
from readout_audit.signals.rows import INVALID, Row, table
from readout_audit.signals.schema import SIGNALS
from readout_audit.signals.settings import SignalSettings
from readout_audit.signals.words import suffix_of
from readout_audit.tokens.loading import read_token_map

LOGGER = logging.getLogger("readout_audit.stages.compute_signals")

CLIPS = ("clip_b32", "clip_l14_336")


def parser() -> argparse.ArgumentParser:
    """Return the stage's argument parser."""
    result = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    result.add_argument("--settings", required=True, help="JSON object, see signals/settings.py")
    result.add_argument("--questions", required=True, type=Path, help="question table")
    result.add_argument("--images", required=True, type=Path, help="folder of image files")
    result.add_argument("--checkpoint", required=True, type=Path, help="model folder")
    result.add_argument("--tokens", required=True, type=Path, help="token map of this model")
    result.add_argument("--records", required=True, type=Path, help="record file of the cell")
    result.add_argument("--clip-b", type=Path, help="folder of CLIP-B/32, where the settings name one")
    result.add_argument("--clip-l", type=Path, help="folder of CLIP-L/14-336, where the settings name one")
    result.add_argument("--parts", required=True, type=Path, help="folder that keeps finished work")
    result.add_argument("--shard", required=True, type=int, help="which shard, from 1")
    result.add_argument("--of", required=True, type=int, help="number of shards")
    result.add_argument("--code", required=True, help="digest of the code")
    result.add_argument("--output", required=True, type=Path, help="signals of this shard")
    result.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    return result


class Job:
    """One shard of one cell, and everything known before a model is loaded."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Read and check the inputs."""
        self.arguments = arguments
        self.settings = SignalSettings.parse(arguments.settings)
        if not 1 <= arguments.shard <= arguments.of:
            raise AuditError(f"shard {arguments.shard} of {arguments.of} does not exist.")
        self.checkpoint: Path = arguments.checkpoint
        check_folder(self.checkpoint)
        records = read_table(arguments.records, RECORDS, "the record file")
        self.described = table_metadata(records)
        self.records: dict[str, dict[str, Any]] = {row["uid"]: row for row in records.to_pylist()}
        # How the model is run is the records' own settings: the two cannot differ.
        self.model_settings = Settings.parse(json.dumps(self.described["settings"]))
        self.revision = self._same_model()
        self.token_map = read_token_map(arguments.tokens, self.checkpoint)
        self.clip_folders = self._clip_folders()
        self.versions = library_versions(self.model_settings)

    def _same_model(self) -> str:
        """Return the checkpoint's revision, which must be the one the records are of."""
        revision = resolved_revision(self.checkpoint, self.model_settings.value["revision"])
        if revision != self.described["revision"]:
            raise AuditError(
                f"{self.arguments.records}: the records are of revision {self.described['revision']}, the "
                f"checkpoint {self.checkpoint} is {revision}; make the records again."
            )
        return revision

    def _clip_folders(self) -> dict[str, Path]:
        """Return the folders of the CLIPs that the settings name."""
        given = dict(zip(CLIPS, (self.arguments.clip_b, self.arguments.clip_l), strict=True))
        wanted = {name: given[name] for name in CLIPS if self.settings.value[name] is not None}
        for name, folder in wanted.items():
            if folder is None:
                raise AuditError(f"the signal settings name {name}, but no folder is given for it.")
            check_folder(folder)
        return wanted

    def signal_settings(self) -> dict[str, Any]:
        """Return the signal settings, the CLIPs' revisions resolved."""
        resolved = {
            name: {
                **self.settings.value[name],
                "revision": resolved_revision(folder, self.settings.value[name]["revision"]),
            }
            for name, folder in self.clip_folders.items()
        }
        return {**self.settings.value, **resolved}

    def fingerprint(self) -> dict[str, Any]:
        """Return what finished work must agree on to be used again."""
        # How many prompts run side by side changes rounding, as an engine's batch size does.
        return {
            "signals": self.signal_settings(),
            "settings": self.model_settings.value,
            "revision": self.revision,
            "code": self.arguments.code,
            "candidate_ids": self.described["candidate_ids"],
            "versions": self.versions,
        }

    def questions(self) -> list[Question]:
        """Return the shard's distinct questions, in the order of the question table.

        Raises:
            AuditError: one of them has no record.
        """
        rows = distinct_questions(read_table(self.arguments.questions, QUESTIONS, "the question table"))
        shard, of = self.arguments.shard, self.arguments.of
        mine = [row for row in rows if shard_of(row["image_namespace"], row["image"], of) == shard]
        lacking = [row["uid"] for row in mine if row["uid"] not in self.records]
        if lacking:
            raise AuditError(
                f"{self.arguments.records}: {len(lacking)} questions have no record (first: {lacking[0]}); "
                f"make the records from the same question table."
            )
        return [
            Question(
                uid=row["uid"],
                image=row["image"],
                object=row["object"],
                question=row["question"],
                prompt=self.records[row["uid"]]["prompt"],
            )
            for row in mine
        ]

    def load(self, store: PartsStore) -> Measurer:
        """Load the models, put the language model through preflight, and keep what only it can tell."""
        device = choose_device(self.arguments.device)
        spec = self.model_settings.spec(self.checkpoint, device)
        model = preflight.load(self.model_settings.value["adapter"], spec)
        passed = preflight.run(model, self.model_settings.template, self.token_map)
        clips = {
            name: Clip(
                folder, self.settings.value["text_prompt"], self.settings.value["clip_patch_norm"], device
            )
            for name, folder in self.clip_folders.items()
        }
        suffix = suffix_of(self.model_settings.template)
        measurer = Measurer(model, clips, self.settings, self.described["candidate_ids"], suffix)
        store.set_facts(
            {
                **measurer.facts(),
                "parameter_dtypes": passed.parameter_dtypes,
                "first_input_ids": passed.first_input_ids,
                "versions": self.versions,
            }
        )
        return measurer


def main(argv: Sequence[str] | None = None) -> int:
    """Write the signals of one shard, and a manifest of what changes from run to run beside them."""
    started = time.monotonic()
    job = Job(parser().parse_args(argv))
    questions = job.questions()
    with PartsStore(job.arguments.parts, job.fingerprint(), SIGNALS) as store:
        images = load_images(job.arguments.images, questions)
        rows, pending = split_finished(images, store.finished(), job.records)
        LOGGER.info("%d distinct questions, %d already measured", len(questions), len(rows))
        measured: list[Row] = []
        if pending or store.facts() is None:
            measurer = job.load(store)
            total = sum(len(item.questions) for item in pending)
            with AskingProgress(total, f"signals of {job.described['model']}") as progress:
                measured = Computer(measurer, store, job.records, progress.advance).compute(pending)
        facts = store.facts()
    if facts is None:
        raise AuditError(f"{job.arguments.parts}: the model facts vanished while the job ran; run it again.")
    ordered = in_order([*rows, *measured], [question.uid for question in questions])
    write(job, ordered, facts)
    write_manifest(job, len(measured), time.monotonic() - started)
    return 0


def write(job: Job, rows: list[Row], facts: dict[str, Any]) -> None:
    """Write the shard, and say how far this pass agrees with the records."""
    invalid = [row for row in rows if row["status"] == INVALID]
    for row in invalid:
        LOGGER.warning("invalid: question %s: %s", row["uid"], row["reason"])
    differing = [
        row["uid"]
        for row in rows
        if row["status"] != INVALID and row["answer_argmax_id"] != job.records[row["uid"]]["argmax_id"]
    ]
    if differing:
        LOGGER.warning(
            "the first token differs from the record's on %d questions: %s", len(differing), differing[:5]
        )
    kept = ("model", "repository", "folder", "adapter", "settings_id", "token_map", "image_reading")
    records = {name: job.described[name] for name in kept if name in job.described}
    settings = job.signal_settings()
    described = {
        **records,
        **facts,
        "schema": 1,
        "revision": job.revision,
        "candidate_ids": job.described["candidate_ids"],
        "token_sets": job.described["token_sets"],
        "settings": settings,
        "settings_id": SignalSettings.parse(canonical_json(settings)).settings_id,
        "record_settings_id": job.described["settings_id"],
        "n_ok": len(rows) - len(invalid),
        "n_invalid": len(invalid),
    }
    write_table(job.arguments.output, table(rows), SIGNALS, described)


def write_manifest(job: Job, measured: int, seconds: float) -> None:
    """Write what differs from run to run: time, rate, memory, machine."""
    write_json(
        job.arguments.output.with_suffix(".manifest.json"),
        {
            "asked": measured,
            "seconds": round(seconds, 3),
            "questions_per_second": round(measured / seconds, 3),
            "peak_memory_bytes": peak_memory(),
            "host": platform.node(),
            "device": str(choose_device(job.arguments.device)),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "code": job.arguments.code,
        },
    )


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
