"""Every format of answers gives the scores that were counted by hand."""

import pytest
from answer_files import (
    FORMATS,
    IMAGES,
    RELEASE,
    SPLITS,
    ask,
    authors_audits,
    llava,
    records,
    write_lines,
    write_release,
)

from readout_audit.score_file.cli import _score
from readout_audit.score_file.summary import as_lines

# By hand, string_parse: the dog is unparsed everywhere (a positive), the fork a false yes (adversarial), the second
# image's dog unparsed (adversarial and popular, a negative); the rest is right. 6 positives and 6 negatives a split.
COUNTS = {
    "adversarial": {"tp": 5, "fp": 1, "tn": 4, "fn": 0, "unparsed_pos": 1, "unparsed_neg": 1},
    "popular": {"tp": 5, "fp": 0, "tn": 5, "fn": 0, "unparsed_pos": 1, "unparsed_neg": 1},
    "random": {"tp": 5, "fp": 0, "tn": 6, "fn": 0, "unparsed_pos": 1, "unparsed_neg": 0},
}
# POPE's script: all that does not say no is a yes, so both unparsed answers are.
OFFICIAL = {
    "adversarial": {"tp": 6, "fp": 2, "tn": 4, "fn": 0},
    "popular": {"tp": 6, "fp": 1, "tn": 5, "fn": 0},
    "random": {"tp": 6, "fp": 0, "tn": 6, "fn": 0},
}


def run(files, questions, **options):
    given = {"repope": None, "splits": [], "partial": False, "ids_of": None, "known": None} | options
    return _score(files, [questions], **given)


def counts(audit, readout, labels="pope"):
    return {
        row.split: {name: value for name, value in row.counts.items() if name in COUNTS["random"]}
        for row in audit.scores
        if row.readout == readout and row.labels == labels and row.split in SPLITS
    }


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_paired_and_scored(name, tmp_path):
    questions = write_release(tmp_path / "toy")
    options = {"ids_of": "toy"} if name == "authors' audits" else {}
    audit = run(FORMATS[name](tmp_path), questions, **options)
    assert counts(audit, "string_parse") == COUNTS
    assert {
        s: {k: v for k, v in c.items() if k in OFFICIAL[s]} for s, c in counts(audit, "pope_official").items()
    } == OFFICIAL
    assert audit.questions.num_rows == 36 and audit.release == "toy"
    flags = {
        row.split: row.flags for row in audit.scores if row.readout == "pope_official" and row.split in SPLITS
    }
    assert [flags[s]["default_yes"] for s in SPLITS] == [2, 2, 1]


def test_records_are_read_with_their_logits(tmp_path):
    audit = run(records(tmp_path), write_release(tmp_path / "toy"))
    expected = {"tp": 5, "fp": 1, "tn": 5, "fn": 1, "unparsed_pos": 0, "unparsed_neg": 0}
    assert counts(audit, "dynamic_single")["adversarial"] == expected
    assert counts(audit, "first_token")["adversarial"] == expected
    assert "threshold" in audit.decisions
    assert "name no scan token sets" in audit.unavailable["vocab_scan"]


def test_an_audit_file_keeps_its_own_decisions_beside_its_texts(tmp_path):
    audit = run(authors_audits(tmp_path), write_release(tmp_path / "toy"), ids_of="toy")
    assert counts(audit, "legacy_2tok")["random"] == {
        "tp": 6,
        "fp": 6,
        "tn": 0,
        "fn": 0,
        "unparsed_pos": 0,
        "unparsed_neg": 0,
    }
    assert audit.answers[0].facts == {"model_path": "m", "quantize": "4bit"}


def test_a_key_file_gives_the_images_of_ids(tmp_path):
    questions = write_release(tmp_path / "toy")
    key = [
        {"question_id": f"q{n}", "image": row["image"], "text": row["text"] + "\nAnswer.", "category": split}
        for n, (split, row) in enumerate((s, r) for s in SPLITS for r in RELEASE[s])
    ]
    write_lines(questions / "test.jsonl", key)
    paths = llava(tmp_path)
    import json

    rows = [json.loads(line) for line in paths[0].read_text().splitlines()]
    for row in rows:
        row["question_id"] = f"q{row['question_id']}"
    write_lines(paths[0], rows[::-1])  # not in the release's order: only the key file can pair it
    audit = run(paths, questions)
    assert counts(audit, "string_parse") == COUNTS
    assert audit.pairings[0].how == "image, question and split of every row"


def test_sampled_answers_differ_between_splits_and_stay_apart(tmp_path):
    # The same question answered differently in two splits: paired in order, and "distinct" has then no answer.
    paths = llava(tmp_path, text=lambda split, row: "Yes" if split == "random" else "No")
    audit = run(paths, write_release(tmp_path / "toy"))
    parsed = counts(audit, "string_parse")
    assert parsed["random"]["tp"] == 6 and parsed["popular"]["tp"] == 0
    distinct = next(row for row in audit.scores if row.split == "distinct" and row.readout == "string_parse")
    assert distinct.rates["f1"] is None
    assert "distinct is undefined: the splits answer the same question differently." in as_lines(audit)


def test_repope_labels_join_by_image_and_object(tmp_path):
    # RePOPE drops the umbrella, turns the fork, spells another way and numbers otherwise.
    changed = {
        split: [
            row | {"question_id": row["question_id"] + 100, "text": row["text"].replace("image", "imange")}
            | ({"label": "yes"} if row["text"] == ask("fork") else {})
            for row in RELEASE[split]
            if row["text"] != ask("umbrella")
        ]
        for split in SPLITS
    }  # fmt: skip
    repope = write_release(tmp_path / "re", changed)
    audit = run(FORMATS["LLaVA"](tmp_path), write_release(tmp_path / "toy"), repope=repope)
    assert audit.labels == {"pope": 36, "repope": 33}
    relabelled = counts(audit, "string_parse", "repope")
    assert relabelled["adversarial"] == {
        "tp": 5,
        "fp": 0,
        "tn": 4,
        "fn": 0,
        "unparsed_pos": 1,
        "unparsed_neg": 1,
    }
    assert (
        counts(audit, "vcd", "pope")["adversarial"]["fp"] == 1
        and counts(audit, "vcd", "repope")["adversarial"]["fp"] == 0
    )


def test_a_part_of_a_split_is_scored_when_asked_for(tmp_path):
    rows = [
        {"image": row["image"], "question": row["text"], "answer": "Yes"}
        for row in RELEASE["random"]
        if row["image"] == IMAGES[1]
    ]
    path = write_lines(tmp_path / "part.jsonl", rows)
    audit = run([path], write_release(tmp_path / "toy"), partial=True)
    assert audit.questions.num_rows == 6 and counts(audit, "string_parse")["random"]["tp"] == 3


def test_aggregates_name_their_rule_and_their_n(tmp_path):
    audit = run(FORMATS["LLaVA"](tmp_path), write_release(tmp_path / "toy"))
    of = {row.split: row.counts["n"] for row in audit.scores if row.readout == "string_parse"}
    assert of == {"adversarial": 12, "popular": 12, "random": 12, "macro": None, "pooled": 36, "distinct": 22}
