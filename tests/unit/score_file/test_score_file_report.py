"""The outputs: numbers, undefined scores, escaping, and the promises about speed and torch."""

import csv
import json
import re
import subprocess
import sys
import time
from fractions import Fraction
from html.parser import HTMLParser

import pyarrow as pa
import pytest
from answer_files import FORMATS, RELEASE, SPLITS, llava, records, write_lines, write_release

from readout_audit.contracts import RECORDS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, write_table
from readout_audit.score_file.cli import _score
from readout_audit.score_file.report import as_html, as_json, write_outputs
from readout_audit.score_file.summary import as_lines, headline


def run(files, questions, **options):
    given = {"repope": None, "splits": [], "partial": False, "ids_of": None, "known": None} | options
    return _score(files, questions if isinstance(questions, list) else [questions], **given)


@pytest.fixture
def audit(tmp_path):
    return run(FORMATS["POPE"](tmp_path), write_release(tmp_path / "toy"))


def test_csv_and_json_hold_the_same_numbers(audit, tmp_path):
    paths = write_outputs(audit, tmp_path / "out")
    rows = list(csv.DictReader(paths["table"].open()))
    written = json.loads(paths["JSON"].read_text())
    assert len(rows) == len(written["scores"]) == 7 * 6  # seven rules; three splits and three aggregates
    official = next(r for r in rows if (r["readout"], r["split"]) == ("pope_official", "adversarial"))
    # tp 6, fp 2, fn 0: F1 12/14, precision 6/8, yes-rate 8/12; the script prints the same.
    assert (official["f1"], official["precision"], official["yes_rate"]) == (
        "0.857143",
        "0.750000",
        "0.666667",
    )
    assert (official["own_f1"], official["own_yes_ratio"], official["default_yes"]) == (
        "0.857143",
        "0.666667",
        "2",
    )
    exact = next(r for r in rows if (r["readout"], r["split"]) == ("lmms_eval", "random"))
    # "Yes." never matches: no positive is found; its own figures say 0 and take the yes-ratio from the labels.
    assert (exact["f1"], exact["precision"]) == ("0.000000", "")
    assert (exact["own_f1"], exact["own_precision"], exact["own_yes_ratio"]) == (
        "0.000000",
        "0.000000",
        "0.500000",
    )
    for row, said in zip(rows, written["scores"], strict=True):
        assert float(row["f1"] or "nan") == pytest.approx(
            said["f1"] if said["f1"] is not None else float("nan"), abs=5e-7, nan_ok=True
        )


def test_quirks_of_no_single_row_stand_beside_the_figures_of_their_script(audit):
    page = as_html(audit)
    assert ">unmatched_dropped, yes_ratio_from_labels<" in page
    assert ">default_yes: 2, pairing<" in page and ">unknown_two_ways<" in page


def test_json_names_release_pairing_prompts_and_rules(tmp_path):
    found = as_json(run(llava(tmp_path), write_release(tmp_path / "toy")))
    assert found["release"] == "toy" and found["labels"] == {"pope": 36}
    assert found["answers"][0]["prompt"] == {
        "before": "",
        "after": "\nAnswer the question using a single word or phrase.",
    }
    assert found["answers"][0]["facts"] == {"model_id": "m"}
    assert [q["split"] for q in found["questions"]] == list(SPLITS)
    assert found["aggregates_are_over"]["pope"]["macro"] == "the mean of 3 splits"
    assert found["aggregates_are_over"]["pope"]["pooled"] == "all 36 rows at once"
    assert found["readouts"]["vcd"]["reads_labels"] and "039af55" in found["readouts"]["vcd"]["source"]
    assert found["disagreements"]["string_parse|pope_official"] == {
        "adversarial": 2,
        "popular": 2,
        "random": 1,
    }


def test_nothing_parsed_is_undefined_not_zero(tmp_path):
    sentence = "The picture shows many things " * 5
    audit = run(llava(tmp_path, text=lambda split, row: sentence), write_release(tmp_path / "toy"))
    found = {(r["readout"], r["split"]): r for r in as_json(audit)["scores"]}
    assert (
        found["string_parse", "random"]["f1"] is None and found["string_parse", "random"]["unparsed_pos"] == 6
    )
    assert found["string_parse", "random"]["yes_rate"] == 0
    assert found["lmms_eval", "random"]["own_figures"] == {
        "accuracy": 0.0, "precision": 0.0, "recall": 0.0, "f1": 0.0, "yes_ratio": 0.5
    }  # fmt: skip
    assert "undefined" in "\n".join(as_lines(audit))


