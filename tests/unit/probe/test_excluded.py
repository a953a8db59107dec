"""The excluded logits by hand: ids 3 and 8 of the made records."""

import numpy as np
import pytest
from corrections.made import evidence, files, record
from scipy import stats

from readout_audit.corrections.rows import Block
from readout_audit.corrections.tallies import Rows
from readout_audit.probe.clustered import Weights, draw
from readout_audit.probe.excluded import excluded_rows, main_answers, measure_excluded
from readout_audit.scores.bootstrap import Images

# (label yes, logits of yes 3, yes 5, no 8, no 9): the answer follows 5 against 9, the excluded pair is 3 against 8.
ROWS = [
    (True, [1.0, 5.0, 2.0, 3.0]),  # tp, excluded says no
    (True, [2.0, 3.0, 1.0, 5.0]),  # fn, excluded says yes
    (False, [3.0, 3.0, 0.0, 7.0]),  # tn, excluded says yes
    (False, [4.0, 9.0, 1.0, 3.0]),  # fp, excluded says yes
]


def made(folder):
    read = files(folder, [record(i, f"{i}.jpg", logits) for i, (_, logits) in enumerate(ROWS)], None)
    of_excluded, emitted = read.under("legacy_2tok"), read.under("legacy_8tok")
    images = Images(np.arange(4), 4)
    rows = Rows(np.arange(4), np.arange(4), np.array([label for label, _ in ROWS]), images)
    block = Block("pope", "adversarial", rows, np.arange(4))
    return measure_excluded(of_excluded), main_answers(emitted, block)


def rows_of(folder, weights=None):
    excluded, answers = made(folder)
    return {(row["outcome"], row["side"]): row for row in excluded_rows(answers, excluded, weights)}


def test_what_the_excluded_ids_held(tmp_path):
    excluded, answers = made(tmp_path)
    assert answers.outcome == ["tp", "fn", "tn", "fp"]
    assert excluded.yes.tolist() == [1, 2, 3, 4]
    assert excluded.no.tolist() == [2, 1, 0, 1]
    # Equal logits rank by id: in row 3 id 3 comes before id 5.
    assert excluded.yes_rank.tolist() == [4, 3, 2, 2]
    assert excluded.no_rank.tolist() == [3, 4, 4, 4]
    total = sum(np.exp(ROWS[0][1]))
    assert excluded.yes_probability[0] == pytest.approx(np.exp(1) / total, rel=1e-6)


def test_the_distribution_by_outcome(tmp_path):
    found = rows_of(tmp_path)
    yes = found["all", "yes"]
    assert (yes["n"], yes["mean"], yes["median"], yes["min"], yes["max"]) == (4, 2.5, 2.5, 1, 4)
    assert yes["sd"] == pytest.approx((5 / 3) ** 0.5)
    assert (yes["rank_mean"], yes["rank_best"]) == (2.75, 2)
    assert found["tp", "no"]["mean"] == 2
    assert "sd" not in found["tp", "no"]
    pair = found["all", "pair"]
    assert pair["mean"] == pytest.approx(np.mean([-1, 1, 3, 3]))
    both = found["all", "yes"]["probability_mean"] + found["all", "no"]["probability_mean"]
    assert pair["probability_mean"] == pytest.approx(both)


def test_how_well_the_sign_predicts(tmp_path):
    found = rows_of(tmp_path)
    pair = found["all", "pair"]
    # Says no, yes, yes, yes against labels yes, yes, no, no and answers yes, no, no, yes.
    assert (pair["says_yes"], pair["label_hits"], pair["answer_hits"]) == (3, 1, 1)
    # Labels yes have −1 and 1, labels no 3 and 3: no pair the right way round.
    assert pair["label_auc"] == 0.0
    assert (found["fp", "pair"]["answer_hits"], found["fp", "pair"]["label_hits"]) == (1, 0)
    assert "label_auc" not in found["fp", "pair"]  # one label alone


def test_the_correlation_with_the_emitted_gap(tmp_path):
    gap, excluded = [2, -2, -4, 6], [-1, 1, 3, 3]
    pair = rows_of(tmp_path)["all", "pair"]
    assert pair["pearson"] == pytest.approx(np.corrcoef(gap, excluded)[0, 1])
    assert pair["spearman"] == pytest.approx(stats.spearmanr(gap, excluded).statistic)
    weights = Weights(np.arange(4), np.array([[1.0, 1, 1, 1], [2, 1, 1, 0], [0, 2, 1, 1]]))
    ends = rows_of(tmp_path, weights)["all", "pair"]
    drawn = [[0, 1, 2, 3], [0, 0, 1, 2], [1, 1, 2, 3]]
    expected = [np.corrcoef(np.take(gap, one), np.take(excluded, one))[0, 1] for one in drawn]
    assert (ends["pearson_low"], ends["pearson_high"]) == pytest.approx(
        tuple(np.quantile(expected, [0.025, 0.975]))
    )


def test_equal_excluded_logits_say_no(tmp_path):
    read = files(tmp_path, [record(1, "a.jpg", [2.0, 5.0, 2.0, 3.0])], None)
    rows = Rows(np.arange(1), np.zeros(1, dtype=np.int64), np.array([True]), Images(np.zeros(1), 1))
    answers = main_answers(read.under("legacy_8tok"), Block("pope", "adversarial", rows, np.arange(1)))
    excluded = measure_excluded(read.under("legacy_2tok"))
    found = {(row["outcome"], row["side"]): row for row in excluded_rows(answers, excluded, None)}
    pair = found["tp", "pair"]
    assert (pair["n"], pair["says_yes"], pair["label_hits"], pair["answer_hits"]) == (1, 0, 0, 0)


def test_of_several_excluded_ids_the_best_counts(tmp_path):
    # The eight-token rule's yes ids are 3 and 5, its no ids 8 and 9.
    read = files(tmp_path, [record(1, "a.jpg", [1.0, 5.0, 2.0, 3.0])], None)
    held = measure_excluded(read.under("legacy_8tok"))
    assert (held.yes.tolist(), held.no.tolist()) == ([5.0], [3.0])
    assert (held.yes_rank.tolist(), held.no_rank.tolist()) == ([1], [2])
    total = sum(np.exp([1.0, 5.0, 2.0, 3.0]))
    assert held.yes_probability[0] == pytest.approx((np.exp(1) + np.exp(5)) / total, rel=1e-6)


def test_invalid_records_hold_nothing(tmp_path):
    one = evidence(tmp_path, [record(1, "a.jpg", None), record(2, "a.jpg", ROWS[0][1])], None)
    assert np.isnan(np.array(measure_excluded(one))[:, 0]).all()


def test_no_rows_of_an_outcome(tmp_path):
    excluded, answers = made(tmp_path)
    only = answers.group("tp")
    rows = np.flatnonzero(only)
    few = type(answers)(
        "pope", "s", answers.positive[only], answers.yes_logit[only], answers.no_logit[only], {}, None
    )
    found = {(r["outcome"], r["side"]): r for r in excluded_rows(few, excluded.take(rows), None)}
    assert found["fp", "yes"] == {"outcome": "fp", "side": "yes", "n": 0}
    assert "pearson" not in found["all", "pair"]
    assert draw(None, 10, 0) is None
