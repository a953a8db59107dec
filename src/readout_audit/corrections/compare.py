"""Every correction against the readout it corrects: at given strengths, at the best one, at a cross-fitted one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from readout_audit.corrections.base import Correction
from readout_audit.corrections.evidence import Evidence, Floats
from readout_audit.corrections.rows import Block, fold_of_images
from readout_audit.corrections.schema import CROSS_FITTED, FIXED, HINDSIGHT, NOT_AVAILABLE, OK
from readout_audit.corrections.tallies import (
    Bools,
    Chosen,
    Rows,
    Samples,
    observed,
    resampled,
    tally,
)
from readout_audit.readouts.base import NotAvailableError
from readout_audit.scores.bootstrap import LEVEL


@dataclass(frozen=True)
class Settings:
    """How corrections are compared.

    Attributes:
        strengths: the sweep, ascending, from 0.
        resamples: bootstrap samples of images; 0 leaves the intervals out.
        seed: of the draw and of the folds.
        folds: parts the images are dealt into for cross-fitting.
    """

    strengths: Floats
    resamples: int = 0
    seed: int = 42
    folds: int = 5


class Scored(NamedTuple):
    """One row of `schema.CORRECTIONS` without its cell, and the gain in each resample."""

    columns: dict[str, Any]
    gains: Floats | None


@dataclass(frozen=True)
class Outcome:
    """What one correction did on one block: rows of the two output tables."""

    scored: list[Scored]
    sweep: list[dict[str, Any]] = field(default_factory=list)


def compare(
    evidence: Evidence, block: Block, corrections: Iterable[Correction], settings: Settings
) -> Iterator[Outcome]:
    """Yield what each correction did, its intervals corrected for the number of corrections.

    A correction whose signals are not there yields one row that says so.
    """
    outcomes = [_apply(evidence, block.rows, correction, settings) for correction in corrections]
    every = [scored for outcome in outcomes for scored in outcome.scored]
    tried = {
        choice: sum(one.columns["choice"] == choice and one.columns["status"] == OK for one in every)
        for choice in (FIXED, HINDSIGHT, CROSS_FITTED)
    }
    for outcome in outcomes:
        yield replace(outcome, scored=[_with_intervals(one, tried) for one in outcome.scored])


def _with_intervals(scored: Scored, tried: dict[str, int]) -> Scored:
    """Add both intervals of the gain to a row."""
    if scored.columns["status"] != OK:
        return scored
    number = tried[scored.columns["choice"]]
    low, high = interval(scored.gains, 1 - LEVEL)
    corrected_low, corrected_high = interval(scored.gains, (1 - LEVEL) / number)
    return scored._replace(
        columns=scored.columns
        | {
            "delta_f1_low": low,
            "delta_f1_high": high,
            "tried": number,
            "delta_f1_low_corrected": corrected_low,
            "delta_f1_high_corrected": corrected_high,
        }
    )


def interval(values: Floats | None, alpha: float) -> tuple[float | None, float | None]:
    """Return the percentile interval that leaves `alpha` outside; None where no sample defines a value."""
    defined = values[~np.isnan(values)] if values is not None else np.empty(0)
    if not defined.size:
        return None, None
    low, high = np.quantile(defined, (alpha / 2, 1 - alpha / 2))
    return float(low), float(high)


def _apply(evidence: Evidence, rows: Rows, correction: Correction, settings: Settings) -> Outcome:
    """Apply one correction to one block of rows."""
    grid = np.union1d(settings.strengths, correction.strengths) if correction.swept else np.zeros(1)
    try:
        margins = correction.margins(evidence, grid)[rows.question]
    except NotAvailableError as error:
        return _unavailable(correction, str(error))
    has_signal = ~np.isnan(margins[:, 0])
    if not has_signal.any():
        where = f"column {', '.join(correction.signals)} is null" if len(rows.question) else "there is no row"
        return _unavailable(correction, f"{where} on every question of the split")
    kept = rows.only(has_signal)
    yes = margins[has_signal] > 0
    baseline = evidence.gap[kept.question] > 0
    scored = _score(correction, grid, kept, yes, baseline, settings)
    left_out = int((~has_signal).sum())
    scored = [one._replace(columns=one.columns | {"n_without_signal": left_out}) for one in scored]
    return Outcome(scored, _sweep(correction, grid, kept, yes, settings))


def _unavailable(correction: Correction, why: str) -> Outcome:
    """Return the one row that says a correction cannot be applied."""
    row = {"method": correction.name, "choice": FIXED, "status": NOT_AVAILABLE, "reason": why}
    return Outcome([Scored(row, None)])


def _score(
    correction: Correction, grid: Floats, rows: Rows, yes: Bools, baseline: Bools, settings: Settings
) -> list[Scored]:
    """Score one correction under every choice of its strength."""
    tallies = tally(rows, yes, baseline)
    fold = fold_of_images(rows.images, settings.folds, settings.seed)
    samples = [observed(tallies, fold, settings.folds)]
    if settings.resamples:
        samples.append(resampled(tallies, fold, settings.folds, settings.resamples, settings.seed))
    sweep = np.flatnonzero(np.isin(grid, settings.strengths))
    swept = [one._replace(tp=one.tp[:, :, sweep], fp=one.fp[:, :, sweep]) for one in samples]
    found = []
    for strength in correction.strengths if correction.swept else (None,):
        index = 0 if strength is None else int(np.searchsorted(grid, strength))
        chosen = [one.at(index) for one in samples]
        columns = {"choice": FIXED, "strength": strength, **_turned(yes[:, index], baseline)}
        found.append((columns, samples, chosen))
    if correction.swept:
        hindsight = [one.in_hindsight() for one in swept]
        best = int(sweep[hindsight[0].picked[0]])
        columns = {"choice": HINDSIGHT, "strength": float(grid[best]), **_turned(yes[:, best], baseline)}
        found.append((columns, swept, hindsight))
        fitted = [one.cross_fitted() for one in swept]
        by_fold = sweep[fitted[0].picked[0]]
        answers = yes[np.arange(len(yes)), by_fold[fold[rows.image]]]
        columns = {
            "choice": CROSS_FITTED,
            "strength": None,
            "fold_strengths": grid[by_fold].tolist(),
            **_turned(answers, baseline),
        }
        found.append((columns, swept, fitted))
    return [_scored(correction, rows, *one) for one in found]


def _turned(yes: Bools, baseline: Bools) -> dict[str, int]:
    """Count the answers that a correction turns."""
    return {"yes_to_no": int((baseline & ~yes).sum()), "no_to_yes": int((~baseline & yes).sum())}


def _scored(
    correction: Correction,
    rows: Rows,
    columns: dict[str, Any],
    samples: Sequence[Samples],
    chosen: Sequence[Chosen],
) -> Scored:
    """Return the row of one choice: the observed counts and gain, and the gain in each resample."""
    gains = [one.gain(choice) for one, choice in zip(samples, chosen, strict=True)]
    tp, fp = int(chosen[0].tp[0]), int(chosen[0].fp[0])
    baseline_tp, baseline_fp = (int(count) for count in samples[0].baseline[0])
    gain = float(gains[0][0])
    return Scored(
        {
            "method": correction.name,
            "status": OK,
            "n": len(rows.positive),
            "tp": tp,
            "fp": fp,
            "tn": len(rows.positive) - rows.positives - fp,
            "fn": rows.positives - tp,
            "baseline_tp": baseline_tp,
            "baseline_fp": baseline_fp,
            "delta_f1": None if np.isnan(gain) else gain,
            **columns,
        },
        gains[1] if len(gains) > 1 else None,
    )


def _sweep(
    correction: Correction, grid: Floats, rows: Rows, yes: Bools, settings: Settings
) -> list[dict[str, Any]]:
    """Return the matrix at every strength of the sweep."""
    if not correction.swept:
        return []
    tp, fp = (yes[label].sum(axis=0) for label in (rows.positive, ~rows.positive))
    return [
        {
            "method": correction.name,
            "strength": float(grid[index]),
            "tp": int(tp[index]),
            "fp": int(fp[index]),
            "tn": len(rows.positive) - rows.positives - int(fp[index]),
            "fn": rows.positives - int(tp[index]),
        }
        for index in np.flatnonzero(np.isin(grid, settings.strengths))
    ]
