"""Does a run answer the same question alike wherever it is asked?

The splits of POPE share their positives word for word, so a deterministic run must answer these questions
alike in each. Where it does not, the splits were not asked by the same setup, whatever else was held fixed.
This can show that a run was not one deterministic run; it cannot show that it was. It says nothing about why.

Questions are matched by (image, object), and by (image, text) where no object can be told. Where the wording differs,
as between releases and where one of them is misspelt, different answers are no contradiction; these stand apart.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from readout_audit.contracts import DECISIONS, LABELS
from readout_audit.datasets.objects import is_misspelt
from readout_audit.errors import AuditError
from readout_audit.scores.confusion import NO, YES
from readout_audit.scores.decisions import Decisions

SAME, SAME_MISSPELT, DIFFERENT = "same", "same_misspelt", "different"
WORDINGS = {
    SAME: "the same text, correctly spelt",
    SAME_MISSPELT: "the same text, misspelt",
    DIFFERENT: "another text about the same object, such as a misspelt one",
}

AGREEMENT = pa.schema(
    [
        pa.field("first", pa.string(), nullable=False),  # split
        pa.field("second", pa.string(), nullable=False),  # split
        pa.field("readout", pa.string(), nullable=False),
        pa.field("label", pa.string(), nullable=False),
        pa.field("wording", pa.string(), nullable=False),  # a key of WORDINGS
        pa.field("shared", pa.int64(), nullable=False),  # questions in both
        pa.field("differing", pa.int64(), nullable=False),  # answered differently
        pa.field("yes_to_no", pa.int64(), nullable=False),  # yes in the first, no in the second
        pa.field("no_to_yes", pa.int64(), nullable=False),
    ]
)
"""Counts by pair of splits, readout, label and wording; all combinations are there, zeros included."""

DISAGREEMENTS = pa.schema(
    [
        pa.field(name, pa.string(), nullable=name == "object")
        for name in (
            *("first", "second", "readout", "label", "wording", "image", "object"),
            *("question_id_first", "question_id_second", "question_first", "question_second"),
            *("answer_first", "answer_second"),
        )
    ]
)
"""One row per question that two splits answer differently under a readout."""


class Side(NamedTuple):
    """One of two sets of rows to compare; the other may stand in the same file or in another."""

    name: str
    decisions: Decisions
    rows: npt.NDArray[np.int64]


class Match(NamedTuple):
    """A question that both sides ask: its row in each file, and how the texts compare."""

    first: int
    second: int
    wording: str


def splits_as_sides(decisions: Decisions) -> list[tuple[Side, Side]]:
    """Return every pair of splits of one file.

    Raises:
        AuditError: the source does not know which question a row is.
    """
    for name in ("image", "question"):
        if decisions.identity[name].null_count:
            raise AuditError(
                f"{'/'.join(decisions.cell.values())}: {name} is not known for every row, so questions "
                "cannot be matched between splits; take a source with per-question rows."
            )
    sides = [Side(split, decisions, np.flatnonzero(decisions.in_split(split))) for split in decisions.splits]
    return list(combinations(sides, 2))


def match(first: Side, second: Side) -> list[Match]:
    """Return the questions that both sides ask, in the first side's order.

    What one side asks about twice is left out: it has no single answer to compare.
    """
    here, there = _asked(first), _asked(second)
    matches = []
    for key, (row, question) in here.items():
        if key in there:
            other, other_question = there[key]
            wording = (
                DIFFERENT if question != other_question else SAME_MISSPELT if is_misspelt(question) else SAME
            )
            matches.append(Match(row, other, wording))
    return matches


def _asked(side: Side) -> dict[tuple[str, str], tuple[int, str]]:
    """Return (image, object or else text) -> (row, question) of what a side asks about once."""
    identity = side.decisions.identity.take(side.rows)
    images, objects, questions = (identity[name].to_pylist() for name in ("image", "object", "question"))
    keys = [
        (image, question if thing is None else thing)
        for image, thing, question in zip(images, objects, questions, strict=True)
    ]
    times = Counter(keys)
    rows = zip(keys, side.rows.tolist(), questions, strict=True)
    return {key: (row, question) for key, row, question in rows if times[key] == 1}


def compare(first: Side, second: Side) -> tuple[pa.Table, pa.Table]:
    """Return the counts and the list of questions that two sides answer differently.

    Only readouts that both sides have are compared; the label is the first side's.

    Returns:
        tables under `AGREEMENT` and `DISAGREEMENTS`.
    """
    matches = match(first, second)
    a = np.array([one.first for one in matches], dtype=np.int64)
    b = np.array([one.second for one in matches], dtype=np.int64)
    wording = np.array([one.wording for one in matches], dtype=object)
    label = first.decisions.labels[a]
    counts, listed = [], []
    for readout in first.decisions.answers:
        if not _have(first, readout) or not _have(second, readout):
            continue
        before, after = first.decisions.answers[readout][a], second.decisions.answers[readout][b]
        for code, name in enumerate(LABELS):
            for words in WORDINGS:
                group = (label == code) & (wording == words)
                counts.append(
                    {
                        "first": first.name,
                        "second": second.name,
                        "readout": readout,
                        "label": name,
                        "wording": words,
                        "shared": int(group.sum()),
                        "differing": int((group & (before != after)).sum()),
                        "yes_to_no": int((group & (before == YES) & (after == NO)).sum()),
                        "no_to_yes": int((group & (before == NO) & (after == YES)).sum()),
                    }
                )
        differing = np.flatnonzero(before != after)
        listed.append(_list(first, second, readout, [matches[i] for i in differing]))
    return (
        pa.Table.from_pylist(counts, schema=AGREEMENT),
        pa.concat_tables([DISAGREEMENTS.empty_table(), *listed]),
    )


def _have(side: Side, readout: str) -> bool:
    """Tell whether a side has a readout on all its rows."""
    answers = side.decisions.answers.get(readout)
    return answers is not None and bool((answers[side.rows] >= 0).all())


def _list(first: Side, second: Side, readout: str, matches: Sequence[Match]) -> pa.Table:
    """Return the named rows under `DISAGREEMENTS`."""
    rows = []
    columns = ("question_id", "question", "image", "object", "label")
    here, there = (
        side.decisions.identity.select(columns).take(pa.array(at, pa.int64())).to_pylist()
        for side, at in ((first, [one.first for one in matches]), (second, [one.second for one in matches]))
    )
    for one, before, after in zip(matches, here, there, strict=True):
        rows.append(
            {
                "first": first.name,
                "second": second.name,
                "readout": readout,
                "label": before["label"],
                "wording": one.wording,
                "image": before["image"],
                "object": before["object"],
                "question_id_first": before["question_id"],
                "question_id_second": after["question_id"],
                "question_first": before["question"],
                "question_second": after["question"],
                "answer_first": DECISIONS[first.decisions.answers[readout][one.first]],
                "answer_second": DECISIONS[second.decisions.answers[readout][one.second]],
            }
        )
    return pa.Table.from_pylist(rows, schema=DISAGREEMENTS)


def verdict(agreement: pa.Table) -> list[str]:
    """Return one sentence per pair of splits and readout, on the questions of the same text.

    Args:
        agreement: under `AGREEMENT`.
    """
    same = [row for row in agreement.to_pylist() if row["wording"] != DIFFERENT]
    totals: dict[tuple[str, str, str], list[int]] = {}
    for row in same:
        total = totals.setdefault((row["first"], row["second"], row["readout"]), [0, 0])
        total[0] += row["shared"]
        total[1] += row["differing"]
    sentences = []
    for (first, second, readout), (shared, differing) in totals.items():
        if differing:
            meaning = "one deterministic setup cannot have given both"
        elif shared:
            meaning = "what one deterministic setup would give"
        else:
            meaning = "nothing to compare"
        sentences.append(
            f"{first} and {second}, {readout}: {differing:,} of {shared:,} questions of the same text are "
            f"answered differently; {meaning}."
        )
    return sentences
