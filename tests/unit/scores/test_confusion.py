"""Rates of a confusion matrix: definitions, degenerate cases, invariances."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readout_audit.exact import printed
from readout_audit.scores.confusion import INVALID, NO, UNPARSED, YES, Confusion, count, count_ties, total
from scores.decision_files import TABLE_7

# Tables 2 and 13 of the paper (arXiv 2610.25964): F1, precision, recall, yes-rate as printed.
TABLE_2 = {
    ("adversarial", "two"): ("0.7608", "0.6307", "0.9587", "0.760"),
    ("adversarial", "eight"): ("0.8221", "0.8658", "0.7827", "0.452"),
    ("popular", "two"): ("0.7961", "0.6797", "0.9607", "0.707"),
    ("popular", "eight"): ("0.8498", "0.9140", "0.7940", "0.434"),
    ("random", "two"): ("0.8397", "0.7459", "0.9607", "0.644"),
    ("random", "eight"): ("0.8713", "0.9652", "0.7940", "0.411"),
}
F1_FRACTIONS = {
    ("adversarial", "eight"): (2348, 2856),
    ("popular", "eight"): (2382, 2803),
    ("random", "eight"): (2382, 2734),
    ("adversarial", "two"): (2876, 3780),
    ("popular", "two"): (2882, 3620),
    ("random", "two"): (2882, 3432),
}
TABLE_13 = {
    "adversarial": (1174, 182, 1318, 326),
    "popular": (1191, 112, 1388, 309),
    "random": (1191, 43, 1457, 309),
}


def published(split: str, readout: str) -> Confusion:
    """Add Table 7's transitions up to the matrix of one readout."""
    side = 0 if readout == "eight" else 1
    said = {
        (label, answer): sum(n for step, n in cells.items() if step[side] == answer)
        for label, cells in TABLE_7[split].items()
        for answer in "yn"
    }
    return Confusion(said["yes", "y"], said["no", "y"], said["no", "n"], said["yes", "n"])


@pytest.mark.parametrize(("split", "readout"), TABLE_2)
def test_table_2_at_its_printed_rounding(split, readout):
    matrix = published(split, readout)
    rates = (matrix.f1, matrix.precision, matrix.recall)
    assert (*(printed(rate, 4) for rate in rates), printed(matrix.yes_rate, 3)) == TABLE_2[split, readout]
    assert matrix.f1 == Fraction(*F1_FRACTIONS[split, readout])


@pytest.mark.parametrize("split", TABLE_13)
def test_table_13_follows_from_table_7(split):
    assert published(split, "eight") == Confusion(*TABLE_13[split])


def test_unparsed_is_wrong_but_never_a_yes_and_invalid_enters_no_rate():
    # 10 positives: 4 yes, 2 no, 3 unparsed, 1 invalid. 8 negatives: 1 yes, 4 no, 1 unparsed, 2 invalid.
    matrix = Confusion(tp=4, fp=1, tn=4, fn=2, unparsed_pos=3, unparsed_neg=1, invalid_pos=1, invalid_neg=2)
    assert matrix.n == 18
    assert matrix.f1 == Fraction(2 * 4, 2 * 4 + 1 + 2 + 3)
    assert matrix.recall == Fraction(4, 4 + 2 + 3)
    assert matrix.precision == Fraction(4, 5)
    assert matrix.accuracy == Fraction(4 + 4, 18 - 3)
    assert matrix.yes_rate == Fraction(5, 18 - 3)
    parsed = matrix.parsed_only
    assert (parsed.f1, parsed.recall, parsed.accuracy) == (Fraction(8, 11), Fraction(4, 6), Fraction(8, 11))
    assert parsed.precision == matrix.precision


DEGENERATE = {
    "all yes": (Confusion(5, 5, 0, 0), (Fraction(2, 3), Fraction(1, 2), 1, Fraction(1, 2), 1)),
    "all no": (Confusion(0, 0, 5, 5), (0, None, 0, Fraction(1, 2), 0)),
    "empty": (Confusion(0, 0, 0, 0), (None, None, None, None, None)),
    "nothing parsed": (Confusion(0, 0, 0, 0, 3, 3), (None, None, 0, 0, 0)),
    "all invalid": (Confusion(0, 0, 0, 0, 0, 0, 3, 3), (None, None, None, None, None)),
    "positives only, all found": (Confusion(4, 0, 0, 0), (1, 1, 1, 1, 1)),
    "negatives only, all refused": (Confusion(0, 0, 4, 0), (None, None, None, 1, 0)),
    "negatives only, one yes": (Confusion(0, 1, 3, 0), (0, 0, None, Fraction(3, 4), Fraction(1, 4))),
}


