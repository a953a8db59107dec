"""Logit readouts of records where a server listed only its likeliest tokens."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from readout_tables import metadata, records, sets

from readout_audit.errors import AuditError
from readout_audit.readouts.base import NotAvailableError
from readout_audit.readouts.registry import get

IDS = [10, 11, 20, 21]  # two yes pieces, two no pieces
META = {**metadata(IDS, single=sets([10, 11], [20, 21])), "unlisted": "null: at most the last of top_logits"}


def listed(*rows: tuple[list[float | None], list[float]]):
    """Records of (candidate log-probabilities, the whole list) by row."""
    return records(
        [candidates for candidates, _ in rows], top_logits=[top for _, top in rows], log_z=[0.0] * len(rows)
    )


def read(name: str, *rows: tuple[list[float | None], list[float]]):
    decided = get(name).decide(listed(*rows), META)
    return list(
        zip(*(part.to_pylist() for part in (decided.decision, decided.margin, decided.tie)), strict=True)
    )


def test_a_listed_answer_beats_an_unlisted_one():
    assert read("dynamic_single", ([-0.5, None, None, None], [-0.5, -2.0, -4.0])) == [("yes", None, False)]
    assert read("dynamic_single", ([None, None, None, -3.0], [-0.5, -3.0, -4.0])) == [("no", None, False)]


def test_two_listed_answers_are_compared_exactly():
    assert read("dynamic_single", ([None, -1.0, -1.5, None], [-1.0, -1.5, -6.0])) == [("yes", 0.5, False)]
    assert read("dynamic_single", ([None, -1.0, -1.0, None], [-1.0, -1.0, -6.0])) == [("no", 0.0, True)]


def test_two_unlisted_answers_decide_nothing():
    assert read("dynamic_single", ([None] * 4, [-0.5, -2.0])) == [("unparsed", None, None)]


def test_at_the_end_of_the_list_an_unlisted_one_may_be_equal():
    # A yes that may meet an equal no is no decision; a no that may meet an equal yes is a no: ties are.
    assert read("dynamic_single", ([None, -2.0, None, None], [-0.5, -2.0])) == [("unparsed", None, None)]
    assert read("dynamic_single", ([None, None, -2.0, None], [-0.5, -2.0])) == [("no", None, None)]


def test_sums_count_everything_that_is_not_listed_for_either_side():
    half, third, tenth = math.log(0.5), math.log(0.3), math.log(0.1)
    # 0.5 against 0.3 with 0.2 left over: the no side may have 0.5 too. With 0.1 left over it may not.
    assert read("set_logsumexp", ([half, None, third, None], [half, third])) == [("unparsed", None, None)]
    assert read("set_logsumexp", ([half, None, third, None], [half, third, tenth])) == [("yes", None, False)]
    assert read("set_logsumexp", ([third, None, half, None], [half, third, tenth])) == [("no", None, False)]
    assert read("set_logsumexp", ([None] * 4, [half, third, tenth])) == [("unparsed", None, None)]


def test_rows_without_an_answer_stay_invalid():
    table = records([None, [-0.5, None, None, None]], top_logits=[None, [-0.5, -4.0]], log_z=[None, 0.0])
    for name in ("dynamic_single", "set_logsumexp"):
        assert get(name).decide(table, META).decision.to_pylist() == ["invalid", "yes"]


def test_a_cut_needs_every_probability():
    table = listed(([-0.5, None, -2.0, None], [-0.5, -2.0]))
    with pytest.raises(NotAvailableError, match="P\\(yes\\) is not known"):
        get("threshold").decide(table, META, records([[]])["status"])


def test_prompt_and_answer_together_are_not_available():
    with pytest.raises(NotAvailableError, match="a server does not tell"):
        get("string_parse_full").decide(listed(([None] * 4, [-0.5])), META)


def test_missing_logits_of_other_records_are_still_a_fault():
    whole = {key: value for key, value in META.items() if key != "unlisted"}
    with pytest.raises(AuditError, match="not 4 finite candidate logits"):
        get("dynamic_single").decide(listed(([-0.5, None, None, None], [-0.5])), whole)
    with pytest.raises(AuditError, match="not 4 finite candidate logits"):
        get("dynamic_single").decide(listed(([-0.5, math.nan, None, None], [-0.5])), META)


@given(st.lists(st.integers(-8, 0), min_size=7, max_size=7, unique=False), st.integers(1, 7))
def test_a_list_never_decides_otherwise_than_the_whole_vocabulary(exponents, length):
    # Seven tokens, the first four are the candidates; a server lists the `length` likeliest.
    logits = np.array(exponents, dtype=np.float64)
    logprobs = (logits - np.log(np.exp(logits).sum())).astype(np.float32)
    order = np.argsort(-logprobs, kind="stable")[:length].tolist()
    candidates = [float(logprobs[i]) if i in order else None for i in range(4)]
    row = (candidates, [float(logprobs[i]) for i in order])
    whole = {key: value for key, value in META.items() if key != "unlisted"}
    for name in ("dynamic_single", "set_logsumexp"):
        truth = get(name).decide(records([list(map(float, logprobs[:4]))]), whole).decision.to_pylist()[0]
        ((found, _, _),) = read(name, row)
        assert found in (truth, "unparsed"), (name, row)


def test_every_kind_of_row_is_decided_as_its_bounds_say():
    # Exhaustive over which of the four are listed at -1, -2 or not at all, list ending at -3: yes needs a
    # listed yes above every listed no.
    for row in itertools.product([-1.0, -2.0, None], repeat=4):
        known = [[v for v in side if v is not None] for side in (row[:2], row[2:])]
        best = [max(side, default=None) for side in known]
        expected = "unparsed" if best == [None, None] else "yes" if best[1] is None else "no"
        if None not in best:
            expected = "yes" if best[0] > best[1] else "no"
        assert read("dynamic_single", (list(row), [-1.0, -2.0, -3.0]))[0][0] == expected, row
