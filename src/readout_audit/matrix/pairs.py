"""How two readouts of the same answers differ: every pair, on every split, counted row by row."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from readout_audit.matrix.resampled import Counted, resampled_f1
from readout_audit.matrix.schema import READOUT_PAIRS
from readout_audit.scores.bootstrap import LEVEL, Images, number_images, percentile_intervals
from readout_audit.scores.confusion import ABSENT, NO, YES, Codes, count
from readout_audit.scores.decisions import Decisions
from readout_audit.scores.labels import LabelSet


class PairCounts(NamedTuple):
    """The counted columns of `READOUT_PAIRS`."""

    n: int
    disagree: int
    disagree_pos: int
    disagree_neg: int
    yes_no: int
    no_yes: int
    other: int
    only_first_right: int
    only_second_right: int


def count_pair(labels: Codes, first: Codes, second: Codes) -> PairCounts:
    """Count where two readouts differ.

    Args:
        labels: shape (n,), `YES` or `NO`.
        first: shape (n,), decisions of one readout, no `ABSENT`.
        second: shape (n,), decisions of the other.
    """
    differ = first != second
    yes_no, no_yes = (first == YES) & (second == NO), (first == NO) & (second == YES)
    return PairCounts(
        n=len(labels),
        disagree=int(differ.sum()),
        disagree_pos=int((differ & (labels == YES)).sum()),
        disagree_neg=int((differ & (labels == NO)).sum()),
        yes_no=int(yes_no.sum()),
        no_yes=int(no_yes.sum()),
        other=int((differ & ~yes_no & ~no_yes).sum()),
        only_first_right=int((differ & (first == labels)).sum()),
        only_second_right=int((differ & (second == labels)).sum()),
    )


def pair_table(
    decisions: Decisions, label_sets: Sequence[LabelSet], resamples: int, seed: int
) -> tuple[pa.Table, dict[str, Any]]:
    """Return every pair under `READOUT_PAIRS`, and what the metadata says.

    Args:
        decisions: the rows.
        label_sets: as `labels.label_sets` returns them.
        resamples: bootstrap samples over images; 0 leaves the intervals empty.
        seed: of that draw, the scores'.
    """
    notes: dict[str, Any] = {
        "schema": 1,
        "cell": decisions.cell,
        "joint": decisions.joint,
        "labels": {label_set.name: label_set.describe() for label_set in label_sets},
        "not_available": decisions.unavailable,
        "bootstrap": {"interval": f"percentile, {LEVEL:.0%}", "unit": "image", "resamples": 0},
    }
    images = number_images(decisions.identity["image"]) if resamples else None
    if resamples and images is None:
        notes["bootstrap"]["why_not"] = "the source does not know which image a row is about"
    elif images is not None:
        notes["bootstrap"] |= {"resamples": resamples, "seed": seed, "images": images.n}
    rows: list[dict[str, Any]] = []
    if decisions.joint:
        for label_set in label_sets:
            for split in decisions.splits:
                rows += _split_rows(decisions, label_set, split, images, (resamples, seed))
    return pa.Table.from_pylist(rows, schema=READOUT_PAIRS), notes


def _split_rows(
    decisions: Decisions, label_set: LabelSet, split: str, images: Images | None, draw: tuple[int, int]
) -> list[dict[str, Any]]:
    """Return the pairs of one split under one label set."""
    rows = np.flatnonzero(decisions.in_split(split) & (label_set.codes != ABSENT))
    labels = label_set.codes[rows]
    answers = {name: codes[rows] for name, codes in decisions.answers.items() if decisions.has(name, split)}
    pairs = list(combinations(answers, 2))
    intervals = _intervals(pairs, answers, (labels, rows), images, draw)
    found = []
    for (first, second), ends in zip(pairs, intervals, strict=True):
        f1s = [count(labels, answers[name]).f1 for name in (first, second)]
        delta = None if f1s[0] is None or f1s[1] is None else float(f1s[0] - f1s[1])
        found.append(
            {
                **decisions.cell,
                "labels": label_set.name,
                "split": split,
                "first": first,
                "second": second,
                **count_pair(labels, answers[first], answers[second])._asdict(),
                "delta_f1": delta,
                "delta_f1_low": ends[0],
                "delta_f1_high": ends[1],
            }
        )
    return found


def _intervals(
    pairs: Sequence[tuple[str, str]],
    answers: dict[str, Codes],
    labelled: tuple[Codes, npt.NDArray[np.int64]],
    images: Images | None,
    draw: tuple[int, int],
) -> list[tuple[float | None, float | None]]:
    """Return both ends of each pair's difference of F1; empty without known images."""
    labels, rows = labelled
    if images is None or not pairs:
        return [(None, None)] * len(pairs)
    f1 = resampled_f1([Counted(images, rows, labels, one) for one in answers.values()], *draw)
    place = {name: index for index, name in enumerate(answers)}
    deltas = np.stack([f1[:, place[first]] - f1[:, place[second]] for first, second in pairs], axis=1)
    return [(interval.low, interval.high) for interval in percentile_intervals(deltas)]
