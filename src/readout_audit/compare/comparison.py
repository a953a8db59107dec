"""Two runs compared: every matching cell, and refusals where a comparison would mean nothing."""

import json
from typing import NamedTuple

import numpy as np

from readout_audit.compare.answers import Answers, differing, read_answers
from readout_audit.compare.cells import Matched, match_cells, one_pair
from readout_audit.compare.flips import (
    Flip,
    Flips,
    Sides,
    common_readouts,
    count_flips,
    list_flips,
    side_by_side,
)
from readout_audit.compare.pairing import GROUPS, OTHER_PROMPT, REWORDED, SAME, Paired, pair_split
from readout_audit.errors import AuditError
from readout_audit.report.run_folder import RunFolder


class SplitRows(NamedTuple):
    """How the rows of one split found each other; `labels_differ` counts paired rows with another label."""

    split: str
    same: int
    other_prompt: int
    reworded: int
    only_a: int
    only_b: int
    labels_differ: int


class CellComparison(NamedTuple):
    """One pair of cells.

    Attributes:
        differs: (name, value in A, value in B) of everything recorded that differs.
        rows: by split.
        only_splits: splits of one run alone.
        only_readouts: readouts of one run alone.
    """

    cell_a: str
    cell_b: str
    differs: tuple[tuple[str, str, str], ...]
    rows: tuple[SplitRows, ...]
    flips: tuple[Flips, ...]
    sides: tuple[Sides, ...]
    listed: tuple[Flip, ...]
    only_splits: tuple[str, ...]
    only_readouts: tuple[str, ...]


class Comparison(NamedTuple):
    """Two runs."""

    run_a: str
    run_b: str
    cells: tuple[CellComparison, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def compare_runs(
    first: RunFolder, second: RunFolder, cells: tuple[str, str] | None = None, *, other_prompts: bool = False
) -> Comparison:
    """Compare every cell of one run with its partner in the other.

    Args:
        first: run A.
        second: run B.
        cells: the two cells to compare; None pairs the runs' cells by what they share.
        other_prompts: go on where no question was asked with the same prompt, and report those apart.

    Raises:
        AuditError: no cells match, or a pair of cells shares no question that can be compared.
    """
    here, there = list(first.cells()), list(second.cells())
    matched: Matched = one_pair(cells, here, there) if cells else match_cells(here, there)
    compared = [
        compare_cells(read_answers(first, a), read_answers(second, b), other_prompts=other_prompts)
        for a, b in matched.pairs
    ]
    return Comparison(first.name, second.name, tuple(compared), matched.only_a, matched.only_b)


def compare_cells(first: Answers, second: Answers, *, other_prompts: bool = False) -> CellComparison:
    """Compare two cells question by question.

    Raises:
        AuditError: they share no question in the same words and, unless `other_prompts`, with the same prompt.
    """
    splits = [split for split in first.decisions.splits if split in second.decisions.splits]
    paired = [pair_split(first, second, split) for split in splits]
    _refuse(first, second, paired, other_prompts=other_prompts)
    flips, sides, listed = [], [], []
    for one in paired:
        for readout in common_readouts(first, second, one.split):
            flips += [
                count_flips(first, second, one, readout, group)
                for group in GROUPS
                if (one.group == group).any()
            ]
            sides.append(side_by_side(first, second, one, readout))
            listed += list_flips(first, second, one, readout)
    return CellComparison(
        first.cell,
        second.cell,
        tuple(differing(first, second)),
        tuple(_rows(first, second, one) for one in paired),
        tuple(flips),
        tuple(sides),
        tuple(listed),
        tuple(sorted({*first.decisions.splits} ^ {*second.decisions.splits})),
        tuple(sorted({*first.decisions.answers} ^ {*second.decisions.answers})),
    )


def _rows(first: Answers, second: Answers, paired: Paired) -> SplitRows:
    """Count the rows of a split by how they found each other."""
    labels_a, labels_b = first.decisions.labels[paired.first], second.decisions.labels[paired.second]
    counts = {group: int((paired.group == group).sum()) for group in GROUPS}
    return SplitRows(
        paired.split,
        same=counts[SAME],
        other_prompt=counts[OTHER_PROMPT],
        reworded=counts[REWORDED],
        only_a=paired.only_a,
        only_b=paired.only_b,
        labels_differ=int((labels_a != labels_b).sum()),
    )


def _refuse(first: Answers, second: Answers, paired: list[Paired], *, other_prompts: bool) -> None:
    """Stop where the two cells have no answer to the same question in the same words."""
    groups = np.concatenate([one.group for one in paired]) if paired else np.array([], dtype=object)
    both = f"{first.run} ({first.cell}) and {second.run} ({second.cell})"
    if (groups == SAME).any():
        return
    if (groups == OTHER_PROMPT).any():
        if other_prompts:
            return
        prompts = " and ".join(_prompt(one) for one in (first, second))
        raise AuditError(
            f"{both} asked no question with the same prompt ({prompts}), so a flip may be the prompt's; "
            "compare cells of one template, or add --other-prompts to list the flips as such."
        )
    if (groups == REWORDED).any():
        raise AuditError(
            f"{both} ask about the same pictures and objects but never in the same words; "
            "compare runs on releases that share questions."
        )
    raise AuditError(
        f"{both} share no question of a common split; compare runs on releases that share questions."
    )


def _prompt(answers: Answers) -> str:
    """Return a prompt as an example: the first recorded one, the template's text, or its name."""
    example = next(iter(answers.prompts.values()), None) or (answers.template or {}).get("text")
    return (
        json.dumps(example, ensure_ascii=False)
        if example
        else f"template {answers.decisions.cell['template']}"
    )
