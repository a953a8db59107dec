"""The search against values derived by hand, against brute force, and against its own law."""

from fractions import Fraction

import pytest
from consistency_oracle import conflicts, fitting, metrics, nearest, typed
from hypothesis import given, settings
from hypothesis import strategies as st

from readout_audit.consistency import region
from readout_audit.consistency.metrics import METRICS, Matrix
from readout_audit.consistency.search import MOST_QUESTIONS, fitting_matrices
from readout_audit.errors import AuditError
from readout_audit.exact import ROUNDINGS, PrintedValue, printed, read_printed

SMALL = st.integers(min_value=0, max_value=7)


@st.composite
def printed_rows(draw):
    """Small counts and texts for some metrics: those of one matrix, some of them shifted by a few digits."""
    positives, negatives = draw(st.tuples(SMALL, SMALL).filter(any))
    tp, fp = draw(st.integers(0, positives)), draw(st.integers(0, negatives))
    values = metrics(positives, negatives, tp, fp)
    texts = {}
    for name in draw(st.lists(st.sampled_from(METRICS), min_size=1, unique=True)):
        decimals = draw(st.integers(0, 3))
        shift = draw(st.sampled_from([0, 0, 0, 1, -1, 4]))
        value = (values[name] or Fraction(0)) + shift * Fraction(1, 10**decimals)
        texts[name] = printed(min(max(value, Fraction(0)), Fraction(1)), decimals)
    return positives, negatives, texts


@settings(max_examples=200)
@given(printed_rows(), st.sampled_from(ROUNDINGS))
def test_search_equals_brute_force(row, rounding):
    positives, negatives, texts = row
    result = fitting_matrices(positives, negatives, typed(**texts), rounding=rounding, limit=100)
    assert [(matrix.tp, matrix.fp) for matrix in result.matrices] == fitting(*row, rounding)
    assert result.count == len(result.matrices)
    assert all(m.tp + m.fn == positives and m.fp + m.tn == negatives for m in result.matrices)


@settings(max_examples=100)
@given(printed_rows(), st.sampled_from(ROUNDINGS))
def test_blame_and_nearest_equal_brute_force(row, rounding):
    result = fitting_matrices(row[0], row[1], typed(**row[2]), rounding=rounding)
    if result.fits:
        assert result.conflicts == () and result.nearest is None and result.blame == ""
        return
    assert {frozenset(group) for group in result.conflicts} == conflicts(*row, rounding)
    assert len(set(result.conflicts)) == len(result.conflicts)
    distance, cells = nearest(*row)
    assert result.nearest is not None
    assert result.nearest.distance == distance
    assert (result.nearest.matrix.tp, result.nearest.matrix.fp) == cells[0]
    assert result.nearest.count == len(cells)


@settings(max_examples=200)
@given(st.data(), st.integers(1, 90), st.integers(0, 90), st.sampled_from(["half_up", "either"]))
def test_a_matrix_is_always_among_those_that_print_its_values(data, positives, negatives, rounding):
    tp, fp = data.draw(st.integers(0, positives)), data.draw(st.integers(0, negatives))
    values = metrics(positives, negatives, tp, fp)
    names = data.draw(st.lists(st.sampled_from(METRICS), min_size=1, unique=True))
    places = data.draw(st.integers(0, 6))
    texts = {name: printed(values[name] or Fraction(0), places) for name in names}
    result = fitting_matrices(positives, negatives, typed(**texts), rounding=rounding, limit=91 * 91)
    assert Matrix(tp, fp, positives - tp, negatives - fp) in result.matrices


@settings(max_examples=60)
@given(printed_rows())
def test_values_in_percent_are_the_same_values(row):
    positives, negatives, texts = row
    percents = {
        name: read_printed(printed(100 * Fraction(text), max(len(text) - 4, 0)), name, percent=True)
        for name, text in texts.items()
        if len(text) >= 4  # "0.50" is "50"; fewer decimals have no percent text of the same precision
    }
    if percents:
        fractions = typed(**{name: texts[name] for name in percents})
        one, other = (fitting_matrices(positives, negatives, values) for values in (fractions, percents))
        assert (one.count, one.matrices, one.conflicts) == (other.count, other.matrices, other.conflicts)


