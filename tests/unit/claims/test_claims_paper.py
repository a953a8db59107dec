"""The claims of whole runs: from printed counts, from the published records, and from nothing."""

import csv
import json
from collections import Counter

import pytest

from readout_audit.claims.evidence import Evidence, Files
from readout_audit.claims.groups import contradictions
from readout_audit.claims.numbers import read_numbers
from readout_audit.claims.table import KINDS, STATUSES, build_claims
from readout_audit.errors import AuditError
from readout_audit.stages import (
    build_claims as stage,
)
from readout_audit.stages import (
    build_questions,
    decisions_from_counts,
    decisions_from_published,
    measure_gap,
    score,
)

SPLITS = ("adversarial", "popular", "random")


@pytest.fixture(scope="module")
def numbers(root):
    return root / "resources/paper/numbers.csv"


def measure(folder, decisions):
    score.run(decisions, folder / "scores.parquet")
    measure_gap.run(decisions, folder / "transitions.parquet", folder / "gap.parquet")
    return {
        "scores": folder / "scores.parquet",
        "transitions": [folder / "transitions.parquet"],
        "gap": [folder / "gap.parquet"],
        "decisions": [decisions],
    }


def claims_of(numbers, folder, **files):
    stage.run(numbers, folder / "claims.csv", **files)
    with (folder / "claims.csv").open(encoding="utf-8", newline="") as stream:
        return {row["id"]: row for row in csv.DictReader(stream)}


@pytest.fixture(scope="module")
def from_counts(numbers, tmp_path_factory):
    folder = tmp_path_factory.mktemp("counts")
    decisions_from_counts.run(numbers, "llava-1.5-7b", folder / "decisions.parquet")
    return claims_of(numbers, folder, **measure(folder, folder / "decisions.parquet"))


@pytest.fixture(scope="module")
def from_published(numbers, shared, tmp_path_factory):
    folder, mirror = tmp_path_factory.mktemp("published"), shared / "mirror"
    build_questions.run(
        dataset="coco-2023-10",
        namespace="coco",
        files={split: mirror / f"pope/coco-2023-10/coco_pope_{split}.json" for split in SPLITS},
        sha256={},
        known=[],
        output=folder / "q.parquet",
        report=folder / "q.json",
    )
    files = {split: mirror / f"published/experiments/pope_{split}_2tok_vs_8tok.json" for split in SPLITS}
    decisions_from_published.run(files, folder / "q.parquet", folder / "decisions.parquet")
    return claims_of(numbers, folder, **measure(folder, folder / "decisions.parquet"))


def test_every_claim_has_a_verdict_and_a_reason(from_counts, numbers):
    assert len(from_counts) == len(read_numbers(numbers)) > 500
    assert {row["status"] for row in from_counts.values()} <= set(STATUSES)
    for row in from_counts.values():
        if row["status"] in ("not_run", "not_identifiable", "inconsistent_in_paper", "differs"):
            assert row["note"], row["id"]
        if row["status"] in ("reproduced", "derived", "differs"):
            assert row["reproduced"], row["id"]
            assert row["source"], row["id"]


@pytest.mark.parametrize("prefix", ["t1.", "t2.", "t7.", "t13.", "s3.4.", "f5."])
def test_printed_integers_give_every_core_number(from_counts, prefix):
    core = {key: row for key, row in from_counts.items() if key.startswith(prefix)}
    assert core
    for key, row in core.items():
        if key != "t2.random.gap":
            assert (row["status"], row["reproduced"]) == ("reproduced", row["published"]), key


def test_random_gap_is_a_difference_of_rounded_values(from_counts):
    row = from_counts["t2.random.gap"]
    assert (row["published"], row["reproduced"]) == ("0.0316", "0.0315")
    assert row["status"] == "inconsistent_in_paper"
    assert row["note"] == "The printed difference is that of the rounded F1s; the exact one prints 0.0315."


