"""Stage: ask one model one shard's distinct questions and write the logit records.

Finished work is kept under the parts folder as it comes; the same command after a kill goes on from there.
"""

import argparse
import json
import logging
import platform
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from readout_audit.contracts import INVALID, QUESTIONS, RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json, read_table, write_json, write_table
from readout_audit.inference import registry as engines
from readout_audit.inference.asking import Asker, Pending, load_images, split_finished
from readout_audit.inference.base import Engine, Question
from readout_audit.inference.description import (
    candidate_ids,
    describe,
    library_versions,
    model_facts,
    token_sets,
)
from readout_audit.inference.estimate import estimate_memory, job_lines, measure_work, weights_line
from readout_audit.inference.parts import PartsStore
from readout_audit.inference.progress import AskingProgress, peak_memory
from readout_audit.inference.questions import distinct_questions, in_order, shard_of
from readout_audit.inference.records import Row, table
from readout_audit.inference.sequential import Sequential
from readout_audit.inference.settings import Settings
from readout_audit.inference.verification import check_engine
from readout_audit.logs import stage_main
from readout_audit.models import preflight
from readout_audit.models.base import VisionLanguageModel
from readout_audit.models.checkpoint import check_folder, output_rows, resolved_revision
from readout_audit.models.precision import choose_device
from readout_audit.models.templates import render
from readout_audit.tokens.loading import load_tokenizer, read_token_map

LOGGER = logging.getLogger("readout_audit.stages.ask_model")


def parser() -> argparse.ArgumentParser:
    """Return the stage's argument parser."""
    result = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    result.add_argument("--settings", required=True, help="JSON object, see inference/settings.py")
    result.add_argument("--questions", required=True, type=Path, help="question table")
    result.add_argument("--images", required=True, type=Path, help="folder of image files")
    result.add_argument("--checkpoint", required=True, type=Path, help="model folder")
    result.add_argument("--tokens", required=True, type=Path, help="token map of this model")
    result.add_argument(
        "--reference-tokens", required=True, type=Path, help="token map of the reference model"
    )
    result.add_argument("--parts", required=True, type=Path, help="folder that keeps finished work")
    result.add_argument("--shard", required=True, type=int, help="which shard, from 1")
    result.add_argument("--of", required=True, type=int, help="number of shards")
    result.add_argument("--code", required=True, help="digest of the code")
    result.add_argument("--output", required=True, type=Path, help="records of this shard")
    result.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    return result


class Job:
    """One shard of one cell: what is to be asked, and everything known before the model is loaded."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Read and check the inputs."""
        self.arguments = arguments
        self.settings = Settings.parse(arguments.settings)
        self.checkpoint: Path = arguments.checkpoint
        if not 1 <= arguments.shard <= arguments.of:
            raise AuditError(f"shard {arguments.shard} of {arguments.of} does not exist.")
        check_folder(self.checkpoint)
        self.token_map = read_token_map(arguments.tokens, self.checkpoint)
        reference = read_json(arguments.reference_tokens, "the reference token map")
        self.sets = token_sets(self.token_map, reference, self.settings.template.name)
        self.candidates, self.without_logit = candidate_ids(self.sets, output_rows(self.checkpoint))
        if self.without_logit:
            LOGGER.warning(
                "ids %s have no logit in this model; readouts on them are not available", self.without_logit
            )
        self.revision = resolved_revision(self.checkpoint, self.settings.value["revision"])
        self.versions = library_versions(self.settings)

    def fingerprint(self) -> dict[str, Any]:
        """Return what finished work must agree on to be used again."""
        return {
            "settings": self.settings.value,
            "revision": self.revision,
            "code": self.arguments.code,
            "candidate_ids": self.candidates,
            "versions": self.versions,
        }

    def questions(self) -> list[Question]:
        """Return the shard's distinct questions with their prompts, in the order of the question table."""
        rows = distinct_questions(read_table(self.arguments.questions, QUESTIONS, "the question table"))
        shard, of = self.arguments.shard, self.arguments.of
        tokenizer = load_tokenizer(self.checkpoint)
        return [
            Question(
                uid=row["uid"],
                image=row["image"],
                object=row["object"],
                question=row["question"],
                prompt=render(self.settings.template, row["question"], tokenizer, self.checkpoint),
            )
            for row in rows
            if shard_of(row["image_namespace"], row["image"], of) == shard
        ]

    def load_model(self, store: PartsStore) -> tuple[VisionLanguageModel, preflight.Preflight]:
        """Load the model, put it through preflight, and keep what only it can tell."""
        device = choose_device(self.arguments.device)
        value = self.settings.value
        line = weights_line(self.checkpoint, value["precision"], value["compute_dtype"], device)
        LOGGER.info("%s: %s", value["model"], line)
        model = preflight.load(value["adapter"], self.settings.spec(self.checkpoint, device))
        passed = preflight.run(model, self.settings.template, self.token_map)
        special = [str(token) for token in model.tokenizer.all_special_tokens]
        found = model.tokenizer.convert_ids_to_tokens(self.candidates)
        pieces = {str(token_id): piece for token_id, piece in zip(self.candidates, found, strict=True)}
        store.set_facts(model_facts(passed, self.versions, model.eos_ids, special, pieces))
        return model, passed