@settings(max_examples=60)
@given(printed_rows())
def test_blocks_do_not_change_the_answer(row):
    positives, negatives, texts = row
    whole = fitting_matrices(positives, negatives, typed(**texts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region, "BLOCK", 2)
        assert fitting_matrices(positives, negatives, typed(**texts)) == whole


def test_two_positives_two_negatives_by_hand():
    # F1 0.5 at one decimal is [0.45, 0.55]: 2tp / (2 + tp + fp). tp 0 gives 0; tp 1 gives 2/3, 1/2, 2/5; tp 2
    # gives 1, 4/5, 2/3. Only (1, 1) fits.
    assert fitting_matrices(2, 2, typed(f1="0.5")).matrices == (Matrix(1, 1, 1, 1),)


def test_halves_go_with_the_rounding():
    # recall 1/8 = 0.125 is a half at two decimals: 0.13 half-up, 0.12 half-even; either accepts both.
    fits = {
        (text, rounding): fitting_matrices(8, 0, typed(recall=text), rounding=rounding).fits
        for text in ("0.12", "0.13")
        for rounding in ROUNDINGS
    }
    assert [key for key, fit in fits.items() if fit] == [
        ("0.12", "half_even"),
        ("0.12", "either"),
        ("0.13", "half_up"),
        ("0.13", "either"),
    ]


def test_precision_of_nothing_called_yes_is_accepted_as_printed_zero_with_a_note():
    result = fitting_matrices(1500, 1500, typed(precision="0.0000", recall="0.0000", yes_rate="0.0000"))
    assert result.matrices == (Matrix(0, 0, 1500, 1500),)
    assert len(result.notes) == 1
    assert result.notes[0].startswith("precision is undefined (0/0) for tp 0, fp 0,")
    # One yes, and a wrong one: precision is 0/1, defined, and nothing needs a note.
    one_yes = fitting_matrices(1500, 1500, typed(precision="0.0000", recall="0.0000", yes_rate="0.0003"))
    assert one_yes.matrices == (Matrix(0, 1, 1500, 1499),)
    assert one_yes.notes == ()


def test_precision_of_nothing_called_yes_prints_nothing_but_zero():
    result = fitting_matrices(3, 3, typed(precision="0.50", yes_rate="0.00"))
    assert result.conflicts == (("precision", "yes_rate"),)


def test_f1_and_recall_without_positives():
    result = fitting_matrices(0, 3, typed(f1="0.0", recall="0.0", yes_rate="0.0"))
    assert result.matrices == (Matrix(0, 0, 0, 3),)
    assert [note.split()[0] for note in result.notes] == ["recall", "f1"]
    assert fitting_matrices(0, 3, typed(f1="0.0")).count == 4  # any fp: 0/fp is 0
    assert fitting_matrices(0, 3, typed(recall="1.0")).conflicts == (("recall",),)


def test_a_value_without_decimals_is_taken_literally_with_a_note():
    # recall 1 is anything from 0.5: tp 1 and 2 of 2.
    result = fitting_matrices(2, 0, typed(recall="1"))
    assert [matrix.tp for matrix in result.matrices] == [1, 2]
    assert result.notes == ("recall 1 has no decimals; anything from 0.5 prints so.",)
    assert fitting_matrices(2, 0, typed(recall="0")).notes[0].endswith("anything up to 0.5 prints so.")


def test_count_is_of_all_and_the_list_is_cut():
    # No positives: accuracy 0.5 at one decimal is tn in 45..55 of 100.
    result = fitting_matrices(0, 100, typed(accuracy="0.5"), limit=3)
    assert result.count == 11
    assert [matrix.fp for matrix in result.matrices] == [45, 46, 47]
    assert fitting_matrices(0, 100, typed(accuracy="0.5"), limit=0).matrices == ()


def test_counts_at_400_000_questions():
    # yes_rate 0 at six decimals of 400,000 is at most 0.2 yes: one matrix. 0.5 exactly at six is 200,000 yes:
    # tp 0..200,000 with fp = 200,000 - tp.
    assert fitting_matrices(200_000, 200_000, typed(yes_rate="0.000000")).count == 1
    result = fitting_matrices(200_000, 200_000, typed(yes_rate="0.500000"), limit=1)
    assert (result.count, result.matrices[0]) == (200_001, Matrix(0, 200_000, 200_000, 0))


def test_twenty_decimals_do_not_overflow():
    # tp/(tp+fp) within 1e-20 of 2/3 must be 2/3 (others differ by 1/1,200,000 at least): tp = 2k, fp = k.
    # recall 0.3 at one decimal is tp 50,000 to 70,000, of which 10,001 are even.
    values = typed(precision="0.66666666666666666667", recall="0.3")
    result = fitting_matrices(200_000, 200_000, values, limit=1)
    assert (result.count, result.matrices[0][:2]) == (10_001, (50_000, 25_000))


@pytest.mark.parametrize(("positives", "negatives"), [(0, 3), (3, 0)])
def test_twenty_decimals_on_one_label_alone(positives, negatives):
    values = typed(
        yes_rate="0.33333333333333333333", accuracy="0." + ("6" * 19 if not positives else "3" * 19)
    )
    result = fitting_matrices(positives, negatives, values)
    # One yes of three; it is right if all labels are yes (0.333...), and the other two are if none is (0.666...,
    # which prints a 7 at the end).
    assert result.conflicts == (() if positives else (("accuracy",),))
    assert result.matrices == ((Matrix(1, 0, 2, 0),) if positives else ())


def test_twenty_decimals_of_zero_without_positives():
    # Nothing to find: precision is 0/fp, or 0/0 when nothing is called yes. The coefficient of tp is 2e20.
    assert fitting_matrices(0, 3, typed(precision="0." + "0" * 20)).count == 4


def test_a_value_that_no_matrix_prints_is_to_blame_alone():
    # k/3 prints 0.00, 0.33, 0.67, 1.00. 0.40 is 6 2/3 hundredths from 1/3, whatever fp is.
    result = fitting_matrices(3, 4, typed(recall="0.40", yes_rate="0.29"))
    assert result.conflicts == (("recall",),)
    assert result.blame == "recall 0.40 is printed by no matrix"
    assert result.nearest is not None
    assert result.nearest.distance == Fraction(20, 3)
    # yes rates within 6 2/3 hundredths of 0.29: 2/7 only, so tp 1 and fp 1.
    assert result.nearest.matrix == Matrix(1, 1, 2, 3)
    assert dict(result.nearest.prints) == {"recall": "0.33", "yes_rate": "0.29"}
    assert result.nearest.count == 1


def test_nearest_among_many_ties_is_the_first():
    # Only recall is printed, so every fp is as near: 0.4 of 1 positive is 4 tenths from 0.
    result = fitting_matrices(1, 5000, typed(recall="0.4"))
    assert result.nearest is not None
    assert (result.nearest.matrix[:2], result.nearest.distance, result.nearest.count) == ((0, 0), 4, 5001)


def test_nearest_is_proved_where_many_are_almost_as_near():
    # Without negatives yes-rate and recall are both x = tp/P, so the larger difference from 0.2 and 0.8 is least
    # about x = 1/2. P is odd, so two tp are as near; 400 on either side are within a thousandth of a unit.
    result = fitting_matrices(3_999_999, 0, typed(yes_rate="0.2", recall="0.8"))
    assert result.nearest is not None
    assert (result.nearest.matrix.tp, result.nearest.count) == (1_999_999, 2)
    assert result.nearest.distance == 8 - Fraction(10 * 1_999_999, 3_999_999)


def test_order_of_the_printed_values_does_not_matter():
    one = typed(recall="0.7460", precision="0.8963")
    other = typed(precision="0.8963", recall="0.7460")
    assert fitting_matrices(1500, 1500, one) == fitting_matrices(1500, 1500, other)


@pytest.mark.parametrize(
    ("positives", "negatives", "values", "message"),
    [
        (-1, 5, {"f1": "0.5"}, "positives is -1"),
        (5, -1, {"f1": "0.5"}, "negatives is -1"),
        (0, 0, {"f1": "0.5"}, "both 0"),
        (MOST_QUESTIONS + 1, 1, {"f1": "0.5"}, "can be searched"),
        (5, 5, {}, "at least one of precision, recall, f1, accuracy, yes_rate"),
        (5, 5, {"mcc": "0.5"}, "mcc cannot be checked"),
    ],
)
def test_what_cannot_be_checked_is_refused(positives, negatives, values, message):
    with pytest.raises(AuditError, match=message):
        fitting_matrices(positives, negatives, typed(**values))


def test_values_of_the_matrix_are_the_definitions():
    for tp, fp in ((0, 0), (2, 1), (3, 0), (0, 4)):
        matrix = Matrix(tp, fp, 3 - tp, 4 - fp)
        assert {name: matrix.value(name) for name in METRICS} == metrics(3, 4, tp, fp)


def test_a_printed_value_need_not_come_from_a_text():
    assert fitting_matrices(2, 2, {"recall": PrintedValue(50, 2, "0.5")}).count == 3
