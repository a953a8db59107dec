"""Every kind of finding in the order of the page: its question, who finds it, and what a run needs to have it."""

from collections.abc import Callable
from typing import NamedTuple

from readout_audit.report import releases, unanswered
from readout_audit.report.coverage import missed, missed_sentence, missed_table, on_purpose
from readout_audit.report.findings.base import Finding, Names, name_of
from readout_audit.report.findings.certainty import certainty
from readout_audit.report.findings.corrected_labels import corrected_labels
from readout_audit.report.findings.flip_carriers import flip_carriers
from readout_audit.report.findings.gap_parts import gap_parts
from readout_audit.report.findings.self_agreement import self_agreement
from readout_audit.report.findings.unclear import unclear
from readout_audit.report.inputs import RunData, short_names
from readout_audit.report.scripts import scripts_table


class Topic(NamedTuple):
    """All findings of one kind; none where the run has no file for it, and then `absent` says what it takes."""

    title: str
    question: str
    findings: tuple[Finding, ...]
    absent: str = ""


def topics(data: RunData) -> list[Topic]:
    """Return every kind of finding, those without an input as empty topics."""
    names = short_names(data.cells)
    return [Topic(kind.title, kind.question, tuple(kind.find(data, names)), kind.absent) for kind in KINDS]


def other_release(data: RunData, names: Names) -> list[Finding]:
    """Return, by cell and pair of releases, what the second one changes."""
    findings = []
    for pair, rows in releases.pairs(data.releases).items():
        listed_rows = releases.examples(data.release_changes, pair, data.pair)
        tables = (releases.counts(rows), *([listed_rows] if listed_rows is not None else []))
        findings.append(Finding("", releases.name(pair), releases.sentences(rows, data.pair), tables))
    return findings


def scripts(data: RunData, names: Names) -> list[Finding]:
    """Return, by cell, the own figures of every script whose rule the run applied."""
    tables = {cell: scripts_table(data, cell) for cell in data.cells}
    return [
        Finding("", name_of(names, cell), (), (table,)) for cell, table in tables.items() if table is not None
    ]


def excluded(data: RunData, names: Names) -> list[Finding]:
    """Return, by cell, the readouts of logits whose sets lack an emitted yes or no."""
    findings = []
    for cell in data.cells:
        found = missed(data, cell)
        if found is not None:
            said = missed_sentence(found, expected=on_purpose(data, cell))
            tables = (missed_table(found),) if found else ()
            findings.append(Finding("", name_of(names, cell), (said,), tables))
    return findings


class Kind(NamedTuple):
    """One kind of finding; `absent` says what a run needs to have it."""

    title: str
    question: str
    find: Callable[[RunData, Names], list[Finding]]
    absent: str


KINDS = (
    Kind(
        "What the gap is made of",
        "Which answers does the second readout read otherwise?",
        gap_parts,
        "It takes answers that both readouts of gap_pair have read.",
    ),
    Kind(
        "How sure is the gap?",
        "What do intervals and tests say that take pictures, not questions, for independent?",
        certainty,
        "It takes answers, question by question, of both readouts of gap_pair.",
    ),
    Kind(
        "Corrected labels",
        "Does the gap stay when wrong labels are corrected?",
        corrected_labels,
        "It takes a second label set: name one under labels in the run file (docs/data.md).",
    ),
    Kind(
        "What carries the flips",
        "Are they spread out, or do a few objects carry them?",
        flip_carriers,
        "It takes answers, question by question, of both readouts of gap_pair.",
    ),
    Kind(
        "Do the splits agree with themselves?",
        "The splits share questions; does the run answer a shared question alike in each?",
        self_agreement,
        "It takes two splits that share questions.",
    ),
    Kind(
        "Another release of the same questions",
        "What do other spellings change: which answers, and how much of the score?",
        other_release,
        "It takes a second release of the same questions: name both under datasets in the run file (docs/data.md).",
    ),
    Kind(
        unanswered.SECTION,
        "How many were ties, unparsed, invalid or decided by a quirk?",
        unclear,
        "It takes scores.",
    ),
    Kind(
        "What scoring scripts would print",
        "What does each script in use report of these answers, by its own arithmetic?",
        scripts,
        "It takes the readout of a scoring script, such as pope_official or lmms_eval, among readouts in the run file.",
    ),
    Kind(
        "Emitted tokens that a readout misses",
        "Does each readout compare the tokens that the decoder selected?",
        excluded,
        "It takes logits and first tokens, which the source of these answers does not hold.",
    ),
)