def main(argv: Sequence[str] | None = None) -> int:
    """Write the records of one shard, and a manifest of what changes from run to run beside them."""
    started = time.monotonic()
    job = Job(parser().parse_args(argv))
    questions = job.questions()
    asked = halvings = 0
    with PartsStore(job.arguments.parts, job.fingerprint(), RECORDS) as store:
        rows, pending = split_finished(load_images(job.arguments.images, questions), store.finished())
        LOGGER.info(
            "%d distinct questions about %d images, %d already answered",
            len(questions),
            len({question.image for question in questions}),
            len(rows),
        )
        answered: list[Row] = []
        if pending or store.facts() is None:
            answered, asked, halvings = ask(job, store, pending)
        facts = store.facts()
    if facts is None:
        raise AuditError(f"{job.arguments.parts}: the model facts vanished while the job ran; run it again.")
    ordered = in_order([*rows, *answered], [question.uid for question in questions])
    write(job, ordered, facts)
    write_manifest(job, asked, time.monotonic() - started, halvings)
    return 0


def ask(job: Job, store: PartsStore, pending: list[Pending]) -> tuple[list[Row], int, int]:
    """Load the model and ask what is pending.

    Returns:
        The rows, those that another process answered in the meantime included; how many questions were put to
        this process's model; how often its batches had to be halved.
    """
    model, passed = job.load_model(store)
    engine = engines.get(job.settings.engine)(model, job.settings.batch_size, job.settings.max_new_tokens)
    value = job.settings.value
    check_engine(engine, job.settings.template, job.checkpoint, value["precision"], value["compute_dtype"])
    waiting = [question for item in pending for question in item.questions]
    say_what_it_takes(engine, waiting, passed.n_image_tokens)
    what = f"{value['model']} {value['precision']} {job.settings.template.name}"
    with AskingProgress(len(waiting), what) as progress:
        asker = Asker(engine, store, job.candidates, progress.advance)
        rows = asker.ask(pending)
    return rows, asker.asked, engine.halvings


def say_what_it_takes(engine: Engine, waiting: list[Question], image_tokens: int) -> None:
    """Log questions, tokens, memory and disk of what is going to be asked."""
    alone = isinstance(engine, Sequential) or not engine.model.shares_prefix
    work = measure_work(engine.model, waiting, image_tokens, alone)
    batch_size = 1 if alone else engine.batch_size
    memory = estimate_memory(engine.model, work, batch_size, engine.images_per_call, engine.max_new_tokens)
    for line in job_lines(work, memory, engine.model.spec.device):
        LOGGER.info("%s", line)


def write(job: Job, rows: list[Row], facts: dict[str, Any]) -> None:
    """Write the shard."""
    invalid = [row for row in rows if row["status"] == INVALID]
    for reason, count in Counter(row["reason"] for row in invalid).items():
        LOGGER.warning("invalid: %d question%s: %s", count, "" if count == 1 else "s", reason)
    described = describe(
        job.settings, job.revision, job.token_map, job.sets, job.candidates, job.without_logit, facts
    )
    counts = {"n_ok": len(rows) - len(invalid), "n_invalid": len(invalid)}
    write_table(job.arguments.output, table(rows), RECORDS, {**described, **counts})


def write_manifest(job: Job, asked: int, seconds: float, halvings: int) -> None:
    """Write what differs from run to run: time, rate, memory, machine."""
    write_json(
        job.arguments.output.with_suffix(".manifest.json"),
        {
            "asked": asked,
            "seconds": round(seconds, 3),
            "questions_per_second": round(asked / seconds, 3),
            "peak_memory_bytes": peak_memory(),
            "batch_halvings": halvings,
            "host": platform.node(),
            "device": str(choose_device(job.arguments.device)),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "code": job.arguments.code,
            "settings": json.dumps(job.settings.value, sort_keys=True),
        },
    )


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
