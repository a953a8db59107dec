"""The gap under corrected labels, and what carries the flips."""

from fractions import Fraction

import numpy as np
import pytest
from scores.decision_files import row, write_decisions

from readout_audit.contracts import GAP, SCORES
from readout_audit.errors import AuditError
from readout_audit.exact import printed
from readout_audit.fileio import read_table, table_metadata
from readout_audit.gap.relabel import (
    CARRIERS,
    RELABELLED,
    balanced_f1,
    flip_carriers,
    relabelled_gaps,
)
from readout_audit.scores.confusion import ABSENT, NO, YES, Confusion
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.labels import LabelSet, label_sets
from readout_audit.stages import measure_gap, relabel, score

PAIR = ("legacy_8tok", "legacy_2tok")

# Gap in F1 points on the published decisions, RePOPE of bcf22e5; rows in the order of the module's choices.
GAPS = {
    "adversarial": ("6.13", "7.88", "10.13", "12.59", "9.70"),
    "popular": ("5.37", "7.59", "8.91", "11.75", "8.63"),
    "random": ("3.15", "5.60", "7.99", "11.29", "7.33"),
}
# Questions kept and positives among them; F1 under RePOPE of the eight-token and the two-token rule.
REPOPE = {
    "adversarial": (2684, 1187, "0.8570", "0.7311"),
    "popular": (2727, 1193, "0.8775", "0.7599"),
    "random": (2774, 1159, "0.9029", "0.7900"),
}


def test_the_published_gap_under_repope(published, repope, tmp_path):
    relabel.run(published, tmp_path / "g.parquet", tmp_path / "c.parquet", {"repope": [repope]}, PAIR)
    table = read_table(tmp_path / "g.parquet", RELABELLED, "gaps")
    rows = table.to_pylist()
    for split, points in GAPS.items():
        found = [r for r in rows if r["split"] == split]
        exact = [Fraction(r["gap_numerator"], r["gap_denominator"]) for r in found]
        assert tuple(printed(100 * gap, 2) for gap in exact) == points
        other = found[3]
        f1s = [
            Fraction(other[f"f1_{side}_numerator"], other[f"f1_{side}_denominator"])
            for side in ("from", "to")
        ]
        assert (other["n"], other["positives"], *(printed(f1, 4) for f1 in f1s)) == REPOPE[split]
    left_out = table_metadata(table)["labels"]["repope"]["left_out"]
    assert left_out == {"no label in repope": {"adversarial": 316, "popular": 273, "random": 226}}
    carriers = read_table(tmp_path / "c.parquet", CARRIERS, "carriers").to_pylist()
    for by in ("object", "image"):
        own = [r for r in carriers if (r["labels"], r["split"], r["by"]) == ("pope", "adversarial", by)]
        assert sum(r["no_to_yes_neg"] for r in own) == 660 and sum(r["no_to_yes_pos"] for r in own) == 264
        assert sum(r["n"] for r in own) == 3000
        flips = [r["no_to_yes_neg"] + r["no_to_yes_pos"] for r in own]
        assert flips == sorted(flips, reverse=True)


def test_scores_and_gap_stages_agree_with_the_five_rows(published, repope, tmp_path):
    score.run(published, tmp_path / "s.parquet", relabel={"repope": [repope]})
    scores = {
        (r["labels"], r["split"], r["readout"]): r
        for r in read_table(tmp_path / "s.parquet", SCORES, "scores").to_pylist()
    }
    measure_gap.run(
        published, tmp_path / "t.parquet", tmp_path / "g.parquet", [PAIR], relabel={"repope": [repope]}
    )
    gap = {
        (r["labels"], r["split"]): r
        for r in read_table(tmp_path / "g.parquet", GAP, "gap").to_pylist()
        if r["quantity"] == "delta_f1"
    }
    for split, points in GAPS.items():
        n, positives, eight, two = REPOPE[split]
        row8 = scores["repope", split, "legacy_8tok"]
        assert (row8["n"], row8["tp"] + row8["fn"]) == (n, positives)
        assert round(row8["f1"], 4) == float(eight)
        assert round(scores["repope", split, "legacy_2tok"]["f1"], 4) == float(two)
        for labels, printed_points in (("pope", points[0]), ("repope", points[3])):
            exact = Fraction(gap[labels, split]["numerator"], gap[labels, split]["denominator"])
            assert printed(100 * exact, 2) == printed_points


