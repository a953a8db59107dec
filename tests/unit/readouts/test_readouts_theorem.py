"""Theorem 1 and Corollary 1 of the paper, on whole vocabularies of small integers so that ties are common."""

import numpy as np
from hypothesis import assume, example, given
from hypothesis import strategies as st
from readout_tables import full_records, metadata, sets

from readout_audit.readouts.registry import get

VOCABULARY = 9


@st.composite
def vocabularies(draw):
    """Disjoint nonempty Y and N inside the vocabulary, and one logit vector over it."""
    members = draw(st.permutations(range(VOCABULARY)))
    n_yes = draw(st.integers(1, 4))
    n_no = draw(st.integers(1, 4))
    logits = draw(st.lists(st.integers(-2, 2), min_size=VOCABULARY, max_size=VOCABULARY))
    return sorted(members[:n_yes]), sorted(members[n_yes : n_yes + n_no]), logits


def decoded(yes, no, logits):
    """The readout of the emitted token: written out, lowest id on ties."""
    best = max(logits)
    token = next(i for i, value in enumerate(logits) if value == best)
    return token, "yes" if token in yes else "no" if token in no else None


def max_logit(yes, no, logits):
    table = full_records(np.array([logits], dtype=np.float32), range(VOCABULARY))
    return get("dynamic_single").decide(table, metadata(range(VOCABULARY), single=sets(yes, no)))


@given(vocabularies())
@example(([3], [1], [0, 2, 0, 2, 0, 0, 0, 0, 0]))  # tie between Y and N, lowest tied id in N: no exception
@example(([1], [3], [0, 2, 0, 2, 0, 0, 0, 0, 0]))  # tie between Y and N, lowest tied id in Y: the exception
def test_theorem_1(case):
    yes, no, logits = case
    _, answer = decoded(yes, no, logits)
    assume(answer is not None)
    read = max_logit(yes, no, logits)
    tied = [i for i in (*yes, *no) if logits[i] == max(logits)]
    across = any(i in yes for i in tied) and any(i in no for i in tied)
    assert read.tie.to_pylist() == [across]
    if across and min(tied) in yes:
        assert (answer, read.decision.to_pylist()) == ("yes", ["no"])
    else:
        assert read.decision.to_pylist() == [answer]


def test_the_tie_of_llava_is_no_exception():
    # 1939 `▁No` < 3869 `▁Yes`: on their tie greedy decoding emits ▁No, and the strict readout says no too.
    logits = np.zeros((1, 4000), dtype=np.float32)
    logits[0, [1939, 3869]] = 24.0
    table = full_records(logits, [1939, 3869])
    assert table["argmax_id"].to_pylist() == [1939]
    read = get("dynamic_single").decide(table, metadata([1939, 3869], single=sets([3869], [1939])))
    assert read.decision.to_pylist() == ["no"] and read.tie.to_pylist() == [True]


@st.composite
def strict_subsets(draw):
    """Y, N, nonempty strict subsets of both, and an emitted id of Y or N outside them."""
    members = draw(st.permutations(range(VOCABULARY)))
    n_yes, n_no = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    yes, no = members[:n_yes], members[n_yes : n_yes + n_no]
    yes_2 = yes[: draw(st.integers(1, n_yes - 1))]
    no_2 = no[: draw(st.integers(1, n_no - 1))]
    outside = [t for t in (*yes, *no) if t not in (*yes_2, *no_2)]
    return (
        yes,
        no,
        yes_2,
        no_2,
        draw(st.sampled_from(outside)),
        draw(st.sampled_from(yes_2)),
        draw(st.sampled_from(no_2)),
    )


@given(strict_subsets())
def test_corollary_1(case):
    yes, no, yes_2, no_2, token, a, b = case
    answers = []
    for first, second in ((a, b), (b, a)):
        logits = [-3.0] * VOCABULARY
        logits[token], logits[first], logits[second] = 0.0, -1.0, -2.0
        emitted, answer = decoded(yes, no, logits)
        assert emitted == token
        # The full sets follow the emitted token; the subsets compare two candidates that were not selected.
        assert max_logit(yes, no, logits).decision.to_pylist() == [answer]
        answers += max_logit(yes_2, no_2, logits).decision.to_pylist()
    assert answers == ["yes", "no"]  # one witness agrees with the emitted answer, the other does not