@pytest.mark.parametrize("case", DEGENERATE)
def test_degenerate(case):
    matrix, expected = DEGENERATE[case]
    assert (matrix.f1, matrix.precision, matrix.recall, matrix.accuracy, matrix.yes_rate) == expected


def test_all_yes_floor_prints_as_the_paper_has_it():
    assert printed(Confusion(1500, 1500, 0, 0).f1, 4) == "0.6667"


answered = st.lists(
    st.tuples(st.sampled_from([YES, NO]), st.sampled_from([YES, NO, UNPARSED, INVALID]), st.booleans()),
    max_size=40,
)


def columns(rows):
    labels, answers, ties = zip(*rows, strict=True) if rows else ((), (), ())
    return np.array(labels, np.int8), np.array(answers, np.int8), np.array(ties, bool)


@given(answered)
def test_counting_equals_counting_one_by_one(rows):
    labels, answers, _ = columns(rows)
    by_hand = Confusion(
        tp=sum((label, answer) == (YES, YES) for label, answer, _ in rows),
        fp=sum((label, answer) == (NO, YES) for label, answer, _ in rows),
        tn=sum((label, answer) == (NO, NO) for label, answer, _ in rows),
        fn=sum((label, answer) == (YES, NO) for label, answer, _ in rows),
        unparsed_pos=sum((label, answer) == (YES, UNPARSED) for label, answer, _ in rows),
        unparsed_neg=sum((label, answer) == (NO, UNPARSED) for label, answer, _ in rows),
        invalid_pos=sum((label, answer) == (YES, INVALID) for label, answer, _ in rows),
        invalid_neg=sum((label, answer) == (NO, INVALID) for label, answer, _ in rows),
    )
    assert count(labels, answers) == by_hand
    assert by_hand.n == len(rows)


@given(answered, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter_and_parts_add_up(rows, random):
    shuffled = random.sample(rows, len(rows))
    cut = random.randint(0, len(rows))
    whole = count(*columns(rows)[:2])
    assert count(*columns(shuffled)[:2]) == whole
    assert total([count(*columns(part)[:2]) for part in (shuffled[:cut], shuffled[cut:])]) == whole


@given(answered)
def test_tie_policies_bound_what_a_tie_can_do(rows):
    labels, answers, tie = columns(rows)
    policies = count_ties(labels, answers, tie)
    whole = count(labels, answers)
    assert policies.to_yes.n == policies.to_no.n == whole.n == policies.excluded.n + policies.ties
    assert (
        policies.to_no.tp + policies.to_no.fp
        <= whole.tp + whole.fp
        <= policies.to_yes.tp + policies.to_yes.fp
    )
    # What could not be read was not tied.
    assert policies.excluded[4:] == whole[4:]


def test_ties_by_hand():
    # yes/tie, no/tie, yes, no, unparsed with a tie mark (never taken as tied).
    labels = np.array([YES, NO, YES, NO, YES], np.int8)
    answers = np.array([NO, NO, YES, NO, UNPARSED], np.int8)
    policies = count_ties(labels, answers, np.array([True, True, False, False, True]))
    assert policies.ties == 2
    assert policies.to_yes == Confusion(tp=2, fp=1, tn=1, fn=0, unparsed_pos=1)
    assert policies.to_no == Confusion(tp=1, fp=0, tn=2, fn=1, unparsed_pos=1)
    assert policies.excluded == Confusion(tp=1, fp=0, tn=1, fn=0, unparsed_pos=1)


def test_exchanging_the_labels_exchanges_the_cells():
    matrix = published("adversarial", "two")
    labels = np.repeat([YES, NO, NO, YES], matrix[:4]).astype(np.int8)
    answers = np.repeat([YES, YES, NO, NO], matrix[:4]).astype(np.int8)
    exchanged = count(1 - labels, 1 - answers)
    assert exchanged == Confusion(tp=matrix.tn, fp=matrix.fn, tn=matrix.tp, fn=matrix.fp)
    assert exchanged.accuracy == matrix.accuracy
