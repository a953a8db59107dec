"""Printed differences: of exact scores, or of rounded ones.

Origin of the numbers: arXiv 2610.25964, Tables 2, 7 and 8.
"""

from fractions import Fraction

import pytest
from consistency_oracle import typed
from hypothesis import given
from hypothesis import strategies as st

from readout_audit.consistency.difference import difference_check
from readout_audit.consistency.metrics import Matrix
from readout_audit.consistency.search import fitting_matrices
from readout_audit.errors import AuditError
from readout_audit.exact import PrintedValue, read_printed, round_half_up


def matrix(tp, fp, half=1500):
    return Matrix(tp, fp, half - tp, half - fp)


def points(text):
    return read_printed(text, "difference", percent=True, signed=True)


@pytest.mark.parametrize(
    ("eight", "two", "gap", "verdict"),
    [
        # 2348/2856 - 2876/3780 = 0.06128..., and 0.8221 - 0.7608 = 0.0613
        ((1174, 182), (1438, 842), "0.0613", "exact"),
        # 2382/2803 - 2882/3620 = 0.05367...
        ((1191, 112), (1441, 679), "0.0537", "exact"),
        # 2382/2734 - 2882/3432 = 0.03150..., but 0.8713 - 0.8397 = 0.0316
        ((1191, 43), (1441, 491), "0.0316", "rounded_only"),
        ((1191, 43), (1441, 491), "0.0315", "exact"),
        ((1191, 43), (1441, 491), "0.0317", "neither"),
    ],
)
def test_the_gaps_of_table_2(eight, two, gap, verdict):
    result = difference_check([matrix(*eight)], [matrix(*two)], "f1", read_printed(gap, "gap"))
    assert result.verdict == verdict


def test_the_random_gap_is_found_from_the_printed_rows_alone():
    eight = fitting_matrices(1500, 1500, typed(f1="0.8713", precision="0.9652", recall="0.7940"))
    two = fitting_matrices(1500, 1500, typed(f1="0.8397", precision="0.7459", recall="0.9607"))
    result = difference_check(eight.matrices, two.matrices, "f1", read_printed("0.0316", "gap"))
    assert result.verdict == "rounded_only"
    assert result.exact == Fraction(2382, 2734) - Fraction(2882, 3432)
    assert result.rounded == Fraction(316, 10000)


def test_the_ranges_of_table_8_from_its_fitted_rows():
    baseline, beta_15, entropy = matrix(1174, 182), matrix(1079, 84), matrix(1118, 121)
    # The largest gain in precision, 0.9278 - 0.8658 = 6.20 points, is that of the exact values too;
    # the largest cost in recall, 0.7827 - 0.7193 = 6.34, is not: 95/1500 is 6.33.
    assert difference_check([beta_15], [baseline], "precision", points("6.20")).verdict == "exact"
    assert difference_check([baseline], [beta_15], "recall", points("6.34")).verdict == "rounded_only"
    assert difference_check([baseline], [beta_15], "recall", points("6.33")).verdict == "exact"
    assert difference_check([baseline], [beta_15], "recall", points("5.8")).verdict == "neither"
    # 56/1500 = 3.733 points, and 0.7827 - 0.7453 = 3.74
    assert difference_check([baseline], [entropy], "recall", points("3.74")).verdict == "rounded_only"


def test_a_negative_difference_has_its_sign():
    result = difference_check([matrix(1441, 491)], [matrix(1191, 43)], "f1", points("-3.15"))
    assert result.verdict == "exact"
    assert (
        difference_check([matrix(1441, 491)], [matrix(1191, 43)], "f1", points("3.15")).verdict == "neither"
    )


def test_without_candidates_there_is_no_difference():
    result = difference_check([], [matrix(1, 1)], "f1", points("1.00"))
    assert (result.verdict, result.exact, result.rounded) == ("no_matrix", None, None)


def test_an_undefined_candidate_is_refused():
    with pytest.raises(AuditError, match="precision is undefined"):
        difference_check([matrix(0, 0)], [matrix(1, 1)], "precision", points("1.00"))


def test_several_candidates_leave_no_single_difference():
    result = difference_check([matrix(1, 0, 4), matrix(2, 0, 4)], [matrix(0, 0, 4)], "recall", points("25"))
    assert (result.verdict, result.exact) == ("exact", None)  # 1/4 - 0


@pytest.mark.parametrize(
    ("digits", "rounding", "fits"),
    [
        # 1/8 = 0.125: half-up 0.13, half-even 0.12, either both
        (12, "half_up", False),
        (13, "half_up", True),
        (12, "half_even", True),
        (13, "half_even", False),
        (12, "either", True),
        (13, "either", True),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_a_difference_that_is_a_half(digits, rounding, fits, sign):
    pair = [matrix(1, 0, half=8)], [matrix(0, 0, half=8)]
    above, below = pair if sign > 0 else pair[::-1]
    printed = PrintedValue(sign * digits, 2, "")
    result = difference_check(above, below, "recall", printed, decimals=3, rounding=rounding)
    assert result.verdict == ("exact" if fits else "neither")


# Eighths are halves at two decimals (0.125, 0.375), where the rounding decides; the rest are any digits.
DIGITS = st.sampled_from([-38, -37, -13, -12, 12, 13, 37, 38, 62, 63]) | st.integers(-100, 100)
cells = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=6)


@given(cells, cells, DIGITS, st.sampled_from(["half_up", "half_even", "either"]))
def test_verdict_equals_trying_every_pair(above, below, digits, rounding):
    printed = PrintedValue(digits, 2, "")
    wanted = printed.interval(rounding)
    left, right = ([Fraction(tp, 8) for tp, _ in side] for side in (above, below))
    exact = any(wanted.holds(a - b) for a in left for b in right)
    tenths = [[Fraction(round_half_up(value, 1)) for value in side] for side in (left, right)]
    rounded = any(wanted.holds(a - b) for a in tenths[0] for b in tenths[1])
    result = difference_check(
        [matrix(*cell, half=8) for cell in above],
        [matrix(*cell, half=8) for cell in below],
        "recall",
        printed,
        decimals=1,
        rounding=rounding,
    )
    assert result.verdict == ("exact" if exact else "rounded_only" if rounded else "neither")