def test_the_headline_when_all_rules_agree(tmp_path):
    audit = run(llava(tmp_path, text=lambda split, row: row["label"]), write_release(tmp_path / "toy"))
    assert headline(audit) == "On the mean over 3 splits, every readout gives these answers an F1 of 1.0000."
    assert "default_yes" not in "\n".join(as_lines(audit))  # a quirk that decided nothing is not explained


def test_the_headline_leaves_out_rules_that_read_the_prompt_and_names_those_that_miss_the_answers(tmp_path):
    """The prompt says yes first; the scan's sets hold no token that is written, and their no is always larger."""
    meta = {
        "model": "toy",
        "candidate_ids": [1, 2, 3, 4],
        "token_sets": {"single": {"yes": [1], "no": [2]}, "scan": {"yes": [3], "no": [4]}},
    }
    [path] = records(tmp_path, meta)
    table = read_table(path, RECORDS, "the records")
    changed = {
        "full_text": pa.array([f"Answer yes or no. {text}" for text in table["new_text"].to_pylist()]),
        "candidate_logits": pa.array(
            [[*pair, 0.0, 1.0] for pair in table["candidate_logits"].to_pylist()], pa.list_(pa.float32())
        ),
    }
    columns = {name: changed.get(name, table[name]) for name in RECORDS.names}
    write_table(path, pa.table(columns, schema=RECORDS), RECORDS, meta)
    audit = run([path], write_release(tmp_path / "toy"))
    said = headline(audit)
    # Always no: no positive is found, F1 0. Always yes: 6 of 6 positives, 6 of 6 negatives, F1 12/18.
    assert "an F1 of 0.0000 as read by the rule of vocab_scan" in said
    n = table.num_rows
    assert f"vocab_scan does not look at any of the {n} first tokens yes and no that the model wrote" in said
    assert "string_parse_full (0.6667) and string_parse_full_nowindow (0.6667)" in said
    assert said.count("does not look at") == 1


def test_the_page_says_what_each_rule_and_quirk_is(audit):
    page = as_html(audit)
    for name in audit.decisions:
        assert f"<strong>{name}</strong>: " in page
    assert page.index("What each rule does") < page.index("Share of yes among the answers")
    for quirk, script in (("pairing", "pope_official"), ("unknown_two_ways", "vlmevalkit")):
        assert f"<em>{quirk}</em> of {script}: " in page
    assert "`" not in page


def columns(lines, name):
    """Return the cells of a rule's line in the terminal table."""
    return next(line.split() for line in lines if line.split()[:1] == [name])


def test_the_terminal_shows_each_scripts_own_figure_and_the_default_yes(audit):
    lines = as_lines(audit)
    # Adversarial: tp 6, fp 2, fn 0 under the official rule, and the script prints the same 12/14.
    official = columns(lines, "pope_official")
    assert official[1] == "0.8571" and official[4] == official[7] and official[-1] == "default_yes"
    assert columns(lines, "string_parse")[7] == "–"
    [head] = [line for line in lines if line.startswith("F1 against the labels of toy, ")]
    assert "36 rows (macro: the mean of 3 splits; pooled: all 36 rows at once; distinct: each of" in head
    assert any("script's own: F1 as the script computes it, the mean of the splits" in line for line in lines)
    assert (
        "default_yes, a quirk of pope_official: called yes although the answer has no word yes"
        in "\n".join(lines)
    )


