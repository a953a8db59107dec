"""The cross-fitted cut: hand-made scores, folds by image, and what it must not see."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from readout_tables import metadata, records, sets

from readout_audit.errors import AuditError
from readout_audit.readouts.base import NotAvailableError
from readout_audit.readouts.registry import get
from readout_audit.readouts.threshold import best_cut, deal_folds

META = metadata([1, 2], single=sets([1], [2]))


def test_best_cut_by_hand():
    # Scores 3 2 1 0 with labels y y n y: above 0.5..1 F1 is 4/5 (c between 1 and 2), all yes 6/7.
    scores, positive = np.array([3.0, 2, 1, 0]), np.array([True, True, False, True])
    assert best_cut(scores, positive) == -1.0  # 2*3/(4+3) = 6/7 beats 2*2/(2+3) = 4/5
    positive = np.array([True, True, False, False])
    assert best_cut(scores, positive) == 1.5  # separates exactly
    assert best_cut(np.array([2.0, 2.0]), np.array([True, False])) == 1.0  # one value: all yes, 2/3


def test_of_equally_good_cuts_the_nearest_to_one_half_is_taken():
    # No positives: every cut has F1 0; halfway points are -1.5 and 0.5.
    assert best_cut(np.array([-2.0, -1.0, 2.0]), np.zeros(3, bool)) == 0.5


@given(st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=12))
def test_best_cut_has_the_largest_f1_of_all_cuts(rows):
    scores = np.array([float(s) for s, _ in rows])
    positive = np.array([p for _, p in rows])

    def f1(cut):
        called = scores > cut
        total = called.sum() + positive.sum()
        return 2 * (called & positive).sum() / total if total else 0.0

    assert f1(best_cut(scores, positive)) == max(f1(c) for c in np.arange(-5.5, 6))


def test_folds_keep_images_together_and_depend_on_the_names_alone():
    images = ["b", "a", "c", "a", "d", "e", "f", "b"]
    fold = deal_folds(images, 5, 42)
    assert fold[1] == fold[3] and fold[0] == fold[7]
    assert sorted(np.bincount([fold[i] for i in (1, 0, 2, 4, 5, 6)])) == [1, 1, 1, 1, 2]
    assert deal_folds(images[::-1], 5, 42).tolist() == fold[::-1].tolist()


def one_per_image(margins, labels):
    table = records([[m, 0.0] for m in margins], image=[f"{i}.jpg" for i in range(len(margins))])
    return get("threshold").decide(table, META, pa.array(labels))


def test_the_cut_of_a_row_does_not_depend_on_its_own_image():
    rng = np.random.default_rng(3)
    margins = rng.normal(size=40).tolist()
    labels = ["yes" if m > 0.7 else "no" for m in margins]
    first = one_per_image(margins, labels)
    for i in range(40):
        flipped = [*labels[:i], "no" if labels[i] == "yes" else "yes", *labels[i + 1 :]]
        assert one_per_image(margins, flipped).decision[i] == first.decision[i]


def test_a_shifted_model_is_set_right_by_the_cut():
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 2, 200)
    margins = (truth + 3.0 + rng.normal(scale=0.1, size=200)).tolist()  # always far above 0
    decided = one_per_image(margins, ["yes" if t else "no" for t in truth])
    assert decided.decision.to_pylist() == ["yes" if t else "no" for t in truth]
    plain = get("set_logsumexp").decide(records([[m, 0.0] for m in margins]), META)
    assert set(plain.decision.to_pylist()) == {"yes"}
    cuts = decided.settings["p_yes_cut_by_fold"]
    assert sorted(cuts) == ["0", "1", "2", "3", "4"] and all(0.9 < cut < 1 for cut in cuts.values())


def test_invalid_rows_choose_nothing_and_stay_invalid():
    table = records([[5.0, 0.0], None, [4.0, 0.0], [-1.0, 0.0]])
    decided = get("threshold").decide(table, META, pa.array(["yes", "no", "yes", "no"]))
    assert decided.decision.to_pylist() == ["yes", "invalid", "yes", "no"]
    assert decided.margin.to_pylist()[1] is None


def test_one_image_is_not_enough_and_labels_are_needed():
    table = records([[1.0, 0.0], [2.0, 0.0]], image=["a.jpg", "a.jpg"])
    with pytest.raises(NotAvailableError, match="one image"):
        get("threshold").decide(table, META, pa.array(["yes", "no"]))
    with pytest.raises(AuditError, match="was given none"):
        get("threshold").decide(table, META)
