"""One cell of one run as it is compared: answers with their margins, prompts, and how they were made."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json, table_metadata
from readout_audit.report.run_folder import RunFolder
from readout_audit.report.text import flat
from readout_audit.scores.decisions import Decisions, read_decisions

ABSENT = "not recorded"

Margins = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Answers:
    """The answers of one cell.

    Attributes:
        run: name of the run.
        cell: its path, "dataset/model/precision/template".
        decisions: coded rows, n of them.
        margins: readout -> shape (n,), NaN where there is none; readouts without logits are left out.
        prompts: uid -> exact prompt; empty where the run has no records.
        facts: how it was made, by dotted name.
    """

    run: str
    cell: str
    decisions: Decisions
    margins: dict[str, Margins]
    prompts: dict[str, str]
    facts: dict[str, str]

    @property
    def template(self) -> Mapping[str, Any] | None:
        """The recorded prompt template, None where the source does not record it."""
        template = (self.decisions.metadata.get("settings") or {}).get("template")
        return template if isinstance(template, Mapping) else None


def read_answers(run: RunFolder, cell: str) -> Answers:
    """Read one cell.

    Raises:
        AuditError: a file cannot be read, or the source does not know which question a row is.
    """
    path = run.results / "decisions" / f"{cell}.parquet"
    return answers_of(run.name, cell, path, run.file("records", cell))


def answers_of(run: str, cell: str, path: Path, records: Path | None) -> Answers:
    """Read one cell from its decision file and, where there is one, its record file.

    Raises:
        AuditError: a file cannot be read, or the source does not know which question a row is.
    """
    decisions = read_decisions(path)
    if decisions.identity["uid"].null_count:
        raise AuditError(
            f"{path}: this source ({decisions.cell['source']}) does not know which question a row is, so nothing "
            "can be compared question by question; take a run with per-question rows."
        )
    prompts, described = _records(records)
    manifest = (
        None
        if records is None
        else records.with_name(f"{records.name.removesuffix('.parquet')}.manifest.json")
    )
    facts = _facts(decisions, described, manifest)
    return Answers(run, cell, decisions, _margins(path, decisions), prompts, facts)


def _margins(path: Path, decisions: Decisions) -> dict[str, Margins]:
    """Return the margins of the readouts that have any."""
    columns = {name: f"{name}.margin" for name in decisions.answers}
    table = pq.read_table(path, columns=list(columns.values()))
    return {
        name: table[column].to_numpy().astype(np.float32)
        for name, column in columns.items()
        if table[column].null_count < len(table)
    }


def _records(path: Path | None) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the prompts by uid and the description of a record file; both empty where there is none.

    Raises:
        AuditError: it is no readable record file.
    """
    if path is None:
        return {}, {}
    try:
        names = pq.read_schema(path).names
        if names != RECORDS.names:
            raise AuditError(
                f"{path}: the record file has other columns than this version writes; make it again."
            )
        table = pq.read_table(path, columns=["uid", "prompt"])
    except (OSError, ValueError) as error:
        raise AuditError(
            f"{path}: the record file is not a readable Parquet file ({error}); copy it or make it again."
        ) from error
    prompts = dict(zip(table["uid"].to_pylist(), table["prompt"].to_pylist(), strict=True))
    return prompts, table_metadata(table)


RECORDED = (
    *(
        "repository",
        "folder",
        "revision",
        "adapter",
        "parameter_dtypes",
        "first_input_ids",
        "image_processing",
    ),
    *("image_reading", "logits_dtype", "decoding", "versions", "probe"),
)
"""What of a record file's description is compared; the rest follows from it or is long."""


def _facts(decisions: Decisions, described: Mapping[str, Any], manifest: Path | None) -> dict[str, str]:
    """Return how a cell was made, as texts by dotted name."""
    known: dict[str, Any] = {**decisions.cell, "settings": decisions.metadata.get("settings") or {}}
    known["record"] = {name: described[name] for name in RECORDED if name in described}
    known["tokenizer"] = described.get("token_map", {}).get("tokenizer_sha256", {})
    known["readout"] = {
        name: {key: readout[key] for key in ("ids", "rule", "available") if key in readout}
        for name, readout in decisions.metadata.get("readouts", {}).items()
    }
    known["files"] = decisions.metadata.get("files", {})
    if manifest is not None and manifest.is_file():
        shards = (read_json(manifest, "the manifest").get("shards") or {}).values()
        for name in ("device", "host", "code"):
            known[name] = sorted({str(shard[name]) for shard in shards if shard and name in shard})
    return {name: value for name, value in flat(known).items() if value != "none"}


def differing(first: Answers, second: Answers) -> list[tuple[str, str, str]]:
    """Return (name, value in the first, value in the second) of everything recorded that differs.

    What only one of them records differs too: it reads "not recorded" in the other.
    """
    names = dict.fromkeys([*first.facts, *second.facts])
    values = ((name, first.facts.get(name), second.facts.get(name)) for name in names)
    return [(name, a or ABSENT, b or ABSENT) for name, a, b in values if a != b]
