"""Entropies and moments against numbers worked out by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from readout_audit.signals.distribution import describe, spread_entropy

LOGITS = st.lists(st.floats(-30, 30, width=32), min_size=2, max_size=40)


def test_a_half_and_two_quarters() -> None:
    # p = (1/2, 1/4, 1/4), ℓ = ln p: Z = 1; H = 1/2·ln 2 + 2·1/4·ln 4 = 1.5 ln 2; log V = ln 3
    found = describe(torch.log(torch.tensor([[0.5, 0.25, 0.25]], dtype=torch.float64)))
    assert float(found.log_z) == pytest.approx(0.0, abs=1e-15)
    assert float(found.entropy) == pytest.approx(1.5 * math.log(2), rel=1e-14)
    assert float(found.entropy_normalised) == pytest.approx(1.5 * math.log(2) / math.log(3), rel=1e-14)


def test_moments_have_divisor_n() -> None:
    # 1, 2, 3, 6: mean 3, squared deviations 4 + 1 + 0 + 9 = 14, variance 14/4
    found = describe(torch.tensor([[1.0, 2.0, 3.0, 6.0]]))
    assert float(found.logit_mean) == 3.0
    assert float(found.logit_sd) == pytest.approx(math.sqrt(3.5), rel=1e-15)
    assert (float(found.logit_min), float(found.logit_max)) == (1.0, 6.0)


def test_extremes() -> None:
    equal, certain = describe(torch.tensor([[7.0] * 5, [1000.0, 0.0, 0.0, 0.0, 0.0]])).entropy_normalised
    assert float(equal) == pytest.approx(1.0, abs=1e-12)
    assert float(certain) == 0.0


@given(LOGITS, st.floats(-20, 20))
@settings(max_examples=60)
def test_entropy_knows_no_common_shift(logits: list[float], shift: float) -> None:
    values = torch.tensor([logits], dtype=torch.float64)
    here, there = describe(values), describe(values + shift)
    assert float(there.entropy) == pytest.approx(float(here.entropy), abs=1e-9)
    assert float(there.log_z) == pytest.approx(float(here.log_z) + shift, abs=1e-9)
    assert 0.0 <= float(here.entropy_normalised) <= 1.0 + 1e-12


def test_spread_of_three_to_one() -> None:
    # shares 3/4, 1/4: H = 3/4·ln(4/3) + 1/4·ln 4 = 0.562335, over ln 2 = 0.811278 (the binary entropy of 1/4)
    assert spread_entropy(torch.tensor([3.0, 1.0])) == pytest.approx(0.8112781244591328, rel=1e-12)


@pytest.mark.parametrize(
    ("weights", "expected"),
    [([0.2] * 7, 1.0), ([0.0, 5.0, 0.0], 0.0), ([0.0, 0.0], None), ([1.0], None), ([], None)],
)
def test_spread_of_even_single_and_no_weight(weights: list[float], expected: float | None) -> None:
    found = spread_entropy(torch.tensor(weights))
    assert found is None if expected is None else found == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.floats(0.001, 1), min_size=2, max_size=30), st.floats(0.1, 100))
@settings(max_examples=60)
def test_spread_knows_no_common_factor_and_no_order(weights: list[float], factor: float) -> None:
    values = torch.tensor(weights, dtype=torch.float64)
    found = spread_entropy(values)
    assert found is not None and 0.0 <= found <= 1.0
    assert spread_entropy(values * factor) == pytest.approx(found, abs=1e-9)
    assert spread_entropy(values.flip(0)) == pytest.approx(found, abs=1e-9)