def test_no_other_measured_number_of_the_core_is_contradictory(from_counts):
    found = {key for key, row in from_counts.items() if row["status"] == "inconsistent_in_paper"}
    assert found == {
        "t2.random.gap",
        # A yes-rate of 0.0003 is one yes, where the prose has none.
        "t4.qwen2-vl-7b-instruct.adversarial.same_way",
        # Table 8: six rows that no matrix gives, and the ranges that are not those of the table.
        *(
            f"t8.{row}.{metric}"
            for row in (
                "clip_l14_336_certainty",
                "magnitude",
                "cls_similarity",
                "object_noun_clip",
                "uniform",
                "vcd_noise",
            )
            for metric in ("f1", "precision", "recall")
        ),
        "t8.precision_gain.low",
        "t8.precision_gain.high",
        "t8.recall_cost.low",
        "t8.recall_cost.high",
        "probe.tests",
        "s1.correction_kinds",
        "f1.correction_kinds",
        # Two contrastive corrections are counted and one is listed; of nine listed, eight have a row.
        "f1.contrastive_listed",
        "f1.corrections_listed",
    }


def test_counts_of_corrections_that_do_not_add_up(from_counts):
    listed = from_counts["f1.corrections_listed"]
    assert (listed["published"], listed["reproduced"]) == ("9", "8")
    assert listed["note"].startswith("Table 8 has 9 rows of 8 corrections")
    assert from_counts["s1.correction_kinds"]["note"] == (
        "Section 1 counts three contrastive; Appendix F.1 counts two contrastive; Appendix F.1, list counts one contrastive."
    )


def test_table_8_ranges_as_they_follow_from_its_rows(from_counts):
    # 0.8963 - 0.8658 = 0.0305 and 0.9278 - 0.8658 = 0.0620; 0.7827 - 0.7467 = 0.0360, 0.7827 - 0.7193 = 0.0634
    shown = {
        key: from_counts[f"t8.{key}"]["reproduced"] for key in ("precision_gain.low", "precision_gain.high")
    }
    assert shown == {"precision_gain.low": "3.1", "precision_gain.high": "6.2"}
    shown = {key: from_counts[f"t8.{key}"]["reproduced"] for key in ("recall_cost.low", "recall_cost.high")}
    assert shown == {"recall_cost.low": "3.6", "recall_cost.high": "6.3"}
    assert from_counts["t8.precision_gain.low"]["note"].endswith(": 3.05 to 6.20 points.")
    assert from_counts["t8.recall_cost.high"]["note"].endswith(": 3.60 to 6.34 points.")


def test_readouts_that_were_not_applied_are_derived_by_the_theorem(from_counts):
    for readout in ("dynamic_single", "string_parse"):
        row = from_counts[f"t4.llava-1.5-7b.adversarial.{readout}.f1"]
        assert (row["status"], row["reproduced"]) == ("derived", "0.8221")
        assert row["note"].startswith("Theorem 1")


def test_counts_know_no_order_and_no_image(from_counts):
    for key in ("f3.legacy_8tok.600", "f6.72", "setup.images"):
        assert from_counts[key]["status"] == "not_identifiable"


def test_surveyed_range_names_what_it_leaves_out(from_counts):
    row = from_counts["survey.ours_minus_baselines.low"]
    assert (row["status"], row["reproduced"]) == ("derived", "1.21")
    assert "over all 6 surveyed papers the range is 0.14 to 8.67" in row["note"]


def test_published_records_show_what_the_paper_does_not_say(from_published):
    """Counted from the files themselves; the expected values are those of a separate count (findings 1, 2, 3, 9)."""
    running = {key: from_published[f"repo.running_f1.{key}"] for key in ("1000", "low", "high")}
    assert (running["1000"]["status"], running["1000"]["reproduced"]) == ("differs", "0.8155")
    assert (running["low"]["status"], float(running["low"]["reproduced"]) <= 0.808) == ("differs", True)
    settled = {name: from_published[f"f3.{name}.600"] for name in ("legacy_8tok", "legacy_2tok")}
    assert [row["reproduced"] for row in settled.values()] == ["0.458", "0.765"]
    assert {row["status"] for row in settled.values()} == {"differs"}
    assert settled["legacy_8tok"]["note"].endswith("; 0.454 over the first 1,000.")
    assert settled["legacy_2tok"]["note"].endswith("; 0.766 over the first 1,000.")
    splits = from_published["setup.deterministic"]
    assert splits["status"] == "differs"
    assert "adversarial and popular: 68;" in splits["note"] and "popular and random" not in splits["note"]
    assert from_published["setup.images"]["note"] == (
        "9,000 rows are 5,170 distinct (picture, question) pairs, 8 to 12 per picture, 10.3 on average."
    )
    assert from_published["setup.questions.adversarial"]["note"].startswith("57 of them say imange")
    assert from_published["setup.positives.adversarial"]["note"].startswith("43 of them say imange")
    assert from_published["setup.questions.popular"]["note"] == ""


