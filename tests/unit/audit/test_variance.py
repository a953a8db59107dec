"""Variance components: hand-worked grids, identities in rational arithmetic, and a second way to count them."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from readout_audit.audit.variance import (
    build_grid,
    components,
    reaches,
    resampled_shares,
    sums_of_squares,
)
from readout_audit.errors import AuditError


def grid_of(values: dict, factors: tuple[str, ...] = ("readout", "precision")):
    return build_grid(factors, values, "F1 on random")


def test_two_by_two_by_hand() -> None:
    # Values 1 3 / 5 11: total 20, mean 5. Squares about the mean: 16 + 4 + 0 + 36 = 56.
    # Rows 4 | 16: (16 + 256)/2 - 100 = 36. Columns 6 | 14: (36 + 196)/2 - 100 = 16. Interaction 56 - 52 = 4.
    values = {("a", "x"): 1, ("a", "y"): 3, ("b", "x"): 5, ("b", "y"): 11}
    grid = grid_of({key: Fraction(value, 20) for key, value in values.items()})
    found = components(grid)
    assert [one.factors for one in found] == [("readout",), ("precision",), ("readout", "precision")]
    assert [one.sum_of_squares for one in found] == [Fraction(n, 400) for n in (36, 16, 4)]
    assert [one.share for one in found] == [Fraction(36, 56), Fraction(16, 56), Fraction(4, 56)]
    assert [one.degrees for one in found] == [1, 1, 1]


def test_reach_by_hand() -> None:
    values = {("a", "x"): 1, ("a", "y"): 3, ("b", "x"): 5, ("b", "y"): 11}
    readout, precision = reaches(grid_of({key: Fraction(value, 20) for key, value in values.items()}))
    # Along the readout: 5 - 1 = 4 under x, 11 - 3 = 8 under y. Along the precision: 2 under a, 6 under b.
    assert (readout.mean, readout.largest) == (Fraction(6, 20), Fraction(8, 20))
    assert readout.at[0][1] == "y" and readout.at[1:] == ("a", "b")
    assert (precision.mean, precision.largest) == (Fraction(4, 20), Fraction(6, 20))
    assert precision.at[0][0] == "b" and precision.at[1:] == ("x", "y")


def test_a_factor_of_one_level_is_left_out() -> None:
    grid = grid_of({("a", "x"): Fraction(1, 3), ("b", "x"): Fraction(2, 3)})
    assert grid.factors == ("readout",) and grid.keys == (("a", "x"), ("b", "x"))
    (one,) = components(grid)
    assert (one.sum_of_squares, one.share) == (Fraction(1, 18), 1)


def test_one_cell_has_no_components() -> None:
    grid = grid_of({("a", "x"): Fraction(1, 3)})
    assert components(grid) == [] and reaches(grid) == []
    assert resampled_shares(np.array([[0.5], [0.25]]), grid.values.shape) == {}


def test_nothing_varies() -> None:
    grid = grid_of({key: Fraction(1, 3) for key in product("ab", "xy")})
    assert [one.share for one in components(grid)] == [None] * 3
    shares = resampled_shares(np.full((2, 4), 1 / 3), grid.values.shape)
    assert all(np.isnan(share).all() for share in shares.values())


@pytest.mark.parametrize("lacking", [{}, {("b", "y"): None}])
def test_unbalanced_grid_is_refused(lacking: dict) -> None:
    values = {("a", "x"): Fraction(1), ("a", "y"): Fraction(1), ("b", "x"): Fraction(1)} | lacking
    with pytest.raises(AuditError) as refused:
        grid_of(values)
    assert str(refused.value) == (
        "variance components need every combination of the grid, and F1 on random of readout b, precision y is "
        "missing or undefined; add that cell, or leave one of its levels out."
    )


shapes = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@st.composite
def grids(draw: st.DrawFn):
    shape = draw(shapes)
    size = prod(shape)
    values = draw(st.lists(st.fractions(0, 1, max_denominator=99), min_size=size, max_size=size))
    keys = product(*([f"{axis}{level}" for level in range(levels)] for axis, levels in enumerate(shape)))
    return build_grid(
        [f"f{axis}" for axis in range(len(shape))], dict(zip(keys, values, strict=True)), "value"
    )


def total_about_the_mean(values) -> Fraction:
    mean = sum(values, Fraction(0)) / len(values)
    return sum(((value - mean) ** 2 for value in values), Fraction(0))


@settings(deadline=None, max_examples=60)
@given(grids())
def test_components_add_up_to_the_variance(grid) -> None:
    found = components(grid)
    assert sum(one.sum_of_squares for one in found) == total_about_the_mean(list(grid.values.flat))
    assert all(one.sum_of_squares >= 0 for one in found)
    assert sum(one.degrees for one in found) == grid.values.size - 1
    if found and found[0].share is not None:
        assert sum(one.share for one in found) == 1


@settings(deadline=None, max_examples=60)
@given(grids())
def test_main_effects_are_those_of_the_level_means(grid) -> None:
    """SS of one factor = cells per level × squares of the level means about the grand mean: another route."""
    by_factor = {one.factors: one.sum_of_squares for one in components(grid)}
    for axis, factor in enumerate(grid.factors):
        lines = np.moveaxis(grid.values, axis, 0).reshape(len(grid.levels[axis]), -1)
        means = [sum(line, Fraction(0)) / len(line) for line in lines]
        assert by_factor[(factor,)] == lines.shape[1] * total_about_the_mean(means)


@settings(deadline=None, max_examples=40)
@given(grids(), st.fractions(-1, 1, max_denominator=9))
def test_a_constant_shift_changes_nothing(grid, shift: Fraction) -> None:
    moved = grid._replace(values=np.asarray(grid.values + shift))
    assert [one.sum_of_squares for one in components(moved)] == [
        one.sum_of_squares for one in components(grid)
    ]


@settings(deadline=None, max_examples=40)
@given(grids())
def test_resampled_shares_are_the_exact_ones_in_floats(grid) -> None:
    flat = np.array([[float(value) for value in grid.values.flat]])
    shares = resampled_shares(flat, grid.values.shape)
    exact = [one.share for one in components(grid)]
    for share, expected in zip(shares.values(), exact, strict=True):
        assert (
            np.isnan(share[0]) if expected is None else share[0] == pytest.approx(float(expected), abs=1e-9)
        )


def test_sums_of_squares_of_large_numbers_are_exact() -> None:
    """Numbers that floats and 64-bit integers would lose."""
    big = 10**30
    whole = np.array([[big, big + 1], [big + 2, big + 7]], dtype=object)
    small = np.array([[0, 1], [2, 7]], dtype=object)
    assert sums_of_squares(whole) == sums_of_squares(small)
