"""The README of a bundle: what is in it, what every column means, and the line to print beside a score."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from readout_audit import __version__
from readout_audit.report.statement import Asked
from readout_audit.tables.render import markdown_text

IDENTITY = {
    "uid": "hash of picture collection, picture and exact question text; the same question has the same uid "
    "wherever it is asked; empty where the source does not know the question",
    "dataset": "question release",
    "split": "split of the release",
    "question_id": "as released; means other questions in other releases",
    "image": "file name of the picture",
    "object": "noun that the question asks about",
    "question": "the question as asked, without the prompt around it",
    "label": "yes or no, as released",
    "first_token_id": "id of the first token the model generated; empty where not known",
    "first_token_piece": "its piece in the model's vocabulary (▁ and Ġ stand for a leading space); CSV alone",
    "order_known": "whether the rows are in the order in which they were asked",
}
"""Columns before the readouts."""

READOUT = {
    "READOUT": "yes, no, unparsed (an answer that is neither) or invalid (nothing that can be read); empty where "
    "the source cannot say",
    "READOUT.margin": "largest yes logit minus largest no logit, raw, first answer position; empty for text readouts",
    "READOUT.tie": "whether these two are equal; a tie is a no",
}
"""Columns of each readout."""

FILES = {
    "decisions/": "one row per question and one group of columns per readout, as Parquet and as CSV",
    "settings/": "how each cell was asked, and which token ids or words each readout reads",
    "scores.csv": "counts, rates and intervals, as docs/scores.md of readout-audit defines them",
    "statement.txt": "the line to print beside each score",
    "SHA256SUMS": "checksums of everything else, for sha256sum --check SHA256SUMS",
}
OPTIONAL = {
    "records": "raw first-position logits, continuation and exact prompt of every distinct question",
    "signals": "what an instrumented second pass measured of every distinct question, for corrections and the probe",
    "questions": "the questions with their labels",
    "tokens": "token maps: which ids of each vocabulary say yes and no, by every rule",
}


class Contents(NamedTuple):
    """What a bundle holds.

    Attributes:
        run: the run's name.
        asked: what was asked, by cell.
        statements: the statements, by cell.
        also: which of `OPTIONAL` are in it.
    """

    run: str
    asked: Mapping[str, Asked]
    statements: Mapping[str, Sequence[str]]
    also: Sequence[str]


def readme(contents: Contents) -> str:
    """Return the README as Markdown; names from the run are data in it, never markup."""
    files = FILES | {f"{name}/": OPTIONAL[name] for name in contents.also}
    parts = [
        f"# Decisions of run {markdown_text(contents.run)}, question by question",
        f"Made by readout-audit {__version__}. Each folder's files lie under dataset/model/precision/template.",
        _table(("file", "holds"), files),
        "## Columns of decisions/",
        _table(("column", "meaning"), IDENTITY | READOUT),
        "READOUT stands for the name of a readout. Unparsed counts as wrong and is never a yes; invalid rows enter no rate.",
        "## What was asked",
        *(_cell(cell, asked) for cell, asked in sorted(contents.asked.items())),
        "## The line to print beside a score",
        *(_statements(cell, lines) for cell, lines in sorted(contents.statements.items())),
    ]
    if "records" in contents.also:
        parts += [
            "## Reading the records again",
            "Unpack this bundle and run readout-audit with `records_from: files` and `records_folder:` set to this "
            "folder: every readout, score and table is made anew from the records, without a model.",
        ]
    return "\n\n".join(parts) + "\n"


def _table(heading: tuple[str, str], rows: Mapping[str, str]) -> str:
    """Return a table of names and meanings; the names are our own."""
    lines = [f"| {heading[0]} | {heading[1]} |", "| --- | --- |"]
    lines += [f"| `{name}` | {markdown_text(meaning)} |" for name, meaning in rows.items()]
    return "\n".join(lines)


def _cell(cell: str, asked: Asked) -> str:
    """Say in one line what a cell is."""
    counts = ", ".join(f"{split} {count:,}" for split, count in asked.counts.items())
    missing = [
        name
        for name, readout in asked.described.get("readouts", {}).items()
        if not readout.get("available", True)
    ]
    without = f"; not available: {', '.join(missing)}" if missing else ""
    return markdown_text(f"{cell}: {counts} questions; source {asked.cell['source']}{without}.")


def _statements(cell: str, lines: Sequence[str]) -> str:
    """Return the statements of a cell as an indented block, which nothing in a line can end."""
    return "\n".join([f"{markdown_text(cell)}:", "", *(f"    {line}" for line in lines)])
