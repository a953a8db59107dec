"""What changed between two runs: flips with their margins, near-ties, and scores side by side."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readout_audit.claims.noise import near_tie_limit
from readout_audit.compare.answers import Answers
from readout_audit.compare.pairing import SAME, Paired
from readout_audit.contracts import DECISIONS
from readout_audit.scores.confusion import NO, YES, Confusion, count


class Flips(NamedTuple):
    """How one readout's answers differ on one group of rows of one split.

    Attributes:
        shared: rows that both runs answered under this readout.
        differing: rows with another answer.
        yes_to_no, no_to_yes: among them; the rest involve unparsed or invalid answers.
        near: differing rows whose margins lie within the near-tie limit in both runs; None without margins.
        limit: that limit, in logits.
        moved: rows whose margin is not bit for bit the same; None without margins.
        median_shift, largest_shift: of |margin in B - margin in A|; None without margins.
    """

    split: str
    readout: str
    group: str
    shared: int
    differing: int
    yes_to_no: int
    no_to_yes: int
    near: int | None
    limit: float | None
    moved: int | None
    median_shift: float | None
    largest_shift: float | None


class Sides(NamedTuple):
    """One readout's scores on one split in both runs: on all rows of each, and on the rows they share."""

    split: str
    readout: str
    all_a: Confusion
    all_b: Confusion
    shared_a: Confusion
    shared_b: Confusion


class Flip(NamedTuple):
    """One question answered differently."""

    group: str
    split: str
    readout: str
    uid: str
    image: str | None
    object: str | None
    question_a: str | None
    question_b: str | None
    question_id_a: str
    question_id_b: str
    label_a: str
    label_b: str
    answer_a: str
    answer_b: str
    margin_a: float | None
    margin_b: float | None
    near_tie: bool | None


def coarser_limit(first: Answers, second: Answers) -> float | None:
    """Return how large both margins may be for a flip to be a near-tie: two steps of the coarser arithmetic.

    None where a run does not record its arithmetic.
    """
    limits = [near_tie_limit(one.decisions.metadata) for one in (first, second)]
    return None if None in limits else max(limit for limit in limits if limit is not None)


def common_readouts(first: Answers, second: Answers, split: str) -> list[str]:
    """Return the readouts that both runs have on a split, in the first run's order."""
    return [
        name
        for name in first.decisions.answers
        if name in second.decisions.answers
        and first.decisions.has(name, split)
        and second.decisions.has(name, split)
    ]


def count_flips(first: Answers, second: Answers, paired: Paired, readout: str, group: str) -> Flips:
    """Count how one readout's answers differ on one group of rows."""
    here = paired.group == group
    a, b = paired.first[here], paired.second[here]
    before, after = first.decisions.answers[readout][a], second.decisions.answers[readout][b]
    flipped = before != after
    limit = coarser_limit(first, second)
    margins = _both_margins(first, second, readout, a, b)
    near = shifts = None
    if margins is not None:
        near = int((flipped & _near(margins, limit)).sum()) if limit is not None else None
        known = ~np.isnan(margins).any(axis=0)
        shifts = np.abs(margins[1, known].astype(np.float64) - margins[0, known])
    return Flips(
        *(paired.split, readout, group, len(a), int(flipped.sum())),
        yes_to_no=int(((before == YES) & (after == NO)).sum()),
        no_to_yes=int(((before == NO) & (after == YES)).sum()),
        near=near,
        limit=limit,
        moved=int((shifts > 0).sum()) if shifts is not None else None,
        median_shift=float(np.median(shifts)) if shifts is not None and len(shifts) else None,
        largest_shift=float(shifts.max()) if shifts is not None and len(shifts) else None,
    )


def _both_margins(
    first: Answers, second: Answers, readout: str, a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]
) -> npt.NDArray[np.float32] | None:
    """Return shape (2, n), the margins of paired rows in both runs; None where a run has none."""
    if readout not in first.margins or readout not in second.margins:
        return None
    return np.stack([first.margins[readout][a], second.margins[readout][b]])


def _near(margins: npt.NDArray[np.float32], limit: float) -> npt.NDArray[np.bool_]:
    """Return which rows have both margins within the limit; NaN is not."""
    near: npt.NDArray[np.bool_] = np.all(np.abs(margins) <= limit, axis=0)
    return near


def side_by_side(first: Answers, second: Answers, paired: Paired, readout: str) -> Sides:
    """Count one readout's matrices in both runs, each against its own labels."""
    split, same = paired.split, paired.group == SAME

    def matrix(answers: Answers, rows: npt.NDArray[np.int64]) -> Confusion:
        return count(answers.decisions.labels[rows], answers.decisions.answers[readout][rows])

    everywhere = [np.flatnonzero(one.decisions.in_split(split)) for one in (first, second)]
    return Sides(
        split,
        readout,
        all_a=matrix(first, everywhere[0]),
        all_b=matrix(second, everywhere[1]),
        shared_a=matrix(first, paired.first[same]),
        shared_b=matrix(second, paired.second[same]),
    )


def list_flips(first: Answers, second: Answers, paired: Paired, readout: str) -> list[Flip]:
    """List the questions of a split that one readout answers differently, every group."""
    before = first.decisions.answers[readout][paired.first]
    after = second.decisions.answers[readout][paired.second]
    at = np.flatnonzero(before != after)
    a, b = paired.first[at], paired.second[at]
    limit, margins = coarser_limit(first, second), _both_margins(first, second, readout, a, b)
    near = None if limit is None or margins is None else _near(margins, limit).tolist()
    names = ("uid", "image", "object", "question", "question_id", "label")
    rows_a, rows_b = (
        one.decisions.identity.select(names).take(rows).to_pylist() for one, rows in ((first, a), (second, b))
    )
    return [
        Flip(
            group=str(paired.group[row]),
            split=paired.split,
            readout=readout,
            uid=one["uid"],
            image=one["image"],
            object=one["object"],
            question_a=one["question"],
            question_b=other["question"],
            question_id_a=one["question_id"],
            question_id_b=other["question_id"],
            label_a=one["label"],
            label_b=other["label"],
            answer_a=DECISIONS[before[row]],
            answer_b=DECISIONS[after[row]],
            margin_a=_margin(first, readout, int(a[i])),
            margin_b=_margin(second, readout, int(b[i])),
            near_tie=near[i] if near is not None else None,
        )
        for i, (row, one, other) in enumerate(zip(at, rows_a, rows_b, strict=True))
    ]


def _margin(answers: Answers, readout: str, row: int) -> float | None:
    """Return one margin, None where there is none."""
    if readout not in answers.margins:
        return None
    value = float(answers.margins[readout][row])
    return None if np.isnan(value) else value


def changed(before: Fraction | None, after: Fraction | None) -> Fraction | None:
    """Return after - before, None where either is undefined."""
    return None if before is None or after is None else after - before
