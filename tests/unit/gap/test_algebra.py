"""The gap algebra: the paper's numbers, laws on random tables, degenerate cases."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scores.decision_files import TABLE_7

from readout_audit.exact import printed
from readout_audit.gap.algebra import (
    NO_FLIPS,
    RATES,
    Base,
    FlipRates,
    Ratio,
    agreement,
    base,
    decompose,
    flip_counts,
    flip_rates,
    joint_bounds,
    only,
    pooled_flip_rate,
    rebuild,
    rebuilt_f1,
)
from readout_audit.gap.transitions import Paired, pair
from readout_audit.scores.confusion import INVALID, NO, UNPARSED, YES, Confusion, count

# Section 3.4 of the paper (arXiv 2610.25964), numerators and denominators from its Tables 7 and 13.
SECTION_3_4 = {
    "adversarial": {
        "rho_n": (660, 1318, "0.501"),
        "phi": (264, 326, "0.810"),
        "pooled": (924, 1644, "0.562"),
    },
    "popular": {"rho_n": (567, 1388, "0.409"), "phi": (250, 309, "0.809"), "pooled": (817, 1697, "0.481")},
    "random": {"rho_n": (448, 1457, "0.307"), "phi": (250, 309, "0.809"), "pooled": (698, 1766, "0.395")},
}
AGREEMENT = {"adversarial": (2076, "0.692"), "popular": (2183, "0.728"), "random": (2302, "0.767")}


def published(split):
    """Table 7's counts, eight-token to two-token."""
    return Paired(
        *(TABLE_7[split][label][step] for label in ("yes", "no") for step in ("yy", "yn", "ny", "nn"))
    )


@pytest.mark.parametrize("split", SECTION_3_4)
def test_section_3_4_at_its_printed_rounding(split):
    paired = published(split)
    found = flip_counts(paired) | {"pooled": pooled_flip_rate(paired)}
    for name, (numerator, denominator, value) in SECTION_3_4[split].items():
        assert found[name] == (numerator, denominator)
        assert printed(found[name].value, 3) == value
    assert found["yes_to_no_pos"].value == found["yes_to_no_neg"].value == 0
    assert agreement(paired) == (AGREEMENT[split][0], 3000)
    assert printed(agreement(paired).value, 3) == AGREEMENT[split][1]


@pytest.mark.parametrize(
    ("split", "before", "after"),
    [
        ("adversarial", (2348, 2856), (2876, 3780)),
        ("popular", (2382, 2803), (2882, 3620)),
        ("random", (2382, 2734), (2882, 3432)),
    ],
)
def test_two_token_f1_rebuilt_from_the_rates(split, before, after):
    paired = published(split)
    assert paired.before.f1 == Fraction(*before)
    # As counted, not merely equal: the rates give whole numbers of rows back.
    assert rebuilt_f1(base(paired.before), flip_rates(paired)) == after
    assert paired.after.f1 == Fraction(*after)


def test_phi_zero_and_transferred_rates():
    adversarial = published("adversarial")
    rates = flip_rates(adversarial)
    without_phi = rebuilt_f1(
        base(adversarial.before), only(rates, ("rho_n", "yes_to_no_pos", "yes_to_no_neg"))
    )
    assert without_phi == (2348, 3516)
    assert printed(without_phi.value, 4) == "0.6678"
    for split, value in (("popular", "0.7690"), ("random", "0.7761")):
        assert printed(rebuilt_f1(base(published(split).before), rates).value, 4) == value


def test_reduces_to_the_papers_identity():
    start = Base(P=1500, N=1500, T=1174, G=1318)
    rho, phi = Fraction(660, 1318), Fraction(264, 326)
    assert rebuild(start, FlipRates(rho, phi, Fraction(0), Fraction(0))) == (
        start.T + phi * (start.P - start.T),
        (start.N - start.G) + rho * start.G,
    )


counts = st.builds(Paired, *[st.integers(0, 40)] * 8)


@given(counts)
def test_identity_is_exact_with_flips_in_both_directions(paired):
    rebuilt = rebuild(base(paired.before), flip_rates(paired))
    assert rebuilt == (paired.after.tp, paired.after.fp)
    assert rebuilt_f1(base(paired.before), flip_rates(paired)).value == paired.after.f1


@given(counts)
def test_parts_sum_to_the_gap(paired):
    rates = flip_rates(paired)
    parts = decompose(base(paired.before), rates)
    if parts is None:
        assert paired.pos_yy + paired.pos_yn + paired.pos_ny + paired.pos_nn == 0
        return
    assert sum(parts.values()) == paired.before.f1 - paired.after.f1
    for name in RATES:
        if not getattr(rates, name):
            assert parts[name] == 0
    # More misses and more false alarms never raise F1; fewer never lower it.
    assert parts["rho_n"] >= 0 and parts["yes_to_no_pos"] >= 0
    assert parts["phi"] <= 0 and parts["yes_to_no_neg"] <= 0


