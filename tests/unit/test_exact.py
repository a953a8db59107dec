"""Exact rounding and its inverse: expected values derived by hand, laws by hypothesis."""

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readout_audit.errors import AuditError
from readout_audit.exact import (
    Interval,
    PrintedValue,
    interval_of_printed,
    printed,
    prints_as,
    read_printed,
    round_half_up,
)

rationals = st.fractions(min_value=-2, max_value=2, max_denominator=4000)
decimals = st.integers(min_value=0, max_value=6)


@pytest.mark.parametrize(
    ("value", "places", "expected"),
    [
        (Fraction(2348, 2856), 4, "0.8221"),  # 0.82212885...
        (Fraction(125, 100000), 4, "0.0013"),  # a half goes away from zero
        (Fraction(-125, 100000), 4, "-0.0013"),
        (Fraction(115, 100000), 4, "0.0012"),  # half-even would agree here, half-down not
        (Fraction(1, 2), 0, "1"),
        (Fraction(-1, 2), 0, "-1"),
        (Fraction(1, 2), 4, "0.5000"),  # trailing zeros stay
        (Fraction(-1, 100000), 4, "0.0000"),  # no minus zero
        (Fraction(199999, 200000), 4, "1.0000"),  # 0.999995 carries into the units
        (3, 2, "3.00"),
        (0, 3, "0.000"),
    ],
)
def test_printed_by_hand(value, places, expected):
    assert printed(value, places) == expected
    assert round_half_up(value, places) == Decimal(expected)


def test_undefined_is_a_word_not_a_number():
    assert printed(None, 4) == "undefined"
    assert not prints_as(None, "0.0000")


def test_the_decimal_context_does_not_round_the_result():
    with localcontext() as context:
        context.prec = 3
        assert str(round_half_up(Fraction(123456789, 10), 2)) == "12345678.90"


def test_negative_decimals_are_refused():
    with pytest.raises(ValueError, match="0 or more"):
        round_half_up(Fraction(1, 3), -1)
    with pytest.raises(ValueError, match="0 or more"):
        interval_of_printed(10, -1)


@pytest.mark.parametrize(
    ("text", "rounding", "expected"),
    [
        # half a unit is 0.05 = 1/20
        ("0.3", "half_up", Interval(Fraction(1, 4), Fraction(7, 20), True, False)),
        ("-0.3", "half_up", Interval(Fraction(-7, 20), Fraction(-1, 4), False, True)),
        ("0.0", "half_up", Interval(Fraction(-1, 20), Fraction(1, 20), False, False)),
        ("0.3", "half_even", Interval(Fraction(1, 4), Fraction(7, 20), False, False)),
        ("0.4", "half_even", Interval(Fraction(7, 20), Fraction(9, 20), True, True)),
        ("-0.3", "half_even", Interval(Fraction(-7, 20), Fraction(-1, 4), False, False)),
        ("0.3", "either", Interval(Fraction(1, 4), Fraction(7, 20), True, True)),
    ],
)
def test_interval_by_hand(text, rounding, expected):
    assert interval_of_printed(text, rounding=rounding) == expected


@pytest.mark.parametrize("number", ["0.1", 0.1, np.float64(0.1), Decimal("0.1"), Fraction(1, 10)])
def test_a_number_stands_for_its_shortest_decimal(number):
    assert interval_of_printed(number, 2, "half_up").lo == Fraction(19, 200)


def test_decimals_must_be_known_and_enough():
    with pytest.raises(ValueError, match="only a text shows them"):
        interval_of_printed(0.5)
    with pytest.raises(ValueError, match="more than 2 digits"):
        interval_of_printed("0.125", 2)
    with pytest.raises(ValueError, match="rounding must be one of"):
        interval_of_printed("0.1", 1, "down")  # type: ignore[arg-type]


