"""Tables of corrections and of the probe: what stands in their cells."""

from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from corrections.made import (
    CELL,
    TABLES,
    decision,
    record,
    signal,
    write_decisions,
    write_records,
    write_signals,
)
from corrections.run_files import OPTIONS, empty_run, make_run, run_tables
from readout_audit.contracts import SCORES
from readout_audit.corrections.registry import CORRECTIONS as METHODS
from readout_audit.corrections.registry import correction
from readout_audit.corrections.schema import CORRECTIONS, FIXED
from readout_audit.fileio import read_table, write_table
from readout_audit.probe.schema import GROUPS
from readout_audit.scores.confusion import Confusion
from readout_audit.stages import probe
from readout_audit.tables import registry
from readout_audit.tables.base import Range
from readout_audit.tables.inputs import Options, RunTables, Sources
from readout_audit.tables.measured import p_value
from readout_audit.tables.render import to_csv, to_latex, to_markdown
from readout_audit.tables.table_excluded_logits import probability

PAPER = {
    "dataset": "coco-2023-10",
    "model": "llava-1.5-7b",
    "precision": "nf4",
    "template": "authors",
    "source": "inference",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_tables(make_run(tmp_path_factory.mktemp("run")))


def records(table):
    """Rows as dictionaries of heading -> cell."""
    headings = [column.heading for column in table.columns]
    return [dict(zip(headings, row, strict=True)) for row in table.rows]


def test_answers_at_given_strengths_alone_say_why_no_strength_was_chosen(run, tmp_path):
    """As the authors' files hold them: one strength each, and no logits to apply another to."""
    every = read_table(run.sources.corrections[0], CORRECTIONS, "the corrections")
    path = tmp_path / "fixed.parquet"
    write_table(path, every.filter(pc.equal(every["choice"], FIXED)), CORRECTIONS)
    table = registry.get("table_best_beta")(RunTables(Sources(corrections=(path,)), run.options))
    assert {row["best in hindsight: F1"] for row in records(table)} == {"not_available"}
    (why,) = (note for note in table.notes if "no strength could be chosen" in note)
    assert "entropy" in why
    write_table(path, CORRECTIONS.empty_table(), CORRECTIONS)
    empty = registry.get("table_best_beta")(RunTables(Sources(corrections=(path,)), run.options))
    assert empty.rows == ()
    assert any(note.startswith("No row: no correction") for note in empty.notes)


@pytest.mark.parametrize("name", TABLES)
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
    for (name, method), _cells in published(tmp_path, root, []).items():
        assert name == "baseline" or correction(method).name == method


def test_published_tables_of_a_run_without_signals_say_not_run(root):
    """Printed counts and published decisions have no corrections and no probe; the published cells stand there."""
    sources = Sources(claims=root / "resources" / "paper" / "numbers.csv")
    for name, rows in (("table_08_published", 17), ("table_09_published", 6)):
        found = records(registry.get(name)(RunTables(sources, OPTIONS)))
        assert len(found) == rows
        ours = {cell for row in found for heading, cell in row.items() if heading.startswith("this run")}
        assert ours == {"not_run"}
        assert all(
            row["published: F1" if name.startswith("table_08") else "published: mean"] for row in found
        )


def test_published_group_means_against_this_run(tmp_path, root):
    def group(signal, name, n, mean, sd):
        about = {"labels": "pope", "split": "adversarial", "readout": "legacy_8tok"}
        return PAPER | about | {"signal": signal, "group": name, "n": n, "mean": mean, "sd": sd}

    rows = [
        group("gap", "tp", 1173, 2.0656, 0.9594),
        group("gap", "tn", 1318, 1.482, 0.670),
        group("gap", "fp", 183, None, None),
        group("attention_window", "correct", 2490, 0.07381, 0.0142),
    ]
    table = pa.Table.from_pylist(rows, schema=GROUPS)
    write_table(tmp_path / "groups.parquet", table, GROUPS)
    sources = Sources(
        probe_groups=(tmp_path / "groups.parquet",), claims=root / "resources" / "paper" / "numbers.csv"
    )
    options = Options(splits=("adversarial",))
    found = {
        (row["signal"], row["group"]): (row["this run: mean"], row["verdict"])
        for row in records(registry.get("table_09_published")(RunTables(sources, options)))
    }
    assert found["|logit gap|", "TP"] == ("2.066", "reproduced")
    assert found["|logit gap|", "TN"] == ("1.482", "differs")  # n is 1,317 there
    assert found["|logit gap|", "FP"] == ("not_available", "not_available")
    assert found["|logit gap|", "FN"] == ("not_run", "not_run")
    assert found["attention, positions 1 to 576", "correct"] == ("0.0738", "reproduced")


def test_published_baseline_is_held_against_the_scores(tmp_path, root):
    for tp, verdict in ((1174, "reproduced"), (1173, "differs")):
        none = dict.fromkeys(("unparsed_pos", "unparsed_neg", "invalid_pos", "invalid_neg"), 0)
        about = {"labels": "pope", "split": "adversarial", "readout": "legacy_8tok", "subset": "all"}
        row = PAPER | about | none | {"n": 3000, "tp": tp, "fp": 182, "tn": 1318, "fn": 1500 - tp}
        write_table(tmp_path / "s.parquet", pa.Table.from_pylist([row], schema=SCORES), SCORES)
        sources = Sources(scores=tmp_path / "s.parquet", claims=root / "resources" / "paper" / "numbers.csv")
        table = registry.get("table_08_published")(RunTables(sources, Options(splits=("adversarial",))))
        found = records(table)[0]
        assert (found["row"], found["matrices (TP, FP)"]) == ("baseline", "(1174, 182)")
        assert found["verdict"] == verdict


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
    # One outcome has one label, so nothing to tell apart.
    assert isinstance(every["yes − no: AUC for the label"], Fraction)
    assert [row["yes − no: AUC for the label"] for row in rows[1:]] == [None] * 4


def test_mean_probabilities_keep_three_digits():
    shown = [probability({"probability_mean": value}) for value in (0.034, 1.72e-5, float("nan"))]
    assert shown == ["0.0340", "1.72e-05", "not_available"]


def test_p_values_keep_three_digits():
    assert [p_value(p) for p in (1.45e-24, 0.049, 0.5, 0.0, float("nan"))] == [
        "1.45e-24",
        "0.049",
        "0.500",
        "below 1e-300",
        "not_available",
    ]
