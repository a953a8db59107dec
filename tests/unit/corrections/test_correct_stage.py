"""The stage: from records, signals and decisions to three tables."""

import subprocess
import sys

import pandas as pd
import pytest

from corrections.made import decision, record, signal, world, write_decisions, write_records, write_signals
from readout_audit.corrections.registry import CORRECTIONS as METHODS
from readout_audit.corrections.registry import VALUES
from readout_audit.corrections.schema import CORRECTIONS, CORRECTNESS, SWEEPS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.stages import correct


def run(folder, records, signals, decisions, **more):
    outputs = [folder / f"{name}.parquet" for name in ("corrections", "sweeps", "correctness")]
    correct.run(
        write_records(folder / "r.parquet", records),
        write_signals(folder / "s.parquet", signals),
        write_decisions(folder / "d.parquet", decisions),
        *outputs,
        **more,
    )
    schemas = (CORRECTIONS, SWEEPS, CORRECTNESS)
    return [read_table(path, schema, "a table") for path, schema in zip(outputs, schemas, strict=True)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return run(tmp_path_factory.mktemp("stage"), *world(images=20), resamples=50)


def frame(table) -> pd.DataFrame:
    return table.to_pandas()


def test_every_correction_on_every_split(made):
    found = frame(made[0])
    assert set(found["split"]) == {"random", "adversarial"}
    for _, rows in found.groupby("split"):
        assert list(dict.fromkeys(rows["method"])) == list(METHODS)
        assert (rows["status"] == "ok").all()
        assert (rows["tp"] + rows["fn"] == rows["n"] // 2).all()
        assert (rows["tp"] + rows["fp"] + rows["tn"] + rows["fn"] == rows["n"]).all()
        # CLIP-B/32 at two β in either form.
        assert (rows["choice"] == "fixed").sum() == len(METHODS) + 2
        assert set(rows.loc[rows["choice"] == "fixed", "tried"]) == {len(METHODS) + 2}
        assert rows["delta_f1_low"].notna().all()


def test_the_sweep_starts_at_the_baseline_and_holds_the_best(made):
    scored, swept = frame(made[0]), frame(made[1])
    assert len(swept) == 2 * 61 * (len(METHODS) - 1)
    for (split, method), rows in swept.groupby(["split", "method"]):
        of = scored[(scored["split"] == split) & (scored["method"] == method)]
        start = rows[rows["strength"] == 0].iloc[0]
        assert (start["tp"], start["fp"]) == (of.iloc[0]["baseline_tp"], of.iloc[0]["baseline_fp"])
        f1 = 2 * rows["tp"] / (2 * rows["tp"] + rows["fp"] + rows["fn"])
        hindsight = of[of["choice"] == "hindsight"].iloc[0]
        assert hindsight["strength"] == rows["strength"][f1.idxmax()]
        assert hindsight["delta_f1"] >= 0  # strength 0 is one of the choices


def test_the_code_of_cls_changes_nothing(made):
    found = frame(made[0])
    rows = found[(found["method"] == "cls_code") & (found["choice"] == "fixed")]
    assert (rows["yes_to_no"] == 0).all() and (rows["delta_f1"] == 0).all()


def test_correctness_asks_every_signal_about_every_kind_of_answer(made):
    found = frame(made[2])
    assert set(found["signal"]) == {"gap", *VALUES}
    assert set(found["answers"]) == {"all", "yes", "no"}
    rows = found[found["split"] == "random"].groupby("answers")["n"].max()
    assert rows["all"] == rows["yes"] + rows["no"]
    tested = found[found["p"].notna()]
    assert (tested["p_corrected"] >= tested["p"]).all()


def test_a_small_gap_tells_wrong_answers(made):
    gap = frame(made[2]).query("signal == 'gap' and answers == 'all'")
    assert (gap["auc"] < 0.5).all()


def test_same_inputs_same_bytes(tmp_path):
    once, again = [(tmp_path / str(i)) for i in range(2)]
    for folder in (once, again):
        folder.mkdir()
        run(folder, *world(images=4), resamples=20)
    for name in ("corrections", "sweeps", "correctness"):
        assert (once / f"{name}.parquet").read_bytes() == (again / f"{name}.parquet").read_bytes()


def test_signals_that_were_not_computed_are_named(tmp_path):
    records, signals, decisions = world(images=4)
    bare = [{key: row[key] for key in ("uid", "image", "status")} for row in signals]
    scored, swept, known = (frame(table) for table in run(tmp_path, records, bare, decisions))
    missing = scored[scored["status"] == "not_available"]
    assert set(missing["method"]) == set(METHODS) - {"uniform", "cls_code"}
    assert missing[["n", "tp", "fp", "delta_f1", "strength"]].isna().all(axis=None)
    assert set(swept["method"]) == {"uniform", "cls_code"}
    assert (known[known["signal"] != "gap"]["status"] == "not_available").all()


def test_invalid_records_and_a_readout_without_ids_are_named(tmp_path):
    rows = [(1, "yes", [0.0, 2.0, 0.0, 1.0]), (2, "no", None), (3, "no", [0.0, 1.0, 0.0, 2.0])]
    scored, _, _ = run(
        tmp_path,
        [record(i, "a.jpg", logits) for i, _, logits in rows],
        [signal(i, "a.jpg", entropy_normalised=0.5) for i, _, _ in rows],
        [decision(i, "a.jpg", label) for i, label, _ in rows],
        readouts=["legacy_8tok", "vocab_scan"],
        methods=["entropy"],
    )
    assert set(frame(scored)["n"]) == {2}
    notes = table_metadata(scored)
    assert notes["invalid_records"] == 1
    assert "no scan token sets" in notes["not_available"]["vocab_scan"]


def test_every_answer_right_leaves_nothing_to_tell(tmp_path):
    rows = [(1, "yes", [0.0, 2.0, 0.0, 1.0]), (2, "no", [0.0, 1.0, 0.0, 2.0])]
    _, _, known = run(
        tmp_path,
        [record(i, "a.jpg", logits) for i, _, logits in rows],
        [signal(i, "a.jpg", entropy_normalised=0.5) for i, _, _ in rows],
        [decision(i, "a.jpg", label) for i, label, _ in rows],
    )
    gap = frame(known).query("signal == 'gap'")
    assert set(gap["reason"]) == {"every answer is right"}


def test_decisions_of_other_questions_are_refused(tmp_path):
    records, signals, decisions = world(images=2)
    with pytest.raises(
        AuditError, match="1 rows of the decisions ask questions that the records do not hold"
    ):
        run(tmp_path, records[1:], signals, decisions)


def test_decisions_without_images_are_refused(tmp_path):
    records, signals, decisions = world(images=1, per_image=1)
    with pytest.raises(AuditError, match="do not say which image"):
        run(tmp_path, records, signals, [decisions[0] | {"image": None}])


def test_nothing_here_needs_torch():
    code = "import sys, readout_audit.stages.correct; print({'torch', 'transformers'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