def test_parts_by_hand():
    # P = N = 10, T = 6, G = 8. Only rho_n = 1/2 and phi = 1/2 act: TP 6 or 8, FP 2 or 6.
    paired = Paired(6, 0, 2, 2, 2, 0, 4, 4)
    none, rho, phi, both = Fraction(12, 18), Fraction(12, 22), Fraction(16, 20), Fraction(16, 24)
    parts = decompose(base(paired.before), flip_rates(paired))
    assert parts["rho_n"] == ((none - rho) + (phi - both)) / 2
    assert parts["phi"] == ((none - phi) + (rho - both)) / 2


@given(counts)
def test_there_and_back(paired):
    assert paired.reversed.reversed == paired
    assert (paired.reversed.before, paired.reversed.after) == (paired.after, paired.before)
    assert agreement(paired.reversed) == agreement(paired)
    assert paired.before.n == paired.after.n == paired.n


@given(counts)
def test_bounds_hold_what_was_paired(paired):
    bounds = joint_bounds(paired.before, paired.after)
    found = flip_counts(paired) | {
        "pooled_flip_rate": pooled_flip_rate(paired),
        "agreement": agreement(paired),
    }
    assert bounds.keys() == found.keys()
    for name, ratio in found.items():
        assert bounds[name].low.denominator == bounds[name].high.denominator == ratio.denominator
        assert bounds[name].low.numerator <= ratio.numerator <= bounds[name].high.numerator


def test_bounds_are_the_extremes_of_every_pairing_of_two_matrices():
    before, after = Confusion(tp=3, fp=1, tn=2, fn=1), Confusion(tp=2, fp=2, tn=1, fn=2)
    possible = [
        paired
        for paired in (Paired(*cells) for cells in product(range(5), repeat=8) if sum(cells) == 7)
        if (paired.before, paired.after) == (before, after)
    ]
    assert len(possible) > 2
    bounds = joint_bounds(before, after)
    for name in RATES:
        values = [flip_counts(paired)[name].value for paired in possible]
        assert (bounds[name].low.value, bounds[name].high.value) == (min(values), max(values))
    for name, rule in (("pooled_flip_rate", pooled_flip_rate), ("agreement", agreement)):
        values = [rule(paired).value for paired in possible]
        assert (bounds[name].low.value, bounds[name].high.value) == (min(values), max(values))


def test_bounds_of_different_questions_are_refused():
    with pytest.raises(ValueError, match="different questions"):
        joint_bounds(Confusion(1, 0, 1, 0), Confusion(1, 0, 0, 0))


def test_nothing_to_flip_leaves_the_rate_undefined_and_the_identity_whole():
    all_yes_to_all_no = Paired(0, 5, 0, 0, 0, 5, 0, 0)
    rates = flip_rates(all_yes_to_all_no)
    assert rates == FlipRates(rho_n=None, phi=None, yes_to_no_pos=Fraction(1), yes_to_no_neg=Fraction(1))
    assert rebuild(base(all_yes_to_all_no.before), rates) == (0, 0)
    assert rebuilt_f1(base(all_yes_to_all_no.before), rates) == (0, 5)
    # The same rates say nothing about no answers elsewhere.
    assert rebuild(base(published("random").before), rates) is None
    assert rebuilt_f1(base(published("random").before), rates) is None


def test_undefined_stays_undefined():
    nothing = Paired(0, 0, 0, 0, 0, 0, 0, 0)
    assert flip_rates(nothing) == (None, None, None, None)
    assert rebuilt_f1(base(nothing.before), flip_rates(nothing)) == Ratio(0, 0)
    assert Ratio(0, 0).value is None
    assert decompose(base(nothing.before), NO_FLIPS) is None
    negatives_only = Paired(0, 0, 0, 0, 0, 0, 0, 4)
    assert rebuilt_f1(base(negatives_only.before), flip_rates(negatives_only)).value is None


answers = st.lists(
    st.tuples(st.sampled_from([YES, NO]), *[st.sampled_from([YES, NO, UNPARSED, INVALID])] * 2), max_size=40
)


@given(answers)
def test_pairing_leaves_out_what_was_not_answered_and_counts_it(rows):
    labels, before, after = (np.array([row[i] for row in rows], np.int8) for i in range(3))
    paired, unpaired = pair(labels, before, after)
    assert paired.n + unpaired.invalid + unpaired.unparsed == len(rows)
    assert unpaired.invalid == sum(INVALID in row[1:] for row in rows)
    kept = np.array([row[1] <= NO and row[2] <= NO for row in rows], bool)
    assert paired.before == count(labels[kept], before[kept])
    assert paired.after == count(labels[kept], after[kept])


def test_pairing_by_hand():
    rows = [(YES, YES, YES), (YES, NO, YES), (YES, NO, YES), (NO, YES, NO), (NO, NO, NO), (NO, NO, UNPARSED)]
    paired, unpaired = pair(*(np.array([row[i] for row in rows], np.int8) for i in range(3)))
    assert paired == Paired(1, 0, 2, 0, 0, 1, 0, 1)
    assert unpaired == (0, 1)
