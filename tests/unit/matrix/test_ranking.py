"""Ranks and orders of models, by hand."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from readout_audit.matrix.ranking import orders, ranks


def test_ranks_by_hand() -> None:
    assert ranks([Fraction(1, 2), Fraction(3, 4), Fraction(1, 4)]) == [2, 1, 3]
    assert ranks([Fraction(1, 2), Fraction(1, 2), Fraction(1, 4)]) == [Fraction(3, 2), Fraction(3, 2), 3]
    assert ranks([Fraction(1, 2), Fraction(1, 2), Fraction(1, 2)]) == [2, 2, 2]
    assert ranks([Fraction(1, 2), None, Fraction(3, 4)]) == [2, None, 1]
    assert ranks([]) == []


@given(st.lists(st.fractions(0, 1, max_denominator=60), min_size=1))
def test_ranks_sum_to_places(values: list[Fraction]) -> None:
    found = ranks(values)
    assert sum(found) == Fraction(len(values) * (len(values) + 1), 2)


F1 = {
    "llava": {"two": Fraction(75, 100), "eight": Fraction(82, 100), "text": Fraction(82, 100)},
    "qwen": {"two": Fraction(66, 100), "eight": Fraction(85, 100), "text": Fraction(82, 100)},
    "blip": {"two": Fraction(70, 100), "eight": None},
}


def test_order_of_two_models() -> None:
    llava_qwen, llava_blip, qwen_blip = orders(F1)
    assert (llava_qwen.first, llava_qwen.second) == ("llava", "qwen")
    assert (llava_qwen.first_ahead, llava_qwen.second_ahead, llava_qwen.level) == (
        ("two",),
        ("eight",),
        ("text",),
    )
    assert llava_qwen.changes and not llava_qwen.changes_surely
    # blip has an undefined F1 under one readout and lacks another: these compare nothing.
    assert (llava_blip.first_ahead, llava_blip.second_ahead, llava_blip.level) == (("two",), (), ())
    assert (qwen_blip.first_ahead, qwen_blip.second_ahead, qwen_blip.changes) == ((), ("two",), False)


def test_only_intervals_without_zero_are_sure() -> None:
    sure = {("llava", "qwen", "two"): (0.02, 0.1), ("llava", "qwen", "eight"): (-0.05, -0.01)}
    (order,) = orders({name: F1[name] for name in ("llava", "qwen")}, sure)
    assert (order.first_surely, order.second_surely, order.changes_surely) == (("two",), ("eight",), True)
    unsure = sure | {("llava", "qwen", "eight"): (-0.05, 0.0)}
    (order,) = orders({name: F1[name] for name in ("llava", "qwen")}, unsure)
    assert order.changes and not order.changes_surely


def test_one_model_has_no_order() -> None:
    assert orders({"llava": F1["llava"]}) == []
