"""Which row of one run asks what a row of the other asks, and whether it was asked in the same words.

Rows are joined within a split by uid (same picture, same question text), then by picture and object where the
text differs, as between releases of POPE. Nothing is joined on `question_id`, which moves between releases.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from readout_audit.compare.answers import Answers

SAME, OTHER_PROMPT, REWORDED = "same", "other_prompt", "reworded"

GROUPS = {
    SAME: "the same question, asked with the same prompt as far as it is recorded",
    OTHER_PROMPT: "the same question, asked with another prompt",
    REWORDED: "the same picture and object, asked in other words",
}
"""How two rows compare; only the first are answers to one thing."""

Rows = npt.NDArray[np.int64]


class Paired(NamedTuple):
    """The rows of one split that belong together.

    Attributes:
        first, second: row numbers, shape (n,), in the first run's order.
        group: shape (n,), a key of `GROUPS` each.
        only_a, only_b: rows without a partner; among them questions that a run asks more than once in the split.
        prompts: whether prompts were compared text by text ("recorded"), by their template, or not at all.
    """

    split: str
    first: Rows
    second: Rows
    group: npt.NDArray[np.object_]
    only_a: int
    only_b: int


def pair_split(first: Answers, second: Answers, split: str) -> Paired:
    """Join the rows of one split."""
    rows_a, rows_b = (np.flatnonzero(one.decisions.in_split(split)) for one in (first, second))
    by_uid = _join(_column(first, rows_a, "uid"), _column(second, rows_b, "uid"))
    left_a = np.setdiff1d(np.arange(len(rows_a)), by_uid[0])
    left_b = np.setdiff1d(np.arange(len(rows_b)), by_uid[1])
    about_a, about_b = _about(first, rows_a[left_a]), _about(second, rows_b[left_b])
    by_object = _join(about_a, about_b)
    at_a = np.concatenate([by_uid[0], left_a[by_object[0]]])
    at_b = np.concatenate([by_uid[1], left_b[by_object[1]]])
    group = np.array([SAME] * len(by_uid[0]) + [REWORDED] * len(by_object[0]), dtype=object)
    order = np.argsort(at_a, kind="stable")
    one, two, group = rows_a[at_a[order]], rows_b[at_b[order]], group[order]
    group[(group == SAME) & _other_prompt(first, second, one)] = OTHER_PROMPT
    return Paired(split, one, two, group, len(rows_a) - len(one), len(rows_b) - len(two))


def _column(answers: Answers, rows: Rows, name: str) -> list[str | None]:
    """Return one identity column of the named rows."""
    values: list[str | None] = answers.decisions.identity[name].take(rows).to_pylist()
    return values


def _about(answers: Answers, rows: Rows) -> list[tuple[str, str] | None]:
    """Return (picture, object) of the named rows, None where either is not known."""
    both = zip(_column(answers, rows, "image"), _column(answers, rows, "object"), strict=True)
    return [(image, item) if image is not None and item is not None else None for image, item in both]


def _join(first: Sequence[Hashable | None], second: Sequence[Hashable | None]) -> tuple[Rows, Rows]:
    """Return the places of keys that stand exactly once in both, in the first's order; None joins nothing."""
    times_a, times_b = Counter(first), Counter(second)
    where = {key: place for place, key in enumerate(second)}
    places = [
        (place, where[key])
        for place, key in enumerate(first)
        if key is not None and times_a[key] == 1 and times_b.get(key) == 1
    ]
    both = np.array(places, dtype=np.int64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _other_prompt(first: Answers, second: Answers, rows: Rows) -> npt.NDArray[np.bool_]:
    """Return for rows of the first run whether the second was asked with another prompt.

    Exact prompts where both runs recorded them; else their templates; else the templates' names.
    """
    uids = _column(first, rows, "uid")
    if first.prompts and second.prompts:
        return np.array(
            [first.prompts.get(str(uid)) != second.prompts.get(str(uid)) for uid in uids], dtype=bool
        )
    if first.template is not None and second.template is not None:
        other = _wording(first) != _wording(second)
    else:
        other = first.decisions.cell["template"] != second.decisions.cell["template"]
    return np.full(len(uids), other)


def _wording(answers: Answers) -> tuple[object, ...]:
    """Return what of a template decides the prompt."""
    template = answers.template or {}
    return tuple(template.get(name) for name in ("text", "chat", "suffix"))
