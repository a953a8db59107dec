"""What moves F1: its variance over a balanced grid of settings, taken apart exactly.

Balanced factorial analysis of variance with one value per cell and no error term: the grid is the whole
population looked at, so the sums of squares are descriptive, and add up to the total.

For a set S of factors, [S] is the sum over the levels of S of (sum of the values there)² / (number of values
there), and [∅] = (sum of all)² / N. Then

    SS(S) = Σ over T ⊆ S of (−1)^(|S| − |T|) [T],      η²(S) = SS(S) / Σ over all S ≠ ∅ of SS(S).

Values are rationals; they are put over one denominator, so every sum is one of whole numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain, combinations, product
from math import lcm, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from readout_audit.errors import AuditError
from readout_audit.scores.bootstrap import Floats

METHOD = "balanced factorial ANOVA, one value per cell: sums of squares as shares of the total (η²)"

_NOTHING = 1e-24
"""A sum of squares below this is rounding: two different F1s of a million questions are further apart."""

Key = tuple[str, ...]
Subset = tuple[int, ...]


class Grid(NamedTuple):
    """A full crossing of factors.

    Attributes:
        factors: those with at least two levels.
        levels: of each factor, as first met.
        keys: every combination of levels, in the order of `values` read row by row; a key has all factors
            that the grid was built of, constant ones included.
        values: the exact value of each combination; shape: the number of levels of each factor.
    """

    factors: tuple[str, ...]
    levels: tuple[Key, ...]
    keys: tuple[Key, ...]
    values: npt.NDArray[Any]


class Component(NamedTuple):
    """One factor, or an interaction of several.

    Attributes:
        factors: one name, or those that act together.
        degrees: of freedom.
        sum_of_squares: exact.
        share: of the total; None where nothing varies.
    """

    factors: tuple[str, ...]
    degrees: int
    sum_of_squares: Fraction
    share: Fraction | None


class Reach(NamedTuple):
    """How far a factor alone moves the value.

    Attributes:
        factor: its name.
        mean: largest minus smallest value along the factor, averaged over all else.
        largest: the largest of these.
        at: the combination of the other factors where it is reached, and the two levels.
    """

    factor: str
    mean: Fraction
    largest: Fraction
    at: tuple[Key, str, str]


def build_grid(factors: Sequence[str], values: Mapping[Key, Fraction | None], where: str) -> Grid:
    """Put values in a grid; factors with one level are left out of it.

    Args:
        factors: names of the parts of a key.
        values: key -> value, None where it is undefined.
        where: what the values are, for the error.

    Raises:
        AuditError: a combination of levels is missing or has no value.
    """
    levels = [tuple(dict.fromkeys(key[place] for key in values)) for place in range(len(factors))]
    keys = tuple(product(*levels))
    for key in keys:
        if values.get(key) is None:
            named = ", ".join(f"{name} {level}" for name, level in zip(factors, key, strict=True))
            raise AuditError(
                f"variance components need every combination of the grid, and {where} of {named} is missing or "
                "undefined; add that cell, or leave one of its levels out."
            )
    crossed = [place for place, names in enumerate(levels) if len(names) > 1]
    array = np.array([values[key] for key in keys], dtype=object)
    return Grid(
        tuple(factors[place] for place in crossed),
        tuple(levels[place] for place in crossed),
        keys,
        array.reshape([len(levels[place]) for place in crossed]),
    )


def components(grid: Grid) -> list[Component]:
    """Return every factor, then every interaction, the fewest factors first."""
    scale = lcm(*(value.denominator for value in grid.values.flat))
    whole = np.array([int(value * scale) for value in grid.values.flat], dtype=object)
    sums = sums_of_squares(whole.reshape(grid.values.shape))
    exact = {subset: found / scale**2 for subset, found in sums.items()}
    total = sum(exact.values(), Fraction(0))
    return [
        Component(
            tuple(grid.factors[place] for place in subset),
            prod(len(grid.levels[place]) - 1 for place in subset),
            found,
            found / total if total else None,
        )
        for subset, found in exact.items()
    ]


def sums_of_squares(whole: npt.NDArray[Any]) -> dict[Subset, Fraction]:
    """Return SS of every set of axes of an array of whole numbers, the empty set left out."""
    brackets = {
        subset: Fraction(sum(int(total) ** 2 for total in totals.flat), whole.size // totals.size)
        for subset, totals in _totals(whole, 0)
    }
    return {
        subset: sum((sign * brackets[part] for sign, part in _signed_parts(subset)), Fraction(0))
        for subset in brackets
        if subset
    }


def resampled_shares(values: Floats, shape: Sequence[int]) -> dict[Subset, Floats]:
    """Return η² of every set of factors in every resample, NaN where nothing varies or a value is undefined.

    Args:
        values: shape (resamples, N), in the order of a grid's keys.
        shape: of the grid.
    """
    # The share does not depend on the level, and small numbers lose fewer digits to their squares.
    centred = values - values.mean(axis=1, keepdims=True)
    array = centred.reshape(len(values), *shape)
    brackets = {
        subset: (totals**2).reshape(len(values), -1).sum(axis=1) * (totals.size / array.size)
        for subset, totals in _totals(array, 1)
    }
    sums = {
        subset: np.sum([sign * brackets[part] for sign, part in _signed_parts(subset)], axis=0)
        for subset in brackets
        if subset
    }
    total = np.sum(list(sums.values()), axis=0) if sums else np.zeros(len(values))
    divisor = np.where(total > _NOTHING, total, np.nan)
    return {subset: found / divisor for subset, found in sums.items()}


def _totals(array: npt.NDArray[Any], leading: int) -> Iterator[tuple[Subset, npt.NDArray[Any]]]:
    """Yield every set of axes with the totals over all others, `leading` first axes left alone."""
    axes = range(array.ndim - leading)
    for subset in chain.from_iterable(combinations(axes, size) for size in range(len(axes) + 1)):
        others = tuple(axis + leading for axis in axes if axis not in subset)
        yield subset, np.asarray(array.sum(axis=others) if others else array)


def _signed_parts(subset: Subset) -> Iterator[tuple[int, Subset]]:
    """Yield every part of a set with the sign it has in the set's sum of squares."""
    for size in range(len(subset) + 1):
        for part in combinations(subset, size):
            yield (-1) ** (len(subset) - size), part


def reaches(grid: Grid) -> list[Reach]:
    """Return how far each factor moves the value, the others held."""
    places = np.arange(len(grid.keys)).reshape(grid.values.shape)
    found = []
    for axis, factor in enumerate(grid.factors):
        lines = np.moveaxis(grid.values, axis, -1).reshape(-1, len(grid.levels[axis]))
        starts = np.moveaxis(places, axis, -1).reshape(lines.shape)[:, 0]
        spans = [max(line) - min(line) for line in lines]
        place = spans.index(max(spans))
        line, levels = list(lines[place]), grid.levels[axis]
        found.append(
            Reach(
                factor,
                sum(spans, Fraction(0)) / len(spans),
                spans[place],
                (grid.keys[starts[place]], levels[line.index(min(line))], levels[line.index(max(line))]),
            )
        )
    return found