def test_a_script_that_leaves_rows_out_has_another_figure_than_ours(tmp_path):
    """One positive is answered "yes", five at length: lmms-eval finds no positive that was missed, we find five."""
    words = iter(["yes", *["There is one, yes."] * 5])
    rows = [
        {
            "image": row["image"],
            "question": row["text"],
            "answer": next(words) if row["label"] == "yes" else "no",
        }
        for row in RELEASE["random"]
    ]
    path = write_lines(tmp_path / "mine.jsonl", rows)
    audit = run([path], write_release(tmp_path / "toy"), splits=["random"])
    lines = as_lines(audit)
    # tp 1, fp 0, five unparsed positives: ours 2/(2+5), the script's precision and recall are both 1.
    assert columns(lines, "lmms_eval")[1:4] == ["0.2857", "1.0000", "5"]
    # 0.2857 is ours under the rule of lmms-eval, not what lmms-eval prints; the sentence says both.
    assert lines[-1] == (
        "On random, with unparsed answers counted as wrong, the same answers have an F1 of 0.2857 as read by the rule of "
        "lmms_eval and of 1.0000 by that of string_parse: the rule that reads them is the only difference. The script of "
        "lmms_eval itself would print 1.0000."
    )
    page = as_html(audit)
    assert "<td>0.2857</td><td>1.0000</td>" in page
    assert "not reported" in page  # VLMEvalKit prints no yes-ratio
    assert not any("mean" in line for line in lines)


def test_undefined_under_some_rules_is_counted_and_explained(tmp_path):
    sentence = "The picture shows many things."
    audit = run(llava(tmp_path, text=lambda split, row: sentence), write_release(tmp_path / "toy"))
    text = "\n".join(as_lines(audit))
    assert "Under 5 of 7 rules it is undefined, since they find neither word: string_parse, " in text
    assert "script's own is undefined for repope and vcd: the script ends in a division by zero" in text
    assert columns(as_lines(audit), "pope_official")[-2:] == ["36", "default_yes"]


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.open = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attrs)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_texts_from_files_are_escaped_and_the_page_needs_nothing(tmp_path):
    evil = "<script>alert('x')</script> & <img src=x onerror=y> yes"
    folder = tmp_path / "<b>toy"
    answers = llava(tmp_path, text=lambda split, row: evil, model_id=lambda split, row: "<i>model</i>")
    page = as_html(run(answers, write_release(folder)))
    tags = Tags()
    tags.feed(page)
    assert not tags.open and not tags.tags & {"script", "img", "i", "b", "link", "iframe"}
    assert "&lt;script&gt;" in page and "&lt;i&gt;model" in page and "&lt;b&gt;toy" in page
    assert "http" not in page.replace("http-equiv", "")


def test_captions_stand_outside_the_boxes_that_scroll(audit):
    """Inside, a caption is as wide as its table, and a phone cuts it off; outside, it wraps."""
    page = as_html(audit)
    boxes = re.findall(r'<div class="wide".*?</div>', page, re.DOTALL)
    assert len(boxes) == page.count("<table") == page.count("</figcaption><div") > 4
    assert not any("caption" in box for box in boxes)
    assert "The file does not say how the answers were made." in page and "<td>toy</td>" in page


def test_no_torch_is_imported():
    code = "import sys, readout_audit.score_file.cli; sys.exit(bool({'torch', 'transformers', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture(scope="module")
def pope(shared):
    return shared / "mirror" / "pope"


def real(pope, release, split):
    rows = (pope / release / f"coco_pope_{split}.json").read_text().splitlines()
    return [json.loads(row) for row in rows if row.strip()]


def test_nine_thousand_answers_take_under_two_seconds(pope, shared, tmp_path):
    rows = [row for split in SPLITS for row in real(pope, "coco-2023-11", split)]
    answers = [
        {
            "question_id": n,
            "prompt": row["text"] + "\nAnswer.",
            "text": ("Yes" if n % 3 else "No") + f", {n % 997}",
        }
        for n, row in enumerate(rows)
    ]
    path = write_lines(tmp_path / "a.jsonl", answers)
    start = time.process_time()
    audit = run([path], pope / "coco-2023-11", repope=shared / "mirror" / "repope")
    write_outputs(audit, tmp_path / "out")
    assert time.process_time() - start < 2
    assert audit.labels == {"pope": 9000, "repope": 8185} and audit.release == "coco-2023-11"
    assert "distinct: each of 5127 different questions once" in "\n".join(as_lines(audit))


