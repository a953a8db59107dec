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
        readouts: the levels of the readout.
        resamples: bootstrap samples over images; 0 leaves the intervals empty.
        seed: of that draw, the scores'.

    Raises:
        AuditError: there is no cell, or the grid is not balanced.
    """
    if not cells:
        raise AuditError("variance components: there are no decision files.")
    models = list(dict.fromkeys(cell.decisions.cell["model"] for cell in cells))
    scopes = [[model] for model in models] + ([models] if len(models) > 1 else [])
    rows: list[dict[str, Any]] = []
    levels: dict[str, Any] = {}
    for labels in cells[0].label_sets:
        for split in dict.fromkeys(split for cell in cells for split in cell.decisions.splits):
            drawn = draw(cells, labels, split, resamples, seed)
            for scope in scopes:
                places = [i for i, cell in enumerate(cells) if cell.decisions.cell["model"] in scope]
                name = scope[0] if len(scope) == 1 else ALL_MODELS
                found, grid = _decompose(cells, places, readouts, (labels, split), drawn)
                rows += [{"labels": labels, "split": split, "scope": name} | row for row in found]
                levels[name] = dict(zip(grid.factors, grid.levels, strict=True))
    notes = {
        "schema": 1,
        "method": METHOD,
        "levels": levels,
        "bootstrap": {"unit": "image", "resamples": resamples, "seed": seed},
    }
    return pa.Table.from_pylist(rows, schema=VARIANCE), notes


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
