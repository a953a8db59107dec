"""Variance components of a run's F1: per model, and over all models together."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from readout_audit.audit.asked import Asked
from readout_audit.audit.comparisons import draw
from readout_audit.audit.schema import ALL_MODELS, TIMES, VARIANCE
from readout_audit.audit.variance import (
    METHOD,
    Component,
    Grid,
    Key,
    Subset,
    build_grid,
    components,
    reaches,
    resampled_shares,
)
from readout_audit.errors import AuditError
from readout_audit.scores.bootstrap import Floats, Interval, percentile_intervals

READOUT = "readout"
SETTINGS = ("model", "precision", "template", "dataset")
FACTORS = (READOUT, *SETTINGS)
"""Factors of the grid. The dataset is the question release."""


def variance_table(
    cells: Sequence[Asked], readouts: Sequence[str], resamples: int, seed: int
) -> tuple[pa.Table, dict[str, Any]]:
    """Return the components under `VARIANCE`, and what the metadata says.

    Args:
        cells: of one run and one source, with the same label sets.
        readouts: the levels of the readout; one that has no F1 somewhere in a scope is left out of its grid and
            named in the metadata.
        resamples: bootstrap samples over images; 0 leaves the intervals empty.
        seed: of that draw, the scores'.

    Raises:
        AuditError: there is no cell, no readout has an F1 everywhere, or a combination of settings is missing.
    """
    if not cells:
        raise AuditError("variance components: there are no decision files.")
    scopes = _scopes(cells)
    splits = list(dict.fromkeys(split for cell in cells for split in cell.decisions.splits))
    everywhere = [(labels, split) for labels in cells[0].label_sets for split in splits]
    left_out = {
        name: _without_f1([cells[place] for place in places], readouts, everywhere)
        for name, places in scopes.items()
    }
    rows: list[dict[str, Any]] = []
    levels: dict[str, Any] = {}
    for labels, split in everywhere:
        drawn = draw(cells, labels, split, resamples, seed)
        for name, places in scopes.items():
            kept = [readout for readout in readouts if readout not in left_out[name]]
            found, grid = _decompose(cells, places, kept, (labels, split), drawn)
            rows += [{"labels": labels, "split": split, "scope": name} | row for row in found]
            levels[name] = dict(zip(grid.factors, grid.levels, strict=True))
    notes = {
        "schema": 1,
        "method": METHOD,
        "levels": levels,
        "left_out": left_out,
        "bootstrap": {"unit": "image", "resamples": resamples, "seed": seed},
    }
    return pa.Table.from_pylist(rows, schema=VARIANCE), notes


def _scopes(cells: Sequence[Asked]) -> dict[str, list[int]]:
    """Return the places of each model's cells by its name, and of all models' in the settings that all were asked in."""
    by_model: dict[str, dict[Key, int]] = {}
    for place, cell in enumerate(cells):
        model, *settings = _settings(cell)
        by_model.setdefault(model, {})[tuple(settings)] = place
    scopes = {model: list(places.values()) for model, places in by_model.items()}
    shared = set.intersection(*(set(places) for places in by_model.values()))
    if len(by_model) > 1 and shared:
        every = (place for places in by_model.values() for key, place in places.items() if key in shared)
        scopes[ALL_MODELS] = sorted(every)
    return scopes


def _without_f1(
    cells: Sequence[Asked], readouts: Sequence[str], everywhere: Sequence[tuple[str, str]]
) -> dict[str, str]:
    """Return the readouts that have no F1 in some cell, each with the first such place.

    Raises:
        AuditError: that is all of them.
    """
    found: dict[str, str] = {}
    for readout in readouts:
        for cell in cells:
            for labels, split in everywhere:
                if not cell.has(readout, split) or cell.confusion(labels, split, readout).f1 is None:
                    found.setdefault(readout, f"no F1 on {split} for {cell.name}")
    if len(found) == len(readouts):
        readout, why = next(iter(found.items()))
        raise AuditError(
            f"variance components: no readout has an F1 in every cell of the grid ({readout}: {why}); give other "
            "readouts or fewer cells."
        )
    return found


def _decompose(
    cells: Sequence[Asked],
    places: Sequence[int],
    readouts: Sequence[str],
    where: tuple[str, str],
    drawn: Mapping[tuple[int, str], Floats],
) -> tuple[list[dict[str, Any]], Grid]:
    """Return the components of the given cells on one split, and their grid."""
    labels, split = where
    place_of = {_settings(cells[place]): place for place in places}
    values: dict[Key, Fraction | None] = {}
    n = 0
    for readout in readouts:
        for settings, place in place_of.items():
            if cells[place].has(readout, split):
                confusion = cells[place].confusion(labels, split, readout)
                values[(readout, *settings)] = confusion.f1
                n = max(n, confusion.n)
            else:
                values[(readout, *settings)] = None
    grid = build_grid(FACTORS, values, f"F1 on {split} ({labels} labels)")
    same_images = len({cells[place].image_names for place in places}) == 1
    intervals = _intervals(grid, place_of, drawn) if same_images else {}
    about = {"cells": grid.values.size, "n": n}
    return [about | row for row in _rows(grid, intervals)], grid


def _settings(cell: Asked) -> Key:
    """Return the levels of a cell, in the order of `SETTINGS`."""
    return tuple(cell.decisions.cell[name] for name in SETTINGS)


def _intervals(
    grid: Grid, place_of: Mapping[Key, int], drawn: Mapping[tuple[int, str], Floats]
) -> dict[Subset, Interval]:
    """Return the interval of every share; empty where nothing was drawn."""
    columns = [drawn.get((place_of[key[1:]], key[0])) for key in grid.keys]
    known = [column for column in columns if column is not None]
    if len(known) < len(columns):
        return {}
    shares = resampled_shares(np.stack(known, axis=1), grid.values.shape)
    if not shares:
        return {}
    ends = percentile_intervals(np.stack(list(shares.values()), axis=1))
    return dict(zip(shares, ends, strict=True))


def _rows(grid: Grid, intervals: Mapping[Subset, Interval]) -> Iterator[dict[str, Any]]:
    """Yield a row per factor and interaction."""
    reach_of = {reach.factor: reach for reach in reaches(grid)}
    for component in components(grid):
        interval = intervals.get(_subset(grid, component))
        row: dict[str, Any] = {
            "factor": TIMES.join(component.factors),
            "order": len(component.factors),
            "degrees_of_freedom": component.degrees,
            "sum_of_squares": float(component.sum_of_squares),
            "share": None if component.share is None else float(component.share),
            "share_low": interval.low if interval else None,
            "share_high": interval.high if interval else None,
        }
        if len(component.factors) == 1:
            reach = reach_of[component.factors[0]]
            key, low, high = reach.at
            others = [
                level
                for name, level in zip(FACTORS, key, strict=True)
                if name in grid.factors and name != reach.factor
            ]
            row |= {
                "mean_reach": float(reach.mean),
                "largest_reach": float(reach.largest),
                "largest_at": f"{low} to {high}" + (f" ({', '.join(others)})" if others else ""),
            }
        yield row


def _subset(grid: Grid, component: Component) -> Subset:
    """Return a component's factors by their places in the grid."""
    return tuple(grid.factors.index(name) for name in component.factors)