def test_may_2023_answers_are_never_scored_against_the_current_release(pope, tmp_path):
    # 2,910 answers, all right; joined by id alone they would score 0.513.
    old = real(pope, "coco-2023-05", "random")
    rows = [
        {"question_id": r["question_id"], "prompt": r["text"], "text": r["label"].capitalize()} for r in old
    ]
    path = write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(AuditError, match=r"2910 rows\); they differ in the spelling imange/image alone"):
        run([path], pope / "coco-2023-11")
    audit = run([path], [pope / "coco-2023-05", pope / "coco-2023-11"])  # both given: the right one is found
    assert audit.release == "coco-2023-05"
    assert all(row.rates["accuracy"] == 1 for row in audit.scores if row.readout == "pope_official")


def test_repope_joins_an_old_release_by_object_not_by_id(shared, pope, tmp_path):
    # By id 1,361 of 2,693 would be right. Of the 2,910 questions 2,687 have a label in RePOPE; 2,543 are the same.
    rows = [
        {"question_id": r["question_id"], "prompt": r["text"], "text": r["label"]}
        for r in real(pope, "coco-2023-05", "random")
    ]
    path = write_lines(tmp_path / "a.jsonl", rows)
    audit = run([path], pope / "coco-2023-05", repope=shared / "mirror" / "repope")
    [found] = [row for row in audit.scores if (row.labels, row.readout) == ("repope", "string_parse")]
    assert (found.counts["n"], found.rates["accuracy"]) == (2687, Fraction(2543, 2687))


def test_labels_of_coco_say_nothing_about_a_okvqas_questions(shared, pope, tmp_path):
    """Both are about COCO's pictures and 30 questions are alike, one with opposite labels."""
    file = pope / "aokvqa-seem" / "aokvqa_pope_seem_random.json"
    rows = json.loads(file.read_text()) if file.read_text().lstrip().startswith("[") else [
        json.loads(line) for line in file.read_text().splitlines() if line.strip()
    ]  # fmt: skip
    answers = [{"image": r["image"], "question": r["text"], "answer": r["label"]} for r in rows]
    path = write_lines(tmp_path / "a.jsonl", answers)
    assert run([path], pope / "aokvqa-seem").release == "aokvqa-seem"
    with pytest.raises(
        AuditError, match="questions about coco, and the answers are to questions about aokvqa"
    ):
        run([path], pope / "aokvqa-seem", repope=shared / "mirror" / "repope")


def test_published_decisions_and_repope(shared, pope):
    experiments = shared / "mirror" / "published" / "experiments"
    files = [experiments / f"pope_{split}_2tok_vs_8tok.json" for split in SPLITS]
    audit = run(files, pope / "coco-2023-10", repope=shared / "mirror" / "repope", ids_of="coco-2023-10")
    f1 = {(r.labels, r.split, r.readout): r.rates["f1"] for r in audit.scores}
    assert f1["pope", "adversarial", "legacy_8tok"] == Fraction(2348, 2856)
    assert f1["pope", "adversarial", "legacy_2tok"] == Fraction(2876, 3780)
    rounded = [round(float(f1["repope", s, r]), 4) for r in ("legacy_8tok", "legacy_2tok") for s in SPLITS]
    assert rounded == [0.8570, 0.8775, 0.9029, 0.7311, 0.7599, 0.7900]


def test_the_authors_samples_are_read(shared, pope):
    folder = shared / "mirror" / "published"
    baseline = folder / "head_pope_full_adversarial_baseline_predictions.json"
    audit = run([baseline], pope / "coco-2023-10", partial=True, splits=["adversarial"])
    assert audit.questions.num_rows == 15 and audit.release == "coco-2023-10"
    diagnostic = folder / "head_ugaa_full_adversarial_3000q_diagnostic.json"
    audit = run(
        [diagnostic], pope / "coco-2023-10", partial=True, splits=["adversarial"], ids_of="coco-2023-10"
    )
    assert list(audit.decisions) == ["legacy_8tok"]


def test_releases_that_were_rewritten_are_still_recognised(pope, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    for split in SPLITS:
        (folder / f"q_{split}.json").write_text(json.dumps(real(pope, "coco-2023-10", split), indent=1))
    rows = [{"question": r["text"], "answer": "Yes"} for r in real(pope, "coco-2023-10", "adversarial")]
    assert run([write_lines(tmp_path / "a.jsonl", rows)], folder).release == "coco-2023-10"