def test_one_yes_in_three_thousand_is_not_the_same_answer_everywhere(from_counts):
    row = from_counts["t4.qwen2-vl-7b-instruct.adversarial.same_way"]
    assert (row["status"], row["published"], row["reproduced"]) == ("inconsistent_in_paper", "0", "1")
    assert row["note"] == "The printed yes-rate of 0.0003 is that of 1 in 3,000 answers."


def test_a_mean_attention_of_that_size_is_a_sum_over_positions(from_counts):
    # 576 * 0.0738 = 42.5, where one row of attention sums to at most 1.
    assert "it would sum to 42.5" in from_counts["probe.attention.correct.mean"]["note"]
    assert "would sum" not in from_counts["probe.clip.tp.mean"]["note"]


def test_p_and_r_of_the_clip_l_row_give_another_f1(from_counts):
    note = from_counts["t8.clip_l14_336_certainty.f1"]["note"]
    assert "Its precision and recall alone fix TP 1,118 and FP 120, whose F1 is 0.8167, not 0.8159." in note


def test_published_records_give_the_core_and_the_order(from_published):
    assert from_published["setup.images"]["status"] == "reproduced"
    running = from_published["f3.legacy_8tok.600"]
    # 275 of the first 600 answers are yes: 0.4583, not 0.452.
    assert (running["status"], running["reproduced"]) == ("differs", "0.458")
    for outcome in ("f6.1", "f6.7", "f6.26", "f6.72", "f6.14", "f6.20", "f6.35", "f6.39"):
        assert from_published[outcome]["status"] == "reproduced", outcome
    statuses = Counter(
        row["status"] for key, row in from_published.items() if key[:3] in ("t1.", "t2.", "t7.")
    )
    assert statuses == {"reproduced": 16 + 26 + 24, "inconsistent_in_paper": 1}


@pytest.mark.parametrize(
    ("model", "reproduced", "open_readout"),
    [
        ("llava-1.6-mistral-7b", 36, "string_parse"),
        ("instructblip-vicuna-7b", 48, None),
        ("mplug-owl2-llama2-7b", 36, "string_parse"),
        ("qwen2-vl-7b-instruct", 36, "string_parse"),
    ],
)
def test_printed_scores_of_other_models(numbers, tmp_path, model, reproduced, open_readout):
    decisions_from_counts.run(numbers, model, tmp_path / "d.parquet")
    rows = claims_of(numbers, tmp_path, **measure(tmp_path, tmp_path / "d.parquet"))
    mine = {key: row for key, row in rows.items() if key.startswith(f"t4.{model}.") and "same_way" not in key}
    counted = Counter(row["status"] for row in mine.values())
    assert counted == {"reproduced": reproduced, **({"not_identifiable": 3} if open_readout else {})}
    if open_readout:
        assert (
            "confusion matrices give the printed f1" in mine[f"t4.{model}.random.{open_readout}.f1"]["note"]
        )


def test_undefined_precision_agrees_with_a_printed_zero_and_says_so(numbers, tmp_path):
    decisions_from_counts.run(numbers, "llava-1.6-mistral-7b", tmp_path / "d.parquet")
    rows = claims_of(numbers, tmp_path, **measure(tmp_path, tmp_path / "d.parquet"))
    row = rows["t4.llava-1.6-mistral-7b.random.legacy_8tok.precision"]
    assert (row["status"], row["reproduced"]) == ("reproduced", "undefined (0/0)")
    assert "the paper prints 0" in row["note"]


