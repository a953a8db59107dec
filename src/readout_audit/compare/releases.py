"""What a second release of the same questions changes: spelling, decisions, scores.

Releases of POPE ask about the same pictures and objects in other words: 57 adversarial questions of October 2023
end in "imange", and the release of November asks them again, spelt right. Rows are joined by uid where the text is
the same, else by picture and object (`compare.pairing`), never by question id.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from readout_audit.compare.answers import Answers
from readout_audit.compare.flips import common_readouts, count_flips, list_flips
from readout_audit.compare.pairing import REWORDED, SAME, Paired, pair_split
from readout_audit.scores.confusion import Confusion, count

MISSPELT = "imange"

COUNTS = ("tp", "fp", "tn", "fn")
WIDE = ("unparsed_pos", "unparsed_neg", "invalid_pos", "invalid_neg")
_MATRIX = (*COUNTS, *WIDE)

_ABOUT = [
    pa.field(name, pa.string(), nullable=False)
    for name in ("model", "precision", "template", "source", "release_a", "release_b", "split", "readout")
]
_NUMBER = pa.int64()

RELEASES = pa.schema(
    [
        *_ABOUT,
        pa.field("n_a", _NUMBER, nullable=False),  # rows of the split
        pa.field("n_b", _NUMBER, nullable=False),
        pa.field("same", _NUMBER, nullable=False),  # rows of both that ask in the same words
        pa.field("reworded", _NUMBER, nullable=False),  # about the same picture and object in other words
        pa.field("misspelt_a", _NUMBER, nullable=False),  # of the reworded, "imange"
        pa.field("misspelt_b", _NUMBER, nullable=False),
        pa.field("only_a", _NUMBER, nullable=False),
        pa.field("only_b", _NUMBER, nullable=False),
        pa.field("labels_differ", _NUMBER, nullable=False),
        pa.field("same_changed", _NUMBER, nullable=False),  # answered otherwise
        pa.field("reworded_changed", _NUMBER, nullable=False),
        pa.field("reworded_yes_to_no", _NUMBER, nullable=False),
        pa.field("reworded_no_to_yes", _NUMBER, nullable=False),
        pa.field("reworded_near", _NUMBER),  # of the changed, nearly tied in both; null without margins
        *[pa.field(f"{name}_{side}", _NUMBER, nullable=False) for side in "ab" for name in _MATRIX],
        *[pa.field(f"reworded_{name}_{side}", _NUMBER, nullable=False) for side in "ab" for name in _MATRIX],
    ]
)
"""One row per pair of releases, cell, split and readout; a is the release that the run names first."""

CHANGED = pa.schema(
    [
        *_ABOUT,
        pa.field("group", pa.string(), nullable=False),  # same | other_prompt | reworded
        pa.field("image", pa.string()),
        pa.field("object", pa.string()),
        pa.field("question_a", pa.string()),
        pa.field("question_b", pa.string()),
        pa.field("question_id_a", pa.string(), nullable=False),
        pa.field("question_id_b", pa.string(), nullable=False),
        pa.field("label_a", pa.string(), nullable=False),
        pa.field("label_b", pa.string(), nullable=False),
        pa.field("answer_a", pa.string(), nullable=False),
        pa.field("answer_b", pa.string(), nullable=False),
        pa.field("margin_a", pa.float64()),
        pa.field("margin_b", pa.float64()),
        pa.field("near_tie", pa.bool_()),
    ]
)
"""One row per question whose answer changes with the release."""

Row = dict[str, Any]
Rows = npt.NDArray[np.int64]


def compare_releases(first: Answers, second: Answers) -> tuple[list[Row], list[Row]]:
    """Return rows of `RELEASES` and of `CHANGED` for two cells that differ in their release alone."""
    about = {name: first.decisions.cell[name] for name in ("model", "precision", "template", "source")}
    about |= {"release_a": first.decisions.cell["dataset"], "release_b": second.decisions.cell["dataset"]}
    counted: list[Row] = []
    changed: list[Row] = []
    for split in first.decisions.splits:
        if split not in second.decisions.splits:
            continue
        paired = pair_split(first, second, split)
        for readout in common_readouts(first, second, split):
            leading = about | {"split": split, "readout": readout}
            counted.append(leading | _counts(first, second, paired, readout))
            changed += [leading | row for row in _changed(first, second, paired, readout)]
    return counted, changed


def _counts(first: Answers, second: Answers, paired: Paired, readout: str) -> Row:
    """Return the counts of one split under one readout."""
    same, reworded = (count_flips(first, second, paired, readout, group) for group in (SAME, REWORDED))
    other = paired.group == REWORDED
    at = (paired.first[other], paired.second[other])
    labels = (one.decisions.labels[rows] for one, rows in zip((first, second), _all(paired), strict=True))
    labels_a, labels_b = labels
    row: Row = {
        "same": same.shared,
        "reworded": reworded.shared,
        "misspelt_a": _misspelt(first, at[0]),
        "misspelt_b": _misspelt(second, at[1]),
        "only_a": paired.only_a,
        "only_b": paired.only_b,
        "labels_differ": int((labels_a != labels_b).sum()),
        "same_changed": same.differing,
        "reworded_changed": reworded.differing,
        "reworded_yes_to_no": reworded.yes_to_no,
        "reworded_no_to_yes": reworded.no_to_yes,
        "reworded_near": reworded.near,
    }
    for side, one, rows in zip("ab", (first, second), at, strict=True):
        everywhere = np.flatnonzero(one.decisions.in_split(paired.split))
        row[f"n_{side}"] = len(everywhere)
        row |= _matrix(one, everywhere, readout, "", side) | _matrix(one, rows, readout, "reworded_", side)
    return row


def _all(paired: Paired) -> tuple[Rows, Rows]:
    """Return the places of all paired rows in both."""
    return paired.first, paired.second


def _matrix(answers: Answers, rows: Rows, readout: str, prefix: str, side: str) -> Row:
    """Return the counts of some rows under one readout as columns."""
    matrix = count(answers.decisions.labels[rows], answers.decisions.answers[readout][rows])
    return {f"{prefix}{name}_{side}": value for name, value in matrix._asdict().items()}


def _misspelt(answers: Answers, rows: Rows) -> int:
    """Count the rows whose question is misspelt."""
    questions = answers.decisions.identity["question"].take(pa.array(rows))
    return int(pc.sum(pc.match_substring(questions, MISSPELT)).as_py() or 0)


def _changed(first: Answers, second: Answers, paired: Paired, readout: str) -> Iterator[Row]:
    """Yield the questions that one readout answers otherwise in the second release."""
    for flip in list_flips(first, second, paired, readout):
        yield {name: value for name, value in flip._asdict().items() if name != "uid"}


def confusion(row: Row, side: str, prefix: str = "") -> Confusion:
    """Return the matrix of one side of a row of `RELEASES`; `prefix` "reworded_" for the reworded rows alone."""
    return Confusion(**{name: int(row[f"{prefix}{name}_{side}"]) for name in Confusion._fields})
