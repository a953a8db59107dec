"""Whether splits answer the questions that they share alike."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from readout_audit.contracts import YES
from readout_audit.report.findings.base import Finding, Names, name_of
from readout_audit.report.grid import Column, Grid, grid, numbers, texts
from readout_audit.report.inputs import CellKey, RunData
from readout_audit.report.text import listed, minus, of, percent, plural
from readout_audit.scores.self_agreement import DIFFERENT, WORDINGS

MOST_EXAMPLES = 20

MOST_NAMED = 4
"""More readouts than this are counted, not named."""

Rows = Sequence[Mapping[str, Any]]


def self_agreement(data: RunData, names: Names) -> list[Finding]:
    """Return, by cell, how often two splits answer a shared question differently, with examples."""
    examples = {about.cell: about.rows for about in data.disagreements}
    findings = []
    for about in data.agreement:
        verdicts = (
            *_pair_sentences(about.rows, examples.get(about.cell, [])),
            *_true_positives(about.rows, data.pair[0]),
            *_written_ids(data, about.cell),
        )
        differing = [row for row in about.rows if row["differing"]]
        tables = [_agreement_table(differing, len(about.rows) - len(differing))] if differing else []
        if examples.get(about.cell):
            tables.append(_example_table(examples[about.cell]))
        findings.append(Finding("", name_of(names, about.cell), verdicts, tuple(tables)))
    return findings


def _pair_sentences(rows: Rows, differing: Rows) -> list[str]:
    """Say for every two splits that share questions of the same text how many they answer differently.

    Args:
        rows: counts by splits, readout, label and wording.
        differing: every question that was answered differently.
    """
    same = [row for row in rows if row["wording"] != DIFFERENT]
    said = []
    for first, second in _pairs(same):
        here = [row for row in same if (row["first"], row["second"]) == (first, second)]
        by_readout: dict[str, list[int]] = {}
        for row in here:
            total = by_readout.setdefault(row["readout"], [0, 0])
            total[0] += row["shared"]
            total[1] += row["differing"]
        shared = max(asked for asked, _ in by_readout.values())
        counts = {readout: n for readout, (_, n) in by_readout.items() if n}
        questions = {
            (row["image"], row["question_first"])
            for row in differing
            if (row["first"], row["second"]) == (first, second) and row["wording"] != DIFFERENT
        }
        if shared:
            said.append(_pair_sentence(first, second, shared, counts, list(by_readout), len(questions)))
    return said


def _pair_sentence(
    first: str, second: str, shared: int, counts: Mapping[str, int], readouts: Sequence[str], questions: int
) -> str:
    """Say how two splits answer `shared` questions of the same text.

    Args:
        first: one split.
        second: the other.
        shared: questions in both.
        counts: readout -> how many are answered differently, those with none left out.
        readouts: all of them.
        questions: how many are answered differently under any readout; 0 where they are not listed.
    """
    both = f"{first} and {second} share {plural(shared, 'question')} of the same text"
    if not counts:
        return f"{both} and answer every one alike under {_named(readouts)}: what one deterministic setup would give."
    found = listed(
        [f"{n:,} ({percent(Fraction(n, shared))}) under {readout}" for readout, n in counts.items()]
    )
    together = f", {questions:,} under at least one" if len(counts) > 1 and questions else ""
    alike = [readout for readout in readouts if readout not in counts]
    none = f" Under {_named(alike)} none is." if alike else ""
    return (
        f"{both}. Answered differently: {found}{together}. One deterministic setup cannot have given both "
        f"answers.{none}"
    )


def _named(readouts: Sequence[str]) -> str:
    """Return a few readouts by name, many by their number."""
    return listed(readouts) if len(readouts) <= MOST_NAMED else f"{len(readouts)} readouts"


def _pairs(rows: Rows) -> list[tuple[str, str]]:
    """Return every two splits that rows are about."""
    return list(dict.fromkeys((row["first"], row["second"]) for row in rows))


def _true_positives(rows: Rows, readout: str) -> list[str]:
    """Say what differing answers to shared label-yes questions do to the count of true positives."""
    said = []
    shared = [row for row in rows if (row["readout"], row["label"]) == (readout, YES) and row["shared"]]
    for first, second in _pairs(shared):
        here = [row for row in shared if (row["first"], row["second"]) == (first, second)]
        asked, differing, to_no, to_yes = (
            sum(row[name] for row in here) for name in ("shared", "differing", "yes_to_no", "no_to_yes")
        )
        if differing:
            said.append(
                f"Of the {asked:,} questions labelled yes that {first} and {second} share, however they are spelt, "
                f"{readout} answers {differing:,} differently: {to_yes:,} are yes in {second} alone, {to_no:,} in "
                f"{first} alone, a difference of {abs(to_yes - to_no):,} true positives.{_by_wording(here, first)}"
            )
    return said


def _by_wording(rows: Rows, split: str) -> str:
    """Say how much of a difference is due to questions of the same text; nothing where all or none are."""
    groups = {
        "of the same text": [row for row in rows if row["wording"] != DIFFERENT],
        "of another text, such as a misspelt one": [row for row in rows if row["wording"] == DIFFERENT],
    }
    if not all(groups.values()):
        return ""
    parts = []
    for words, group in groups.items():
        asked, differing, lost, gained = (
            sum(row[name] for row in group) for name in ("shared", "differing", "no_to_yes", "yes_to_no")
        )
        parts.append(f"{of(differing, asked)} {words} ({minus(f'{gained - lost:+,}')} in {split})")
    return f" Taken apart: {listed(parts)}."


def _written_ids(data: RunData, cell: CellKey) -> list[str]:
    """Say where the files of a source write question ids in different ways, which one program would not."""
    decisions = data.decisions.get(cell)
    forms: Mapping[str, Sequence[str]] = decisions.metadata.get("question_ids", {}) if decisions else {}
    by_form: dict[str, list[str]] = {}
    for split, found in forms.items():
        by_form.setdefault(" and ".join(found), []).append(split)
    if len(by_form) < 2:
        return []
    said = listed([f"{listed(splits)} as {form}" for form, splits in by_form.items()])
    return [
        f"The source's files write question ids of {said}: a sign, besides the answers, that not all of them were written by "
        "one program."
    ]


def _agreement_table(rows: Rows, alike: int) -> Grid:
    """Return the counts of shared and differently answered questions.

    Args:
        rows: those with a question that was answered differently.
        alike: how many rows have none; they are counted, not shown.
    """
    columns = (
        *texts("splits", "readout", "label"),
        Column("wording", "long"),
        *numbers("shared", "answered differently"),
        *numbers("yes → no", "no → yes", group="first → second"),
    )
    cells = [
        [
            *(f"{row['first']}, {row['second']}", row["readout"], row["label"], WORDINGS[row["wording"]]),
            f"{row['shared']:,}",
            f"{row['differing']:,} ({percent(Fraction(row['differing'], row['shared']))})",
            *(f"{row[name]:,}" for name in ("yes_to_no", "no_to_yes")),
        ]
        for row in rows
    ]
    left_out = f"{plural(alike, 'more row')} without such a question left out. " if alike else ""
    notes = (
        f"{left_out}Identical questions answered differently show that the splits were not asked by one deterministic setup; "
        "they do not show why. Where the wording differs, different answers are no contradiction.",
    )
    return grid(columns, cells, "Shared questions that two splits answer differently", notes)


def _example_table(rows: Rows) -> Grid:
    """Return the first questions of the same text that were answered differently."""
    same = [row for row in rows if row["wording"] != DIFFERENT]
    columns = (
        *texts("splits", "readout", "label", "picture"),
        Column("question", "long"),
        *texts("first", "second"),
    )
    cells = [
        [
            f"{row['first']}, {row['second']}",
            *(row[name] for name in ("readout", "label", "image", "question_first")),
            *(row[name] for name in ("answer_first", "answer_second")),
        ]
        for row in same[:MOST_EXAMPLES]
    ]
    return grid(columns, cells, f"The first {len(cells):,} of {len(same):,} such answers")
