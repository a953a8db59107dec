"""The gap stage on small decision files."""

from fractions import Fraction

import pytest
from scores.decision_files import TABLE_7, row, write_decisions

from readout_audit.contracts import GAP, TRANSITIONS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.gap.algebra import RATES
from readout_audit.stages import measure_gap

PAIR = ("legacy_8tok", "legacy_2tok")


def measured(tmp_path, decisions, **options):
    """Run the stage; return transitions and gap as {key: row} and the gap file's metadata."""
    measure_gap.run(decisions, tmp_path / "t.parquet", tmp_path / "g.parquet", **options)
    transitions = read_table(tmp_path / "t.parquet", TRANSITIONS, "transitions")
    gap = read_table(tmp_path / "g.parquet", GAP, "gap")
    step = ("split", "readout_from", "readout_to")
    by_cell = {
        tuple(r[k] for k in (*step, "label", "decision_from", "decision_to")): r["n"]
        for r in transitions.to_pylist()
    }
    by_quantity = {tuple(r[k] for k in (*step, "quantity")): r for r in gap.to_pylist()}
    assert len(by_cell) == len(transitions) and len(by_quantity) == len(gap)
    return by_cell, by_quantity, table_metadata(gap)


def test_table_7_through_the_stage(table_7, tmp_path):
    transitions, gap, _ = measured(tmp_path, table_7)
    words = {"y": "yes", "n": "no"}
    for split, by_label in TABLE_7.items():
        for label, cells in by_label.items():
            for (eight, two), n in cells.items():
                assert transitions[split, *PAIR, label, words[eight], words[two]] == n
    assert len(transitions) == 3 * 2 * 8  # both directions, zeros included

    def exact(split, quantity):
        found = gap[split, *PAIR, quantity]
        assert found["value"] == found["numerator"] / found["denominator"]
        return Fraction(found["numerator"], found["denominator"])

    rho = gap["adversarial", *PAIR, "rho_n"]
    assert (rho["numerator"], rho["denominator"], rho["note"]) == (660, 1318, None)
    assert exact("random", "delta_f1") == Fraction(2382, 2734) - Fraction(2882, 3432)
    for split in TABLE_7:
        assert exact(split, "f1_to_rebuilt") == exact(split, "f1_to")
        parts = [
            exact(split, f"delta_f1_part:{name}")
            for name in ("rho_n", "phi", "yes_to_no_pos", "yes_to_no_neg")
        ]
        assert sum(parts) == exact(split, "delta_f1")
        assert exact(split, "f1_phi_zero") == exact(split, "f1_only:rho_n")  # nothing flips from yes to no
    assert round(gap["popular", *PAIR, "f1_transferred:adversarial"]["value"], 4) == 0.7690
    assert round(gap["random", *PAIR, "f1_transferred:adversarial"]["value"], 4) == 0.7761
    assert ("popular", *PAIR, "f1_transferred:popular") not in gap


def test_rows_without_an_answer_are_left_out_and_counted(tmp_path):
    rows = [
        row("s", 1, "yes", a="yes", b="no"),
        row("s", 2, "no", a="unparsed", b="no"),
        row("s", 3, "no", a="invalid", b="unparsed"),
    ]
    _, gap, _ = measured(tmp_path, write_decisions(tmp_path / "d.parquet", rows), pairs=[("a", "b")])
    assert gap["s", "a", "b", "agreement"]["denominator"] == 1
    assert gap["s", "a", "b", "agreement"]["note"] == "left out: 1 unparsed and 1 invalid rows"
    rho = gap["s", "a", "b", "rho_n"]
    assert (rho["value"], rho["numerator"], rho["denominator"]) == (None, 0, 0)
    assert rho["note"].startswith("undefined: 0/0")


def test_separate_counts_give_bounds_and_no_pairing(tmp_path):
    rows = [
        row("s", 1, "yes", a="yes", b="no"),
        row("s", 2, "yes", a="no", b="yes"),
        row("s", 3, "no", a="no", b="yes"),
    ]
    decisions = write_decisions(tmp_path / "d.parquet", rows, joint=False)
    transitions, gap, _ = measured(tmp_path, decisions, pairs=[("a", "b")])
    assert transitions == {}
    assert gap["s", "a", "b", "phi"]["value"] is None
    assert "not identifiable" in gap["s", "a", "b", "phi"]["note"]
    # One of two positives is yes under each: the one may be the other or not.
    assert (gap["s", "a", "b", "phi_bound_low"]["value"], gap["s", "a", "b", "phi_bound_high"]["value"]) == (
        0,
        1,
    )
    # The only negative did flip, so that rate is known.
    assert (gap["s", "a", "b", "rho_n"]["value"], gap["s", "a", "b", "rho_n_bound_low"]["value"]) == (1, 1)
    assert gap["s", "a", "b", "delta_f1"]["value"] == pytest.approx(2 / 3 - 2 / 4)
    rows[0]["a"] = "unparsed"
    decisions = write_decisions(tmp_path / "d.parquet", rows, joint=False)
    _, gap, _ = measured(tmp_path, decisions, pairs=[("a", "b")])
    assert "not every row was answered" in gap["s", "a", "b", "phi"]["note"]
    assert ("s", "a", "b", "phi_bound_low") not in gap


def test_separate_counts_that_allow_one_pairing_are_paired(tmp_path):
    # A constant no against a constant yes: every answer flips, whichever row it stands in.
    rows = [row("s", n, label, a="no", b="yes") for n, label in enumerate(("yes", "yes", "no"))]
    decisions = write_decisions(tmp_path / "d.parquet", rows, joint=False)
    transitions, gap, _ = measured(tmp_path, decisions, pairs=[("a", "b")])
    assert {key[-3:]: n for key, n in transitions.items() if n} == {
        ("yes", "no", "yes"): 2,
        ("no", "no", "yes"): 1,
    }
    assert (gap["s", "a", "b", "rho_n"]["value"], gap["s", "a", "b", "phi"]["value"]) == (1, 1)
    assert gap["s", "a", "b", "agreement"]["value"] == 0
    # F1 goes from 0 to 4/5: all of it by mended misses and new false alarms.
    parts = [gap["s", "a", "b", f"delta_f1_part:{name}"]["value"] for name in RATES]
    assert sum(parts) == pytest.approx(-4 / 5)


def test_rates_that_another_split_cannot_give(tmp_path):
    rows = [row("s", 1, "yes", a="no", b="yes"), row("t", 1, "yes", a="yes", b="yes")]
    _, gap, _ = measured(tmp_path, write_decisions(tmp_path / "d.parquet", rows), pairs=[("a", "b")])
    assert gap["s", "a", "b", "f1_transferred:t"]["value"] is None
    assert gap["s", "a", "b", "f1_transferred:t"]["note"] == "t has no such answers to flip"


def test_pairs_without_data_are_named_and_unknown_ones_refused(tmp_path):
    rows = [row("s", 1, "yes", a="yes", b=None), row("s", 2, "no", a="no", b=None)]
    decisions = write_decisions(tmp_path / "d.parquet", rows, readouts={"b": {"why_not": "no logits"}})
    transitions, gap, metadata = measured(tmp_path, decisions, pairs=[("a", "b")])
    assert transitions == {} and gap == {}
    assert metadata["not_available"] == {"b": "no logits"}
    with pytest.raises(AuditError, match="'c' is not in the decision file, which has a, b"):
        measured(tmp_path, decisions, pairs=[("a", "c")])
