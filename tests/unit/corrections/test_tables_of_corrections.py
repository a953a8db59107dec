"""Tables of corrections and of the probe: what stands in their cells."""

from fractions import Fraction

import pyarrow as pa
import pytest

from corrections.made import CELL, decision, record, signal, write_decisions, write_records, write_signals
from corrections.run_files import OPTIONS, empty_run, make_run, run_tables
from readout_audit.corrections.registry import CORRECTIONS as METHODS
from readout_audit.corrections.registry import correction
from readout_audit.corrections.schema import CORRECTIONS
from readout_audit.fileio import write_table
from readout_audit.scores.confusion import Confusion
from readout_audit.stages import probe
from readout_audit.tables import registry
from readout_audit.tables.base import Range
from readout_audit.tables.inputs import RunTables, Sources
from readout_audit.tables.measured import p_value
from readout_audit.tables.render import to_csv, to_latex, to_markdown

NAMES = (
    "table_08_corrections",
    "table_09_group_means",
    "table_best_beta",
    "table_correctness",
    "table_probe_comparisons",
    "table_probe_passes",
    "table_excluded_logits",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_tables(make_run(tmp_path_factory.mktemp("run")))


def records(table):
    """Rows as dictionaries of heading -> cell."""
    headings = [column.heading for column in table.columns]
    return [dict(zip(headings, row, strict=True)) for row in table.rows]


@pytest.mark.parametrize("name", NAMES)
def test_every_format_and_no_rows(run, tmp_path, name):
    table = registry.get(name)(run)
    assert len(to_csv(table).splitlines()) == len(table.rows) + 1
    assert "\\begin{tabular}" in to_latex(table)
    numbered = f"**Table {table.number}.**" if table.number else "**Beyond the paper.**"
    assert to_markdown(table).startswith(numbered)
    assert set(registry.entry(name).needs) <= {
        "corrections",
        "correctness",
        "probe",
        *(f"probe_{kind}" for kind in ("groups", "comparisons", "windows", "excluded")),
    }
    assert registry.get(name)(empty_run(tmp_path)).rows == ()


def test_table_8_has_the_baseline_first_and_exact_scores(run):
    rows = [row for row in records(registry.get("table_08_corrections")(run)) if row["split"] == "random"]
    assert rows[0]["correction"] == "no correction"
    assert len(rows) == 1 + len(METHODS) + 2
    positives = rows[0]["n"] // 2
    for row in rows[1:]:
        exact = Fraction(2 * row["TP"], row["TP"] + row["FP"] + positives)
        assert row["F1"] == exact
        assert row["ΔF1"] == exact - rows[0]["F1"]
        assert row["interval of ΔF1: 95%"].low <= row["ΔF1"] <= row["interval of ΔF1: 95%"].high
    assert [row["β"] for row in rows[1:3]] == ["1.0", "1.5"]
    assert next(row["β"] for row in rows if row["correction"] == "generation midpoint") == "none"


def test_best_beta_never_loses_and_says_what_folds_got(run):
    rows = records(registry.get("table_best_beta")(run))
    assert len(rows) == 2 * (len(METHODS) - 1)
    assert all(row["best in hindsight: ΔF1"] >= 0 for row in rows)
    assert all(row["cross-fitted: F1"] <= row["best in hindsight: F1"] for row in rows)


def test_a_missing_signal_is_said_in_a_note(tmp_path):
    row = {"method": "entropy", "choice": "fixed", "status": "not_available", "reason": "column x is null"}
    run = corrections_run(tmp_path, [row])
    table = registry.get("table_08_corrections")(run)
    assert {cell for name, cell in records(table)[1].items() if name in ("F1", "n", "TP")} == {
        "not_available"
    }
    assert "entropy: not available, column x is null." in table.notes


def corrections_run(folder, rows, model="llava-1.5-7b", **more):
    cell = CELL | {"model": model}
    leading = {**cell, "labels": "pope", "split": "adversarial", "readout": "legacy_8tok"}
    table = pa.Table.from_pylist([leading | row for row in rows], schema=CORRECTIONS)
    write_table(folder / "corrections.parquet", table, CORRECTIONS)
    return RunTables(Sources(corrections=(folder / "corrections.parquet",), **more), OPTIONS)


def fixed(method, tp, fp, strength=1.0):
    return {
        "method": method,
        "choice": "fixed",
        "strength": strength,
        "status": "ok",
        "n": 3000,
        "n_without_signal": 0,
        "tp": tp,
        "fp": fp,
        "tn": 1500 - fp,
        "fn": 1500 - tp,
        "baseline_tp": 1174,
        "baseline_fp": 182,
    }


def published(folder, root, rows):
    run = corrections_run(folder, rows, claims=root / "resources" / "paper" / "numbers.csv")
    table = registry.get("table_08_published")(run)
    return {(row["row"], row["run as"]): row for row in records(table)}


def test_published_rows_against_integer_matrices(tmp_path, root):
    found = published(tmp_path, root, [])
    # From the issue of arithmetic: three corrections come from one matrix each, the others from none.
    assert found["clip_b32_certainty_beta_1.0", "clip_b32"]["matrices (TP, FP)"] == "(1115, 114)"
    assert found["clip_b32_certainty_beta_1.5", "clip_b32_code"]["matrices (TP, FP)"] == "(1079, 84)"
    assert found["entropy", "entropy_code"]["matrices (TP, FP)"] == "(1118, 121)"
    without = {row for (row, _), cells in found.items() if cells["matrices (TP, FP)"] == "none"}
    assert without == {
        "clip_l14_336_certainty",
        "magnitude",
        "cls_similarity",
        "object_noun_clip",
        "uniform",
        "vcd_noise",
    }
    assert {cells["verdict"] for cells in found.values()} == {"not_run", "inconsistent_in_paper"}


def test_published_rows_against_this_run(tmp_path, root):
    rows = [
        fixed("clip_b32", 1115, 114),
        fixed("clip_b32_code", 1115, 115),
        fixed("clip_b32", 1080, 84, 1.5),
        fixed("clip_b32_code", 1079, 84, 1.5),
        fixed("entropy", 1118, 120),
        fixed("uniform", 1087, 92),
    ]
    found = published(tmp_path, root, rows)
    verdicts = {key: cells["verdict"] for key, cells in found.items()}
    assert verdicts["clip_b32_certainty_beta_1.0", "clip_b32"] == "reproduced"
    assert (
        verdicts["clip_b32_certainty_beta_1.0", "clip_b32_code"] == "differs"
    )  # the code leaves nothing open
    assert verdicts["clip_b32_certainty_beta_1.5", "clip_b32"] == "not_identifiable"  # F.1 gives no map
    assert verdicts["clip_b32_certainty_beta_1.5", "clip_b32_code"] == "reproduced"
    assert verdicts["entropy", "entropy"] == "not_identifiable"
    assert verdicts["uniform", "uniform"] == "inconsistent_in_paper"
    assert (
        found["clip_b32_certainty_beta_1.0", "clip_b32"]["this run: F1"] == Confusion(1115, 114, 1386, 385).f1
    )


def test_every_published_row_has_a_form_to_run(tmp_path, root):
    for (_, method), _cells in published(tmp_path, root, []).items():
        assert correction(method).name == method


def test_table_9_groups(run):
    rows = [row for row in records(registry.get("table_09_group_means")(run)) if row["split"] == "random"]
    sizes = {(row["signal"], row["group"]): row["n"] for row in rows}
    gap = [sizes["|logit gap|", group] for group in ("TP", "TN", "FP", "FN")]
    assert sum(gap) == 60
    window = "attention, positions 1 to 576"
    assert (sizes[window, "correct"], sizes[window, "wrong"]) == (gap[0] + gap[1], gap[2] + gap[3])


def test_table_9_names_the_positions_of_the_run(tmp_path):
    made = run_tables(make_run(tmp_path, resamples=0, window=[1, 37]))
    for name in ("table_09_group_means", "table_probe_comparisons"):
        found = {row["signal"] for row in records(registry.get(name)(made))}
        assert "attention, positions 1 to 36" in found
        assert not any("576" in signal for signal in found)


def test_correctness_has_the_gap_as_reference(run):
    rows = records(registry.get("table_correctness")(run))
    gap = next(row for row in rows if row["signal"] == "|logit gap|")
    assert gap["all answers: gain"] == "reference"
    assert isinstance(gap["all answers: 95%"], Range)


def test_passes_list_differences_and_ties(tmp_path):
    out = probe.Outputs(*(tmp_path / name for name in probe.Outputs._fields))
    main = [[0.0, 2.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0], [0.0, 3.0, 0.0, 1.0]]
    here = [[0.0, 1.5, 0.0, 1.5], [0.0, 1.0, 0.0, 1.0], [0.0, 3.0, 0.0, 1.0]]
    probe.run(
        write_records(tmp_path / "r", [record(i, "a.jpg", one) for i, one in enumerate(main)]),
        write_signals(
            tmp_path / "s", [signal(i, "a.jpg", answer_candidate_logits=one) for i, one in enumerate(here)]
        ),
        write_decisions(tmp_path / "d", [decision(i, "a.jpg", "yes") for i in range(3)]),
        out,
        resamples=0,
    )
    table = registry.get("table_probe_passes")(RunTables(Sources(probe=(out.probe,)), OPTIONS))
    assert [(row["question id"], row["why listed"]) for row in records(table)] == [
        ("0", "the answers differ, tie here"),
        ("1", "tie here, tie in the main run"),
    ]
    assert "1 of 3 answers differ, 2 ties here and 1 in the main run, gaps at most 1 apart" in table.notes[1]


def test_excluded_rows(run):
    rows = [row for row in records(registry.get("table_excluded_logits")(run)) if row["split"] == "random"]
    assert [row["outcome"] for row in rows] == ["all", "TP", "FP", "TN", "FN"]
    every = rows[0]
    hits = sum(row["yes − no: sign is the label"] * row["n"] for row in rows[1:] if row["n"])
    assert every["yes − no: sign is the label"] == Fraction(hits, every["n"])
    # Among true answers, label and answer are one.
    assert rows[1]["yes − no: sign is the label"] == rows[1]["yes − no: sign is the answer"]


def test_p_values_keep_three_digits():
    assert [p_value(p) for p in (1.45e-24, 0.049, 0.5, 0.0, float("nan"))] == [
        "1.45e-24",
        "0.049",
        "0.500",
        "below 1e-300",
        "not_available",
    ]
