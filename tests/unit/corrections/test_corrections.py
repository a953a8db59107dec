"""Each correction by hand, and what holds for all of them."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corrections.made import IDS, evidence, files, record, signal, world, write_records, write_signals
from readout_audit.corrections.evidence import read_files
from readout_audit.corrections.registry import CORRECTIONS, VALUES, correction, module_of, value
from readout_audit.errors import AuditError
from readout_audit.readouts.base import NotAvailableError
from readout_audit.signals.schema import SIGNALS

# One question: yes logits 20 and 21, no logits 18 and 20.5. The gap is 21 − 20.5 = 0.5: yes.
LOGITS = [20.0, 21.0, 18.0, 20.5]


def margins(folder, name, strengths, logits=LOGITS, **signals):
    one = evidence(folder, [record(1, "a.jpg", logits)], [signal(1, "a.jpg", **signals)])
    return correction(name).margins(one, np.array(strengths, dtype=float))[0]


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def gated(certainty):
    """What a gate makes of the gap of 0.5 at strengths 0, 1 and 1.5: β times the doubt comes off."""
    return [0.5, 0.5 - (1 - certainty), 0.5 - 1.5 * (1 - certainty)]


# Name of a correction -> signals of the question above, and its margins at strengths 0, 1 and 1.5.
CASES = {
    # c = sigmoid(20 (0.25 − 0.22)) = sigmoid(0.6)
    "clip_b32": ({"clip_b32_patches": 0.25}, gated(sigmoid(0.6))),
    "clip_b32_code": ({"clip_b32_crops": 0.25}, gated(sigmoid(0.6))),
    "object_noun": ({"clip_b32_image": 0.25}, gated(sigmoid(0.6))),
    # c = sigmoid(25 (0.25 − 0.27)) = sigmoid(−0.5)
    "clip_l": ({"clip_l_patches": 0.25}, gated(sigmoid(-0.5))),
    "cls": ({"clip_l_cls": 0.25}, gated(sigmoid(-0.5))),
    # c = 1 − H
    "entropy": ({"entropy_normalised": 0.25}, gated(0.75)),
    "entropy_code": ({"spatial_attention_entropy_window": 0.75}, gated(0.25)),
    "object_code": ({"words_attention_entropy_window": 0.5}, gated(0.5)),
    "midpoint_code": ({"answer_attention_entropy_window": 0.5}, gated(0.5)),
    # Ten times the uniform share 1/576 is certainty 1; half of that, 5/576, one half.
    "magnitude_code": ({"spatial_attention_mean_window": 5 / 576}, gated(0.5)),
    # One question is its own median, so the soft threshold stands at it.
    "magnitude": ({"logit_mean": 1.0, "logit_sd": 2.0}, gated(0.5)),
    "uniform": ({}, gated(0.5)),
    "cls_code": ({}, gated(1.0)),
    # Largest yes 4, largest no 6 at the midpoint: the answer becomes no, at any strength.
    "midpoint": ({"midpoint_candidate_logits": [4.0, 1.0, 6.0, 2.0]}, [-2, -2, -2]),
    # α = 1: 2ℓ − ℓ' = yes 40 − 20, 42 − 23; no 41 − 20; α = 1.5: 2.5ℓ − 1.5ℓ' = yes 50 − 30, 52.5 − 34.5;
    # no 51.25 − 30. The plausible ones are those whose logit is at least 21 + log 0.1 = 18.7, so the no at 18 is out.
    "vcd": ({"vcd_candidate_logits": [20.0, 23.0, 19.0, 20.0]}, [0.5, 20 - 21, 20 - 21.25]),
    # The gap on noise is 5 − 3 = 2.
    "vcd_uniform_code": ({"vcd_uniform_candidate_logits": [5.0, 1.0, 3.0, 2.0]}, [0.5, 0.5 - 2, 0.5 - 3]),
}


@pytest.mark.parametrize("name", CORRECTIONS)
def test_every_correction_by_hand(tmp_path, name):
    signals, expected = CASES[name]
    assert margins(tmp_path, name, [0, 1, 1.5], **signals) == pytest.approx(expected, abs=1e-6)
    # Every column that it says it reads is one that the case sets.
    assert set(signals) == set(correction(name).signals)


def test_attended_share_is_cut_at_one_and_follows_the_windows_size(tmp_path):
    rows = [record(1, "a.jpg", LOGITS)]
    signals = [signal(1, "a.jpg", spatial_attention_mean_window=0.05)]
    assert correction("magnitude_code").margins(evidence(tmp_path, rows, signals), np.ones(1)).tolist() == [
        [0.5]
    ]
    # Of 36 positions: c = 0.05 · 36 / 10 = 0.18.
    small = evidence(tmp_path, rows, signals, settings={"authors_window": [1, 37]})
    found = correction("magnitude_code").margins(small, np.ones(1))
    assert found[0] == pytest.approx([0.5 - 0.82], abs=1e-6)


def test_magnitude_is_soft_around_the_median_question(tmp_path):
    # z = (21 − 1) / 2 = 10, (23 − 1) / 2 = 11 and (27 − 1) / 2 = 13; the median is 11.
    rows = [record(i, "a.jpg", [1.0, yes, 2.0, 3.0]) for i, yes in enumerate((21.0, 23.0, 27.0))]
    signals = [signal(i, "a.jpg", logit_mean=1.0, logit_sd=2.0) for i in range(3)]
    found = correction("magnitude").margins(evidence(tmp_path, rows, signals), np.ones(1))[:, 0]
    doubt = [1 - sigmoid(-1), 0.5, 1 - sigmoid(2)]
    assert found == pytest.approx(np.array([18, 20, 24]) - doubt, abs=1e-6)


def test_vcd_leaves_implausible_candidates_out(tmp_path):
    # The no at 18 would win at α = 1 (36 − 1 = 35), but its probability is e^-3 of the largest.
    found = margins(tmp_path, "vcd", [1], vcd_candidate_logits=[20.0, 21.0, 1.0, 20.5])
    assert found == pytest.approx([0.5])


def test_vcd_with_another_token_far_ahead_still_compares_yes_with_no(tmp_path):
    # The largest logit of the vocabulary is 40: no candidate is plausible, so all are compared.
    rows = [record(1, "a.jpg", LOGITS, argmax_logit=40.0)]
    signals = [signal(1, "a.jpg", vcd_candidate_logits=[20.0, 21.0, 18.0, 21.5])]
    found = correction("vcd").margins(evidence(tmp_path, rows, signals), np.array([0.0, 1.0]))
    assert found[0] == pytest.approx([0.5, 42 - 21 - (41 - 21.5)])


@pytest.mark.parametrize("name", CORRECTIONS)
def test_a_null_signal_is_not_available_and_never_zero(tmp_path, name):
    found = margins(tmp_path, name, [0.0, 1.0])
    assert np.isnan(found).all() == bool(correction(name).signals)


@pytest.mark.parametrize("name", CORRECTIONS)
def test_an_invalid_record_has_no_margin(tmp_path, name):
    _, signals, _ = world(images=1, per_image=1)
    one = evidence(tmp_path, [record(1, "000.jpg", None)], signals)
    assert np.isnan(correction(name).margins(one, np.zeros(1))).all()


@pytest.mark.parametrize("name", CORRECTIONS)
def test_every_correction_reads_declared_signals_only(tmp_path, name):
    reads = correction(name).signals
    assert set(reads) <= set(SIGNALS.names)
    records, signals, _ = world(images=2)
    kept = [{key: row[key] for key in ("uid", "image", "status", *reads)} for row in signals]
    found = correction(name).margins(evidence(tmp_path, records, kept), np.ones(1))
    assert not np.isnan(found).any()


finite = st.floats(-60, 60, width=32)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    logits=st.lists(st.lists(finite, min_size=4, max_size=4), min_size=1, max_size=6),
    other=st.lists(finite, min_size=4, max_size=4),
    share=st.floats(0, 1, width=32),
    cosine=st.floats(-1, 1, width=32),
    ahead=st.sampled_from([0.0, 1.0, 50.0]),
)
def test_at_strength_zero_nothing_changes(tmp_path, logits, other, share, cosine, ahead):
    records = [record(i, "a.jpg", row, argmax_logit=max(row) + ahead) for i, row in enumerate(logits)]
    numbers = {
        name: share if "entropy" in name or "mean" in name else cosine
        for name in SIGNALS.names
        if name.startswith(("clip", "entropy_n", "spatial", "words", "answer_attention"))
    }
    lists = {"vcd_candidate_logits": other, "vcd_uniform_candidate_logits": other}
    signals = [
        signal(i, "a.jpg", logit_mean=0.0, logit_sd=1.5, **numbers, **lists) for i in range(len(logits))
    ]
    one = evidence(tmp_path, records, signals)
    for name in CORRECTIONS:
        if correction(name).swept:
            unchanged = correction(name).margins(one, np.zeros(1))[:, 0] > 0
            assert unchanged.tolist() == (one.gap > 0).tolist(), name


@settings(max_examples=15)
@given(strengths=st.lists(st.floats(0, 3), min_size=2, max_size=5).map(sorted))
def test_a_stronger_gate_never_turns_a_no_into_a_yes(tmp_path_factory, strengths):
    records, signals, _ = world(images=3)
    one = evidence(tmp_path_factory.mktemp("gates"), records, signals)
    for name in CORRECTIONS:
        if correction(name).swept and not name.startswith("vcd"):
            yes = correction(name).margins(one, np.array(strengths)) > 0
            assert (yes[:, 1:] <= yes[:, :-1]).all(), name


def test_signals_join_on_uid_in_any_order(tmp_path):
    records, signals, _ = world(images=3)
    straight = evidence(tmp_path, records, signals).signal("clip_b32_image")
    shuffled = evidence(tmp_path, records, signals[::-1]).signal("clip_b32_image")
    assert shuffled.tolist() == straight.tolist()
    assert np.isnan(evidence(tmp_path, records, signals[1:]).signal("clip_b32_image")).tolist() == [
        True,
        *[False] * (len(records) - 1),
    ]


def test_records_without_any_signals_still_have_what_needs_none(tmp_path):
    one = evidence(tmp_path, [record(1, "a.jpg", LOGITS)], None)
    assert correction("uniform").margins(one, np.ones(1)).tolist() == [[0.0]]
    assert np.isnan(correction("entropy").margins(one, np.ones(1))).all()
    with pytest.raises(NotAvailableError, match=r"no logits of token ids \[3, 5, 8, 9\]"):
        correction("vcd").margins(one, np.ones(1))


def test_signals_of_other_records_are_refused(tmp_path):
    records = write_records(tmp_path / "r.parquet", [record(1, "a.jpg", LOGITS)])
    signals = write_signals(tmp_path / "s.parquet", [signal(1, "a.jpg")], record_settings_id="s2")
    with pytest.raises(AuditError, match="settings_id 's2'"):
        read_files(records, signals)
    twice = write_signals(tmp_path / "t.parquet", [signal(1, "a.jpg"), signal(1, "a.jpg")])
    with pytest.raises(AuditError, match="1 uids stand there more than once"):
        read_files(records, twice)


def test_a_list_of_another_length_is_refused(tmp_path):
    with pytest.raises(AuditError, match=f"a list has 2 values, not {len(IDS)}"):
        margins(tmp_path, "midpoint", [1.0], midpoint_candidate_logits=[1.0, 2.0])


def test_a_readout_without_two_maxima_cannot_be_corrected(tmp_path):
    with pytest.raises(AuditError, match="'set_logsumexp' does not compare those"):
        files(tmp_path, [record(1, "a.jpg", LOGITS)], None).under("set_logsumexp")


def test_the_gap_follows_the_readout(tmp_path):
    read = files(tmp_path, [record(1, "a.jpg", [22.0, 21.0, 18.0, 20.5])], None)
    assert read.under("legacy_8tok").gap.tolist() == [1.5]
    assert read.under("dynamic_single").gap.tolist() == [0.5]


def test_names():
    assert all(correction(name).name == name for name in CORRECTIONS)
    assert all(value(name).name == name for name in VALUES)
    assert module_of("vcd") == "readout_audit.corrections.paper"
    with pytest.raises(AuditError, match="there is no correction 'magic'"):
        correction("magic")
    with pytest.raises(AuditError, match="there is no signal 'magic'"):
        value("magic")


def test_attention_is_the_mean_over_heads_and_the_window_of_a_sum_over_positions(tmp_path):
    # Layers (1, 3), (5, 7), (9, 11) by head: head means 2, 6, 10; layers 1 to 2 have mean 8.
    one = evidence(
        tmp_path, [record(1, "a.jpg", LOGITS)], [signal(1, "a.jpg", attention_image=[1, 3, 5, 7, 9, 11])]
    )
    assert one.attention("attention_image").tolist() == [[2, 6, 10]]
    assert value("attention_image").of(one).tolist() == [8]
    assert np.isnan(value("attention_window").of(one)).all()
    deeper = evidence(
        tmp_path, [record(1, "a.jpg", LOGITS)], [signal(1, "a.jpg")], settings={"entropy_layers": [14, 20]}
    )
    with pytest.raises(NotAvailableError, match="the model has 3 layers, not those from 14 to 20"):
        value("attention_image").of(deeper)


CONTRAST = [1.0, 0.0, 3.0, 0.0]
"""Largest yes 1, largest no 3: a gap of −2."""

# Name of a signal -> columns of the question above, and the one number they make.
VALUE_CASES = {
    "entropy": ({"entropy_normalised": 0.25}, 0.25),
    # (21 − 1) / 2
    "magnitude": ({"logit_mean": 1.0, "logit_sd": 2.0}, 10.0),
    "midpoint_gap": ({"midpoint_candidate_logits": CONTRAST}, 2.0),
    # Gaps by layer: 1 − 2 < 0, 3 − 2 > 0, 21 − 20.5 > 0, and the answer is yes: two of three.
    "layers_agreeing": ({"layer_candidate_logits": [0.0, 1.0, 2.0, 0.0, 3.0, 0.0, 2.0, 0.0, *LOGITS]}, 2 / 3),
    "clip_b32_patches": ({"clip_b32_patches": 0.125}, 0.125),
    "clip_b32_image": ({"clip_b32_image": 0.125}, 0.125),
    "clip_b32_crops": ({"clip_b32_crops": 0.125}, 0.125),
    "clip_l_patches": ({"clip_l_patches": 0.125}, 0.125),
    "clip_l_cls": ({"clip_l_cls": 0.125}, 0.125),
    # 0.5 − (1 − 3)
    "vcd_shift": ({"vcd_candidate_logits": CONTRAST}, 2.5),
    "vcd_uniform_shift": ({"vcd_uniform_candidate_logits": CONTRAST}, 2.5),
    # Head means 2, 6, 10 by layer; layers 1 and 2.
    "attention_image": ({"attention_image": [1, 3, 5, 7, 9, 11]}, 8.0),
    "attention_window": ({"attention_window": [1, 3, 5, 7, 9, 11]}, 8.0),
    "answer_attention_entropy": ({"answer_attention_entropy_image": 0.75}, 0.75),
    "noun_attention_entropy": ({"noun_attention_entropy_image": 0.75}, 0.75),
    "spatial_attention_entropy": ({"spatial_attention_entropy_image": 0.75}, 0.75),
}


@pytest.mark.parametrize("name", VALUES)
def test_every_signal_by_hand(tmp_path, name):
    columns, expected = VALUE_CASES[name]
    one = evidence(tmp_path, [record(1, "a.jpg", LOGITS)], [signal(1, "a.jpg", **columns)])
    assert value(name).of(one) == pytest.approx([expected], abs=1e-7)
    assert np.isnan(
        value(name).of(evidence(tmp_path, [record(1, "a.jpg", LOGITS)], [signal(1, "a.jpg")]))
    ).all()