@pytest.mark.parametrize(
    ("split", "low", "high"),
    [("adversarial", 0.047, 0.075), ("popular", 0.039, 0.068), ("random", 0.017, 0.046)],
)
def test_interval_of_the_published_gap_over_images(published, tmp_path, split, low, high):
    measure_gap.run(
        published, tmp_path / "t.parquet", tmp_path / "g.parquet", [PAIR], resamples=10_000, seed=42
    )
    gap = {
        (r["split"], r["quantity"]): r["value"]
        for r in read_table(tmp_path / "g.parquet", GAP, "gap").to_pylist()
    }
    # Another generator drew the published interval, which is given to three decimals.
    assert gap[split, "delta_f1_ci_low"] == pytest.approx(low, abs=0.001)
    assert gap[split, "delta_f1_ci_high"] == pytest.approx(high, abs=0.001)


def test_balanced_f1_by_hand():
    # Half of the positives found, a quarter of the negatives called yes: 2 * 0.5 / (0.5 + 0.25 + 1).
    assert balanced_f1(Confusion(tp=1, fp=2, tn=6, fn=1)) == Fraction(4, 7)
    already = Confusion(tp=3, fp=1, tn=4, fn=2)
    assert balanced_f1(already) == already.f1
    assert balanced_f1(Confusion(tp=1, fp=0, tn=0, fn=0)) is None


def small(tmp_path):
    """Four questions about two images; the other label set drops one and turns one."""
    rows = [
        row("s", 1, "yes", image="1.jpg", item="cat", a="yes", b="yes"),
        row("s", 2, "yes", image="1.jpg", item="dog", a="no", b="yes"),
        row("s", 3, "no", image="2.jpg", item="cat", a="no", b="yes"),
        row("s", 4, "no", image="2.jpg", item="dog", a="no", b="no"),
    ]
    decisions = read_decisions(write_decisions(tmp_path / "d.parquet", rows))
    return decisions, LabelSet("other", np.array([YES, NO, ABSENT, NO], np.int8), {})


def test_the_five_rows_by_hand(tmp_path):
    decisions, other = small(tmp_path)
    found = relabelled_gaps(decisions, other, "a", "b")
    assert [(r.n, r.positives) for r in found] == [(4, 2), (3, 2), (4, 1), (3, 1), (3, 1)]
    assert [r.f1_from for r in found] == [Fraction(2, 3), Fraction(2, 3), 1, 1, 1]
    # Two-yes side: TP 2, FP 1; TP 2, FP 0; TP 1, FP 2; TP 1, FP 1; TPR 1, FPR 1/2.
    assert [r.f1_to for r in found] == [Fraction(4, 5), 1, Fraction(1, 2), Fraction(2, 3), Fraction(4, 5)]
    assert found[0].gap == Fraction(2, 3) - Fraction(4, 5)


def test_carriers_by_hand(tmp_path):
    decisions, other = small(tmp_path)
    own = label_sets(decisions, None)[0]
    rows = flip_carriers(decisions, own, "a", "b", "object").to_pylist()
    assert [(r["name"], r["n"], r["no_to_yes_pos"], r["no_to_yes_neg"]) for r in rows] == [
        ("cat", 2, 0, 1),
        ("dog", 2, 1, 0),
    ]
    rows = flip_carriers(decisions, other, "b", "a", "image").to_pylist()
    assert [(r["name"], r["n"], r["yes_to_no_pos"], r["yes_to_no_neg"]) for r in rows] == [
        ("1.jpg", 2, 0, 1),
        ("2.jpg", 1, 0, 0),
    ]


def test_what_cannot_be_relabelled_is_refused(tmp_path):
    decisions, other = small(tmp_path)
    with pytest.raises(AuditError, match="'c' is not in the decision file"):
        relabelled_gaps(decisions, other, "a", "c")
    separate = read_decisions(
        write_decisions(tmp_path / "d.parquet", [row("s", 1, "yes", a="yes", b="no")], joint=False)
    )
    with pytest.raises(AuditError, match="gives counts, not questions"):
        relabelled_gaps(separate, label_sets(separate, None)[0], "a", "b")


def test_a_readout_that_the_source_does_not_give_has_no_rows(tmp_path):
    """A model behind a server has no ids of a reference model: the pair is there, and empty."""
    rows = [row("a", 0, "yes", "0.jpg", "dog", legacy_8tok=None, legacy_2tok=None, first_token="yes")]
    about = {name: {"available": False, "why_not": "no ids"} for name in PAIR} | {"first_token": {}}
    path = write_decisions(tmp_path / "d.parquet", rows, readouts=about)
    decisions = read_decisions(path)
    assert relabelled_gaps(decisions, label_sets(decisions, {})[0], *PAIR) == []
    relabel.run(path, tmp_path / "g.parquet", tmp_path / "c.parquet", {}, PAIR)
    assert read_table(tmp_path / "c.parquet", CARRIERS, "carriers").num_rows == 0
    with pytest.raises(AuditError, match="readout 'nope' is not in the decision file"):
        relabelled_gaps(decisions, label_sets(decisions, {})[0], "nope", "legacy_2tok")
