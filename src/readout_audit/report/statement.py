"""The one line that says how a score was read, as the paper asks every paper to print it (Section 6).

It names the readout, its token ids with their pieces, the prompt, the precision, the decoding, the question
release and n. It is written from what the decision file records; what a source does not record is said to be
not recorded, never filled in.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq

from readout_audit.contracts import decisions_schema
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.report.run_folder import RunFolder
from readout_audit.report.text import quoted, visible

NOT_RECORDED = "not recorded by this source"
DECODED_HERE = ("inference", "files")
"""Sources whose records this project made, under its own decoding."""


class Asked(NamedTuple):
    """What was asked of one model, as its files describe it.

    Attributes:
        cell: the fields of `contracts.CELL`.
        counts: split -> questions.
        described: metadata of the decision file.
        record: metadata of the record file; empty where there is none.
    """

    cell: Mapping[str, str]
    counts: Mapping[str, int]
    described: Mapping[str, Any]
    record: Mapping[str, Any]

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings under which the model was asked; empty where they are not recorded."""
        return self.described.get("settings") or self.record.get("settings") or {}


def read_asked(decisions: Path, records: Path | None = None) -> Asked:
    """Read what a decision file says about itself, without its answers.

    Raises:
        AuditError: a file is missing or is no decision file.
    """
    table = read_table(decisions, decisions_schema(_readouts(decisions)), "the decision file")
    described = table_metadata(table)
    if "cell" not in described:
        raise AuditError(f"{decisions}: the metadata does not name the cell; make the file again.")
    values = pc.value_counts(table["split"]).to_pylist()
    counts = {str(value["values"]): int(value["counts"]) for value in values}
    return Asked(described["cell"], counts, described, record_description(records) if records else {})


def _readouts(path: Path) -> list[str]:
    """Return the readouts a decision file has columns for; none if it cannot be read (read_table says why)."""
    try:
        names = pq.read_schema(path).names
    except (OSError, ValueError):
        return []
    return [name.removesuffix(".tie") for name in names if name.endswith(".tie")]


def record_description(path: Path) -> dict[str, Any]:
    """Return the metadata of a record file; its rows are not read.

    Raises:
        AuditError: it is no readable Parquet file.
    """
    try:
        return table_metadata(pq.read_schema(path).empty_table())
    except (OSError, ValueError) as error:
        raise AuditError(f"{path}: the record file is not a readable Parquet file ({error}).") from error


def run_statements(run: RunFolder) -> dict[str, dict[str, str]]:
    """Return the statements of a run: cell -> readout -> its line.

    Raises:
        AuditError: a decision file cannot be read.
    """
    return {
        cell: statements(read_asked(path, run.file("records", cell)))
        for cell, path in run.cells("decisions").items()
    }


def statements(asked: Asked) -> dict[str, str]:
    """Return the line of each readout of a decision file, in the file's order."""
    readouts: Mapping[str, Mapping[str, Any]] = asked.described.get("readouts", {})
    return {name: statement(asked, name, readout) for name, readout in readouts.items()}


def statement(asked: Asked, name: str, readout: Mapping[str, Any]) -> str:
    """Return the line of one readout.

    Args:
        asked: what was asked.
        name: the readout.
        readout: its entry in the decision file's metadata.
    """
    if not readout.get("available", True):
        return f"Readout {visible(name)}: not available ({visible(str(readout.get('why_not')))})"
    parts = [
        f"Readout {visible(name)}: {read_words(readout)}",
        _rule(readout),
        f"model {model_words(asked)}",
        f"prompt {prompt_words(asked)}",
        f"precision {precision_words(asked)}",
        f"decoding {decoding_words(asked, readout)}",
        f"questions {release_words(asked)}",
        f"source {visible(asked.cell['source'])}",
    ]
    return "; ".join(part for part in parts if part) + "."


def _rule(readout: Mapping[str, Any]) -> str:
    """Return the rule of a readout where it is recorded."""
    return f"rule ({visible(str(readout['rule']))})" if readout.get("rule") else ""


def read_words(readout: Mapping[str, Any]) -> str:
    """Return what a readout takes for yes and for no: ids with their pieces, or words."""
    ids = readout.get("ids") or {}
    if ids.get("yes") or ids.get("no"):
        pieces = readout.get("pieces") or {}
        known = any(piece is not None for piece in pieces.values())
        sides = (f"{answer} = {ids_words(ids.get(answer) or [], pieces)}" for answer in ("yes", "no"))
        return " against ".join(sides) + ("" if known else f" (pieces in this vocabulary {NOT_RECORDED})")
    strings = readout.get("strings") or {}
    answers = sorted(strings, key=lambda answer: (answer != "yes", answer != "no"))
    found = [
        f"{visible(answer)} = {' | '.join(quoted(str(word)) for word in strings[answer])}"
        for answer in answers
        if strings[answer]
    ]
    if found:
        return " against ".join(found)
    return (
        f"token ids {NOT_RECORDED}"
        if readout.get("kind") == "logit"
        else f"the answer's text, words {NOT_RECORDED}"
    )


def ids_words(ids: list[int], pieces: Mapping[str, str | None]) -> str:
    """Return ids with their vocabulary pieces: `3582 "yes", 3869 "▁Yes"`."""
    named = ((token, pieces.get(str(token))) for token in ids)
    words = [f"{token} {quoted(piece)}" if piece is not None else str(token) for token, piece in named]
    return ", ".join(words) if words else "no id"


def model_words(asked: Asked) -> str:
    """Return the model, where its weights are from and at which revision."""
    facts = {**asked.settings, **asked.record}
    place = facts.get("repository") or facts.get("folder")
    name = visible(asked.cell["model"])
    if not place:
        return f"{name} (weights {NOT_RECORDED})"
    revision = facts.get("revision")
    at = f" at {visible(str(revision))}" if revision else ", revision not recorded"
    return f"{name} ({visible(str(place))}{at})"


def prompt_words(asked: Asked) -> str:
    """Return the template's name and its exact text."""
    name = visible(asked.cell["template"])
    template = asked.settings.get("template")
    if not isinstance(template, Mapping):
        return f"{name} (text {NOT_RECORDED})"
    suffix = template.get("suffix") or ""
    if template.get("chat"):
        return f"{name} (the model's chat template around {quoted('{question}' + suffix)})"
    text = str(template.get("text")).replace("{question}", "{question}" + suffix)
    return f"{name} {quoted(text)}"


def precision_words(asked: Asked) -> str:
    """Return how weights were stored and what was computed in."""
    precision = visible(asked.cell["precision"])
    compute = asked.settings.get("compute_dtype")
    return f"{precision} (computed in {visible(str(compute))})" if compute else precision


def decoding_words(asked: Asked, readout: Mapping[str, Any]) -> str:
    """Return how the answer was decoded, as far as this readout looks at it."""
    if asked.cell["source"] not in DECODED_HERE:
        return NOT_RECORDED
    if readout.get("kind") == "logit":
        return "none: raw logits of the first answer position, no sampling"
    most = asked.settings.get("max_new_tokens")
    return f"greedy, {f'at most {most} new tokens' if most else 'length not recorded'}"


def release_words(asked: Asked) -> str:
    """Return the release and n by split."""
    splits = " + ".join(f"{visible(split)} {count:,}" for split, count in asked.counts.items())
    return f"{visible(asked.cell['dataset'])} ({splits}), n = {sum(asked.counts.values()):,}"
