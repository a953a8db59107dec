"""Interval columns of a score table."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from readout_audit.scores.blocks import MACRO
from readout_audit.scores.bootstrap import (
    LEVEL,
    Floats,
    Images,
    counts_per_image,
    number_images,
    percentile_intervals,
    ratio,
    resampled_totals,
)
from readout_audit.scores.confusion import NO, UNPARSED, YES, Codes, total
from readout_audit.scores.decisions import Decisions
from readout_audit.scores.labels import LabelSet
from readout_audit.scores.naive import wilson_f1
from readout_audit.scores.table import Entry, Part, Scores

_COLUMNS = 5
"""Columns of a part: TP, FP, misses, parsed rows, valid rows."""


class Intervals(NamedTuple):
    """Interval columns by index of the entry, and what the metadata says about them."""

    columns: dict[int, dict[str, float | None]]
    note: dict[str, Any]


def score_intervals(
    decisions: Decisions, label_sets: list[LabelSet], scores: Scores, resamples: int, seed: int
) -> Intervals:
    """Return the naive intervals and, with resamples and known images, the bootstrap ones.

    Args:
        decisions: the rows that were scored.
        label_sets: the labels they were scored against.
        scores: the counted entries.
        resamples: bootstrap samples; 0 for none.
        seed: of the one draw that all entries share.
    """
    columns = {index: _naive(entry) for index, entry in enumerate(scores.entries)}
    images = number_images(decisions.identity["image"]) if resamples else None
    note: dict[str, Any] = {"interval": f"percentile, {LEVEL:.0%}", "unit": "image", "resamples": 0}
    if resamples and images is None:
        note["why_not"] = "the source does not know which image a row is about"
    if images is None:
        return Intervals(columns, note)
    parts = list({id(part): part for entry in scores.entries for part in entry.parts}.values())
    codes = {label_set.name: label_set.codes for label_set in label_sets}
    counts = [
        _part_columns(codes[part.labels], decisions.answers[part.readout], part, images) for part in parts
    ]
    totals = resampled_totals(np.concatenate(counts, axis=1), resamples, seed) if parts else np.empty((0, 0))
    of_part = {id(part): totals[:, _COLUMNS * i : _COLUMNS * (i + 1)] for i, part in enumerate(parts)}
    undefined = _fill(columns, scores.entries, of_part)
    note |= {"resamples": resamples, "seed": seed, "images": images.n, "undefined": undefined}
    return Intervals(columns, note)


def _naive(entry: Entry) -> dict[str, float | None]:
    """Return Wilson's interval; empty for macro, which is no proportion of anything."""
    ends = (
        wilson_f1(total(part.confusion for part in entry.parts))
        if entry.parts and entry.split != MACRO
        else None
    )
    low, high = ends if ends is not None else (None, None)
    return {"f1_wilson_low": low, "f1_wilson_high": high}


def _part_columns(labels: Codes, answers: Codes, part: Part, images: Images) -> npt.NDArray[np.int64]:
    """Return shape (images, 5), the counts that F1 and yes-rate are made of."""
    kinds = labels[part.rows].astype(np.int64) * 4 + answers[part.rows]
    cells = counts_per_image(images, part.rows, kinds, 8).reshape(images.n, 2, 4)
    positives, negatives = cells[:, 0], cells[:, 1]
    parsed = cells[:, :, [YES, NO]].sum(axis=(1, 2))
    return np.stack(
        [
            positives[:, YES],
            negatives[:, YES],
            positives[:, NO] + positives[:, UNPARSED],
            parsed,
            parsed + cells[:, :, UNPARSED].sum(axis=1),
        ],
        axis=1,
    )


def _fill(
    columns: dict[int, dict[str, float | None]], entries: list[Entry], of_part: dict[int, Floats]
) -> list[dict[str, Any]]:
    """Put the percentile intervals into `columns`; return the entries with undefined resamples."""
    indices = [index for index, entry in enumerate(entries) if entry.parts]
    undefined: list[dict[str, Any]] = []
    for rate, statistic in (("f1", resampled_f1), ("yes_rate", resampled_yes_rate)):
        statistics = []
        for index in indices:
            totals = [of_part[id(part)] for part in entries[index].parts]
            if entries[index].split == MACRO:
                statistics.append(np.mean([statistic(one) for one in totals], axis=0))
            else:
                statistics.append(statistic(np.sum(totals, axis=0)))
        found = percentile_intervals(np.stack(statistics, axis=1)) if statistics else []
        for index, interval in zip(indices, found, strict=True):
            columns[index] |= {f"{rate}_low": interval.low, f"{rate}_high": interval.high}
            if interval.undefined:
                key = entries[index]._asdict()
                key.pop("parts")
                undefined.append({**key, "rate": rate, "resamples": interval.undefined})
    return undefined


def resampled_f1(totals: Floats) -> Floats:
    """Return F1 of each resample, NaN where it is undefined; `totals` has the columns of a part."""
    true_positives, false_positives, misses, parsed, _ = totals.T
    f1 = ratio(2 * true_positives, 2 * true_positives + false_positives + misses)
    return np.where(parsed > 0, f1, np.nan)


def resampled_yes_rate(totals: Floats) -> Floats:
    """Return the yes-rate of each resample, NaN where no row is valid."""
    return ratio(totals[:, 0] + totals[:, 1], totals[:, 4])
