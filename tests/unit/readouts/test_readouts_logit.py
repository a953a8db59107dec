"""Logit readouts: hand-made logits, ties, invalid rows, ids that are not there, and their laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from readout_tables import NO_FORMS, YES_FORMS, metadata, records, sets

from readout_audit.errors import AuditError
from readout_audit.readouts.base import NotAvailableError
from readout_audit.readouts.registry import READOUTS, get, module_of

LEGACY = {"model": "llava-1.5-7b", "yes": YES_FORMS, "no": NO_FORMS}
EIGHT = sorted([*YES_FORMS.values(), *NO_FORMS.values()])  # 694 1217 1939 3582 3782 3869 4874 8241


def eight(**by_id):
    """One row of eight candidate logits; unnamed ones are -9."""
    return [by_id.get(f"i{token}", -9.0) for token in EIGHT]


def test_two_token_reads_two_ids_and_eight_token_reads_all():
    # ▁No (1939) is emitted; of the bare forms, that nobody emits, yes beats no.
    table = records([eight(i1939=20.0, i3869=19.0, i3582=5.0, i1217=4.0)])
    meta = metadata(EIGHT, legacy=LEGACY)
    two, all_eight = get("legacy_2tok").decide(table, meta), get("legacy_8tok").decide(table, meta)
    assert two.decision.to_pylist() == ["yes"] and two.margin.to_pylist() == [1.0]
    assert all_eight.decision.to_pylist() == ["no"] and all_eight.margin.to_pylist() == [-1.0]
    assert get("legacy_2tok").ids(meta) == ((3582,), (1217,))
    assert get("legacy_8tok").ids(meta) == ((3582, 3869, 4874, 8241), (694, 1217, 1939, 3782))


def test_a_tie_is_a_no_and_is_marked():
    table = records([eight(i3582=1.5, i1217=1.5), eight(i3582=1.5, i1217=1.25)])
    decided = get("legacy_2tok").decide(table, metadata(EIGHT, legacy=LEGACY))
    assert decided.decision.to_pylist() == ["no", "yes"]
    assert decided.tie.to_pylist() == [True, False]
    assert decided.margin.to_pylist() == [0.0, 0.25]


def test_an_invalid_row_is_neither_yes_nor_no():
    table = records([None, eight(i3582=1.0), None])
    decided = get("legacy_2tok").decide(table, metadata(EIGHT, legacy=LEGACY))
    assert decided.decision.to_pylist() == ["invalid", "yes", "invalid"]
    assert decided.margin.to_pylist() == [None, 10.0, None]
    assert decided.tie.to_pylist() == [None, False, None]


def test_records_that_are_all_invalid():
    decided = get("legacy_2tok").decide(records([None, None]), metadata(EIGHT, legacy=LEGACY))
    assert decided.decision.to_pylist() == ["invalid", "invalid"]


@pytest.mark.parametrize("bad", [[np.nan] * 8, [np.inf] + [0.0] * 7, [0.0] * 7])
def test_an_ok_row_without_eight_finite_logits_stops(bad):
    with pytest.raises(AuditError, match="status ok but not 8 finite candidate logits"):
        get("legacy_2tok").decide(records([bad]), metadata(EIGHT, legacy=LEGACY))


def test_an_id_that_was_not_recorded_is_named():
    table = records([[1.0, 2.0]])
    meta = metadata([5, 6], legacy=LEGACY)
    with pytest.raises(AuditError, match=r"token ids \[3582, 1217\].*toy"):
        get("legacy_2tok").decide(table, meta)


def test_a_reference_piece_that_does_not_exist_leaves_the_others():
    legacy = {"model": "ref", "yes": YES_FORMS | {"yes": None}, "no": NO_FORMS}
    meta = metadata(EIGHT, legacy=legacy)
    assert get("legacy_8tok").ids(meta).yes == (3869, 4874, 8241)
    with pytest.raises(NotAvailableError, match="reference model ref has no token id that means yes"):
        get("legacy_2tok").ids(meta)


def test_dynamic_single_reads_a_set_not_a_list():
    # A tokenizer that gives each id twice must not change a maximum or double a mass.
    table = records([[3.0, 2.9, 0.0]])
    once = metadata([1, 2, 3], single=sets([1], [2, 3]))
    twice = metadata([1, 2, 3], single=sets([1, 1], [3, 2, 2, 3]))
    for name in ("dynamic_single", "set_logsumexp"):
        assert get(name).ids(twice) == ((1,), (2, 3))
        assert get(name).decide(table, twice) == get(name).decide(table, once)


def test_logsumexp_and_maximum_can_disagree():
    # yes 3.0 alone against no 2.9 + 2.9: the maximum says yes; log(2 e^2.9) = 2.9 + 0.6931 > 3.0 says no.
    table = records([[3.0, 2.9, 2.9]])
    meta = metadata([1, 2, 3], single=sets([1], [2, 3]))
    assert get("dynamic_single").decide(table, meta).decision.to_pylist() == ["yes"]
    summed = get("set_logsumexp").decide(table, meta)
    assert summed.decision.to_pylist() == ["no"]
    assert summed.margin.to_pylist()[0] == pytest.approx(0.1 - np.log(2), abs=1e-6)


def test_each_named_set_is_read_by_its_readout():
    table = records([[5.0, 1.0, 0.0, 4.0, 9.0, 2.0]])
    meta = metadata(
        [1, 2, 3, 4, 5, 6], single=sets([1], [2]), scan=sets([3, 6], [4]), in_context=sets([5], [6])
    )
    answers = {
        n: get(n).decide(table, meta).margin.to_pylist()[0]
        for n in ("dynamic_single", "vocab_scan", "in_context")
    }
    assert answers == {"dynamic_single": 4.0, "vocab_scan": -2.0, "in_context": 7.0}


def test_sets_that_are_missing_empty_or_overlap():
    with pytest.raises(NotAvailableError, match="name no scan token sets"):
        get("vocab_scan").ids(metadata([1]))
    with pytest.raises(NotAvailableError, match="no token id that means no"):
        get("vocab_scan").ids(metadata([1], scan=sets([1], [])))
    with pytest.raises(AuditError, match=r"token ids \[7\].*both yes and no") as error:
        get("in_context").ids(metadata([7, 8], in_context=sets([7, 8], [7])))
    assert not isinstance(error.value, NotAvailableError)


def test_an_unknown_readout_is_refused_with_the_list():
    with pytest.raises(AuditError, match=r"no readout 'legacy_4tok'; there are .*legacy_2tok"):
        get("legacy_4tok")


def test_every_registered_readout_describes_itself():
    for name in READOUTS:
        readout = get(name)
        assert readout.name == name
        assert readout.source and readout.rule
        assert (readout.kind == "string") == bool(readout.strings)
        assert type(readout).__module__ in (module_of(name), module_of(name).rpartition(".")[0] + ".base")


LOGIT = st.floats(-30, 30, width=32)


@given(st.lists(st.lists(LOGIT, min_size=4, max_size=4), min_size=1, max_size=8), st.integers(-8, 8))
def test_adding_a_constant_to_all_logits_changes_no_exact_decision(rows, shift):
    # Quarters plus an integer are exact in float32, so ties survive the shift too.
    logits = np.round(np.array(rows) * 4) / 4
    meta = metadata([1, 2, 3, 4], single=sets([1, 2], [3, 4]))
    first = get("dynamic_single").decide(records(logits.tolist()), meta)
    shifted = get("dynamic_single").decide(records((logits + shift).tolist()), meta)
    assert first == shifted


@given(st.lists(st.lists(LOGIT, min_size=4, max_size=4), min_size=1, max_size=8))
def test_swapping_yes_and_no_swaps_every_untied_decision(rows):
    meta = metadata([1, 2, 3, 4], single=sets([1, 2], [3, 4]))
    swapped = metadata([1, 2, 3, 4], single=sets([3, 4], [1, 2]))
    for name in ("dynamic_single", "set_logsumexp"):
        one, other = get(name).decide(records(rows), meta), get(name).decide(records(rows), swapped)
        assert one.tie == other.tie
        for first, second, tie in zip(
            one.decision.to_pylist(), other.decision.to_pylist(), one.tie.to_pylist(), strict=True
        ):
            assert (first, second) == ("no", "no") if tie else first != second


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=3), st.permutations([0, 1, 2]))
def test_equal_masses_tie_exactly_in_any_order(values, order):
    yes = [v / 3 for v in values]
    row = [*yes, *(yes[i] for i in order)]
    meta = metadata(range(6), single=sets([0, 1, 2], [3, 4, 5]))
    assert get("set_logsumexp").decide(records([row]), meta).tie.to_pylist() == [True]


def test_ids_beyond_a_small_vocabulary_make_the_readout_unavailable():
    """Ids copied from a larger vocabulary: no logit exists, so this is no fault of the records."""
    table = records([[20.0, 19.0]])
    meta = metadata([694, 1939], legacy=LEGACY) | {"ids_without_logit": [3582, 3782, 3869, 4874, 8241, 1217]}
    with pytest.raises(NotAvailableError, match=r"token ids \[3582, 1217\], of which toy has no logit"):
        get("legacy_2tok").decide(table, meta)
    with pytest.raises(AuditError, match="do not hold"):
        get("legacy_2tok").decide(table, meta | {"ids_without_logit": [3582]})