def test_empty_run_still_judges_the_paper_against_itself(numbers, tmp_path):
    rows = claims_of(numbers, tmp_path)
    statuses = Counter(row["status"] for row in rows.values())
    assert statuses["reproduced"] == statuses["differs"] == 0
    assert rows["t2.random.gap"]["status"] == "inconsistent_in_paper"
    assert rows["t2.random.gap"]["reproduced"] == ""


def test_kinds_of_the_numbers_file_are_all_known(numbers):
    assert {number.kind for number in read_numbers(numbers)} <= set(KINDS)


def test_stages_may_measure_single_claims(numbers, tmp_path):
    measured = tmp_path / "probe.json"
    entry = {"value": "1173", "source": "probe of a run"}
    measured.write_text(
        json.dumps(
            {
                "probe.confusion.tp": entry,
                "probe.clip.p": {"value": "2.0512e-7", "source": "s", "note": "recomputed"},
                "probe.differs.ids": {"value": "77, 2938", "source": "s"},
                "probe.ties": {"value": "9", "source": "s"},
            }
        )
    )
    rows = claims_of(numbers, tmp_path, measured=[measured])
    assert (rows["probe.confusion.tp"]["status"], rows["probe.confusion.tp"]["source"]) == (
        "reproduced",
        "probe of a run",
    )
    assert (rows["probe.clip.p"]["status"], rows["probe.clip.p"]["reproduced"]) == ("reproduced", "2.05e-7")
    assert rows["probe.differs.ids"]["status"] == "reproduced"
    assert (rows["probe.ties"]["status"], rows["probe.ties"]["reproduced"]) == ("differs", "9")
    measured.write_text(json.dumps({"probe.nothing": entry}))
    with pytest.raises(AuditError, match=r"'probe\.nothing' is no published number"):
        claims_of(numbers, tmp_path, measured=[measured])


def test_claims_are_the_same_bytes_again(numbers, tmp_path):
    claims_of(numbers, tmp_path)
    first = (tmp_path / "claims.csv").read_bytes()
    claims_of(numbers, tmp_path)
    assert (tmp_path / "claims.csv").read_bytes() == first


def test_changed_numbers_are_found_contradictory(numbers):
    """A wrong digit anywhere in a group must be noticed: the check can fail."""
    from dataclasses import replace

    original = read_numbers(numbers)
    before = contradictions(original)

    def with_printed(identity, printed):
        changed = [replace(n, printed=printed) if n.id == identity else n for n in original]
        return set(contradictions(changed)) - set(before)

    assert with_printed("t2.popular.gap", "0.0538") == {"t2.popular.gap"}
    assert with_printed("t2.popular.legacy_8tok.f1", "0.8497") == {"t2.popular.legacy_8tok"}
    assert with_printed("t7.random.no.no_to_yes", "449") == {"t7.random"}
    assert with_printed("t1.random.3869", "1235") == {"t1.random"}
    assert with_printed("t13.random.fp", "44") == {"t13.random"}
    assert with_printed("s3.4.phi.random", "0.810") == {"s3.4.phi.random"}
    assert with_printed("t12.huo.adversarial.gain", "1.61") == {"t12.huo.adversarial"}
    assert with_printed("t11.native_chat.dynamic_single.f1", "0.8622") == {"t11.native_chat.dynamic_single"}


def test_evidence_takes_the_papers_cell_only(numbers, tmp_path):
    from claim_runs import adversarial, write_run

    files = write_run(tmp_path, adversarial(1174, 182), dataset="coco-2023-11")
    evidence = Evidence(Files(**{**files, "transitions": (), "gap": ()}), read_numbers(numbers))
    rows = {claim.id: claim for claim in build_claims(evidence)}
    assert rows["t13.adversarial.tp"].status == "not_run"
    assert "no decisions of llava-1.5-7b on the paper's release" in rows["t13.adversarial.tp"].note