def test_either_covers_how_python_prints_binary_floats():
    # 3/80 = 0.0375 and 1/80 = 0.0125 are halves at three decimals; neither is a binary fraction.
    assert (f"{3 / 80:.3f}", f"{1 / 80:.3f}") == ("0.037", "0.013")
    assert prints_as(Fraction(3, 80), "0.037", rounding="either")
    assert prints_as(Fraction(1, 80), "0.013", rounding="either")
    assert not prints_as(Fraction(3, 80), "0.037", rounding="half_up")
    assert not prints_as(Fraction(3, 80), "0.037", rounding="half_even")


@given(rationals, decimals)
def test_half_up_and_its_interval_are_inverse(value, places):
    text = printed(value, places)
    unit = Fraction(1, 10**places)
    assert prints_as(value, text)
    assert not prints_as(value, Fraction(text) + unit, places)
    assert not prints_as(value, Fraction(text) - unit, places)


@given(rationals, decimals)
def test_half_even_agrees_with_pythons_exact_round(value, places):
    rounded = round(value, places)  # Fraction.__round__ is exact and half-even
    unit = Fraction(1, 10**places)
    assert [prints_as(value, rounded + step * unit, places, "half_even") for step in (-1, 0, 1)] == [
        False,
        True,
        False,
    ]


@given(st.integers(min_value=-30, max_value=30), st.integers(min_value=0, max_value=2))
def test_halves_by_every_rounding(digits, places):
    half = Fraction(2 * digits + 1, 2 * 10**places)  # between digits and digits + 1
    below, above = Fraction(digits, 10**places), Fraction(digits + 1, 10**places)
    assert prints_as(half, below, places, "either") and prints_as(half, above, places, "either")
    for rounding in ("half_up", "half_even"):
        assert prints_as(half, below, places, rounding) != prints_as(half, above, places, rounding)


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("0.8960", {}, (8960, 4)),
        (".5", {}, (5, 1)),
        ("1", {}, (1, 0)),
        ("1.", {}, (1, 0)),
        (" 0.50 ", {}, (50, 2)),
        ("89.60", {"percent": True}, (8960, 4)),
        ("89.60%", {}, (8960, 4)),
        ("100", {"percent": True}, (100, 2)),
        ("0.896", {"decimals": 4}, (8960, 4)),
        ("0", {"decimals": 4}, (0, 4)),
        ("-0.0316", {"signed": True}, (-316, 4)),
        ("+6.13", {"percent": True, "signed": True}, (613, 4)),
    ],
)
def test_read_printed(text, options, expected):
    value = read_printed(text, "precision", **options)
    assert (value.digits, value.decimals) == expected
    assert value.value == Fraction(expected[0], 10 ** expected[1])
    assert value.text == text.strip()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("0,89", {}, "not a plain decimal"),
        ("", {}, "not a plain decimal"),
        (".", {}, "not a plain decimal"),
        ("nan", {}, "not a plain decimal"),
        ("1e-1", {}, "not a plain decimal"),
        ("0." + "0" * 5000, {}, "not a plain decimal"),
        ("٠.٥", {}, "not a plain decimal"),
        ("-0.1", {}, "negative"),
        ("89.63", {}, "--percent"),
        ("1.0001", {}, "--percent"),
        ("100.1", {"percent": True}, "over 100%"),
        ("0.89635", {"decimals": 4}, "more than the 4 decimals"),
    ],
)
def test_read_printed_refuses_in_one_sentence(text, options, message):
    with pytest.raises(AuditError, match=message) as caught:
        read_printed(text, "rows.csv, row 3, precision", **options)
    assert str(caught.value).startswith("rows.csv, row 3, precision: ")
    assert "\n" not in str(caught.value)


def test_a_value_is_shown_in_the_place_of_a_printed_one():
    third = Fraction(1, 3)
    assert read_printed("0.8960", "f1").like(third) == "0.3333"
    assert read_printed("89.6", "f1", percent=True).like(third) == "33.3"
    assert read_printed("90%", "f1").like(third) == "33"
    assert read_printed("90%", "f1").like(None) == "undefined"


def test_interval_of_a_printed_value():
    assert PrintedValue(3, 1, "0.3").interval("half_up") == interval_of_printed("0.3", rounding="half_up")
