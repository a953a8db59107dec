"""Stage: ask a model behind an OpenAI-compatible server one cell's distinct questions and write the logit records.

Replies are kept under the parts folder as they come; the same command after a kill goes on from there. A cell
is one job: questions run side by side inside it, and jobs that ask one server take turns.
"""

import argparse
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path

from readout_audit.api.asking import Answered, Asker, Question, split_kept
from readout_audit.api.client import Client, Patience
from readout_audit.api.credentials import ApiKey
from readout_audit.api.pace import Pace
from readout_audit.api.records import describe, row, table, vocabulary_of
from readout_audit.api.settings import ApiSettings
from readout_audit.api.store import ReplyStore
from readout_audit.contracts import QUESTIONS, RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, write_json, write_table
from readout_audit.inference.questions import distinct_questions
from readout_audit.logs import stage_main

LOGGER = logging.getLogger("readout_audit.stages.ask_api")


def parser() -> argparse.ArgumentParser:
    """Return the stage's argument parser."""
    result = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    result.add_argument("--settings", required=True, help="JSON object, see api/settings.py")
    result.add_argument("--questions", required=True, type=Path, help="question table")
    result.add_argument(
        "--images", type=Path, help="folder of image files; needed unless settings say image: none"
    )
    result.add_argument("--parts", required=True, type=Path, help="folder that keeps replies")
    result.add_argument("--key-variable", help="environment variable that holds the server's key")
    result.add_argument("--requests-per-minute", type=float, help="default: no limit")
    result.add_argument("--in-flight", type=int, default=4, help="questions side by side (4)")
    result.add_argument("--attempts", type=int, default=6, help="tries of one question (6)")
    result.add_argument("--timeout", type=float, default=120.0, help="seconds to wait for an answer (120)")
    result.add_argument(
        "--longest-wait", type=float, default=300.0, help="seconds a server may ask to wait (300)"
    )
    result.add_argument("--code", required=True, help="digest of the code")
    result.add_argument("--output", required=True, type=Path, help="record file of the cell")
    return result


class Job:
    """One cell: what is to be asked, of whom, and how patiently."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Read and check the arguments."""
        self.arguments = arguments
        self.settings = ApiSettings.parse(arguments.settings)
        self.images: Path | None = arguments.images if self.settings.sends_image else None
        check_arguments(arguments, self.settings)
        self.key = ApiKey(arguments.key_variable)
        if self.key.variable and self.settings.is_open:
            LOGGER.warning("the key goes to %s unencrypted", self.settings.server)
        self.pace = Pace(arguments.requests_per_minute)
        patience = Patience(
            attempts=arguments.attempts,
            longest_wait=arguments.longest_wait,
            timeout=(min(10.0, arguments.timeout), arguments.timeout),
        )
        self.client = Client(self.settings.server, self.key, self.pace, patience)

    def questions(self) -> list[Question]:
        """Return the distinct questions with their messages, in the order of the question table."""
        rows = distinct_questions(read_table(self.arguments.questions, QUESTIONS, "the question table"))
        return [
            Question(
                uid=item["uid"],
                image=item["image"],
                object=item["object"],
                question=item["question"],
                message=self.settings.message(item["question"]),
            )
            for item in rows
        ]


def check_arguments(arguments: argparse.Namespace, settings: ApiSettings) -> None:
    """Refuse arguments that cannot be meant."""
    if settings.sends_image and arguments.images is None:
        raise AuditError(
            "the settings send pictures, but --images names no folder; name it or set image to none."
        )
    for name in ("in_flight", "attempts", "timeout", "longest_wait", "requests_per_minute"):
        number = getattr(arguments, name)
        if number is not None and not number > 0:
            raise AuditError(f"--{name.replace('_', '-')} is {number}; it must be above 0.")


def main(argv: Sequence[str] | None = None) -> int:
    """Write the records of one cell, and a manifest of what changes from run to run beside them."""
    started = time.monotonic()
    job = Job(parser().parse_args(argv))
    questions = job.questions()
    settings = job.settings
    with ReplyStore(job.arguments.parts, settings.server, settings.fingerprint()) as store:
        kept, pending = split_kept(questions, store, job.images)
        LOGGER.info("%d distinct questions, %d already answered", len(questions), len(kept))
        asker = Asker(settings, job.client, job.pace, store, job.images, job.arguments.in_flight)
        asked = asker.ask(pending)
    by_uid = {item.question.uid: item for item in [*kept, *asked]}
    write(job, [by_uid[question.uid] for question in questions])
    write_manifest(job, len(asked), time.monotonic() - started)
    return 0


def write(job: Job, answered: list[Answered]) -> None:
    """Write the records, and say in the log what is wrong with them."""
    for item in answered:
        if item.reply is None:
            LOGGER.warning("invalid: question %s: %s", item.question.uid, item.fault)
    vocabulary = vocabulary_of(answered)
    candidates = vocabulary.candidates()
    described = describe(job.settings, answered, vocabulary, candidates)
    for what, said in described["server_says"].items():
        if what != "finish_reason" and len(said) > 1:
            LOGGER.warning("the server changed while it was asked: %s was %s", what, said)
    if (described["n_top"]["least"] or 0) < job.settings.value["top_logprobs"]:
        LOGGER.warning("the server lists fewer tokens than asked for: %s", described["n_top"])
    rows = [row(item, vocabulary, candidates) for item in answered]
    write_table(job.arguments.output, table(rows), RECORDS, described)


def write_manifest(job: Job, asked: int, seconds: float) -> None:
    """Write what differs from run to run: time, rate, requests."""
    write_json(
        job.arguments.output.with_suffix(".manifest.json"),
        {
            "asked": asked,
            "requests": job.client.requests,
            "retries": job.client.retries,
            "seconds": round(seconds, 3),
            "questions_per_second": round(asked / seconds, 3),
            "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "code": job.arguments.code,
            "settings": json.dumps(job.settings.value, sort_keys=True),
        },
    )


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
