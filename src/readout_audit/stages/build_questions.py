"""Stage: question files of one release -> its question table. Also builds label sets, which look the same."""

import argparse
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from readout_audit.contracts import QUESTIONS
from readout_audit.datasets.parse import QuestionFile, read_questions
from readout_audit.datasets.questions import build_question_table, report_questions
from readout_audit.datasets.releases import (
    KnownFile,
    describe,
    read_known_files,
    recognise_bytes,
    recognise_content,
)
from readout_audit.errors import AuditError
from readout_audit.fileio import sha256_file, write_json, write_table
from readout_audit.logs import stage_main

LOGGER = logging.getLogger(__name__)


def main(argv: Sequence[str] | None = None) -> int:
    """Build one question table from the command line."""
    parser = argparse.ArgumentParser(prog="build_questions", description=__doc__)
    parser.add_argument("--dataset", required=True, help="name of the release, such as coco-2023-10")
    parser.add_argument("--namespace", required=True, help="name space of the images; part of every uid")
    parser.add_argument("--split", nargs="+", action="extend", required=True, metavar="NAME=FILE")
    parser.add_argument("--sha256", nargs="+", action="extend", default=[], metavar="NAME=HEX")
    parser.add_argument("--known", type=Path, help="datasets.yaml, to name a release that was not expected")
    parser.add_argument("--output", type=Path, required=True, help="question table (Parquet)")
    parser.add_argument("--report", type=Path, required=True, help="what stands in it (JSON)")
    arguments = parser.parse_args(argv)
    files = {split: Path(file) for split, file in _pairs(arguments.split, "--split").items()}
    run(
        dataset=arguments.dataset,
        namespace=arguments.namespace,
        files=files,
        sha256=_pairs(arguments.sha256, "--sha256"),
        known=read_known_files(arguments.known) if arguments.known else [],
        output=arguments.output,
        report=arguments.report,
    )
    return 0


def _pairs(values: Sequence[str], option: str) -> dict[str, str]:
    """Read NAME=VALUE arguments; a name given twice is refused."""
    pairs: dict[str, str] = {}
    for value in values:
        name, separator, rest = value.partition("=")
        if not (name and separator and rest):
            raise AuditError(f"{option} {value}: give it as NAME=VALUE.")
        if name in pairs:
            raise AuditError(f"{option} {name}: given twice.")
        pairs[name] = rest
    return pairs


def run(
    dataset: str,
    namespace: str,
    files: Mapping[str, Path],
    sha256: Mapping[str, str],
    known: Sequence[KnownFile],
    output: Path,
    report: Path,
) -> None:
    """Write the question table and its report.

    Args:
        dataset: name of the release; its own rows carry it.
        namespace: name space of the images.
        files: split -> question file.
        sha256: split -> hash the file must have; a split without one is taken as it is.
        known: releases to recognise files by.
        output: question table (contracts.QUESTIONS).
        report: JSON of `report_questions`, with each file's hash and the releases it is recognised as.

    Raises:
        AuditError: a hash is given for a split that is not there, a file has another hash, or a bad row.
    """
    for split in sha256:
        if split not in files:
            raise AuditError(f"--sha256 {split}: no file is given for this split.")
    found = {split: sha256_file_checked(files[split], sha256.get(split), known) for split in files}
    parsed = {split: read_questions(files[split]) for split in files}
    table = build_question_table(dataset, namespace, parsed)
    described = report_questions(table, parsed)
    for split, entry in described["splits"].items():
        entry |= _identity(files[split], found[split], parsed[split], known)
        LOGGER.info("%s %s: %d rows, %d misspelt", dataset, split, entry["rows"], entry["misspelt"])
    write_table(output, table, QUESTIONS)
    write_json(report, {"dataset": dataset, "image_namespace": namespace, **described})


def sha256_file_checked(file: Path, expected: str | None, known: Sequence[KnownFile]) -> str:
    """Return the file's SHA-256, refusing another than `expected` and naming the release it belongs to.

    Raises:
        AuditError: the file is not there, or its hash is another one.
    """
    try:
        found = sha256_file(file)
    except OSError as error:
        raise AuditError(f"{file}: the question file cannot be read ({error.strerror or error}).") from error
    if expected is None or found == expected.lower():
        return found
    releases = recognise_bytes(found, known)
    if releases:
        identity = f"the file is {describe(releases)}"
    else:
        releases = recognise_content(read_questions(file).rows, known)
        identity = (
            f"it asks what {describe(releases)} asks, in other bytes"
            if releases
            else "it is no known release"
        )
    raise AuditError(f"{file}: sha256 {expected} expected, {found} found; {identity}. Fetch the file again.")


def _identity(file: Path, sha256: str, parsed: QuestionFile, known: Sequence[KnownFile]) -> dict[str, Any]:
    """Describe where a split came from: file name, hash, and the releases it is recognised as."""
    return {
        "file": file.name,
        "sha256": sha256,
        "same_bytes_as": [found.name for found in recognise_bytes(sha256, known)],
        "asks_the_same_as": [found.name for found in recognise_content(parsed.rows, known)],
    }


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
