"""Whether a run answers one question alike in every split."""

import numpy as np
import pytest

from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.self_agreement import AGREEMENT, DISAGREEMENTS, Side, compare
from readout_audit.stages import compare_splits
from scores.decision_files import row, write_decisions


def compared(tmp_path, decisions):
    """Run the stage; return counts by key, the list, and the verdicts."""
    compare_splits.run(decisions, tmp_path / "agreement.parquet", tmp_path / "disagreements.parquet")
    agreement = read_table(tmp_path / "agreement.parquet", AGREEMENT, "agreement")
    listed = read_table(tmp_path / "disagreements.parquet", DISAGREEMENTS, "disagreements").to_pylist()
    key = ("first", "second", "readout", "label", "wording")
    counts = {
        tuple(r[k] for k in key): (r["shared"], r["differing"], r["yes_to_no"], r["no_to_yes"])
        for r in agreement.to_pylist()
    }
    return counts, listed, table_metadata(agreement)["verdicts"]


def test_the_published_adversarial_sweep_is_not_the_run_of_the_other_two(published, tmp_path):
    counts, listed, verdicts = compared(tmp_path, published)
    eight = {key[:2] + key[3:]: value for key, value in counts.items() if key[2] == "legacy_8tok"}
    # T is 1,174 on adversarial and 1,191 on popular: of 45 positives 28 + 3 are lost and 12 + 2 gained.
    assert eight["adversarial", "popular", "yes", "same"] == (1457, 40, 12, 28)
    assert eight["adversarial", "popular", "yes", "different"] == (43, 5, 2, 3)
    assert eight["adversarial", "popular", "no", "same"][:2] == (2245 - 1457, 68 - 40)
    shared = [value[:2] for key, value in counts.items() if key[:2] == ("popular", "random")]
    assert sum(n for n, _ in shared) == 2 * 1563 and not any(differing for _, differing in shared)
    differing = {
        readout: {
            (r["image"], r["object"])
            for r in listed
            if (r["first"], r["second"], r["readout"], r["wording"])
            == ("adversarial", "popular", readout, "same")
        }
        for readout in ("legacy_8tok", "legacy_2tok")
    }
    assert len(differing["legacy_8tok"]) == 68
    assert len(differing["legacy_2tok"] - differing["legacy_8tok"]) == 72
    assert (
        "adversarial and popular, legacy_8tok: 68 of 2,245 questions of the same text are answered differently; "
        "one deterministic setup cannot have given both."
    ) in verdicts
    assert any(
        text.startswith("popular and random, legacy_2tok: 0 of 1,563") and "would give" in text
        for text in verdicts
    )


def question(split, number, item, text, answer, label="yes"):
    """Return a row that asks about `item` in these words."""
    return row(split, number, label, item=item, r=answer) | {"question": text}


def test_wordings_stand_apart(tmp_path):
    rows = [
        question("s", 1, "ant", "Is there an ant in the imange?", "yes"),
        question("s", 2, "egg", "Is there an egg in the imange?", "yes"),
        question("s", 3, "cat", "Is there a cat in the image?", "yes"),
        question("s", 4, "cow", "Is there a cow in the image?", "unparsed", label="no"),
        question("t", 1, "ant", "Is there an ant in the image?", "no"),
        question("t", 2, "egg", "Is there an egg in the imange?", "no"),
        question("t", 3, "cat", "Is there a cat in the image?", "yes"),
        question("t", 4, "cow", "Is there a cow in the image?", "no", label="no"),
        question("t", 5, "dog", "Is there a dog in the image?", "no"),
    ]
    counts, listed, verdicts = compared(tmp_path, write_decisions(tmp_path / "d.parquet", rows))
    assert counts["s", "t", "r", "yes", "different"] == (1, 1, 1, 0)
    assert counts["s", "t", "r", "yes", "same_misspelt"] == (1, 1, 1, 0)
    assert counts["s", "t", "r", "yes", "same"] == (1, 0, 0, 0)
    assert counts["s", "t", "r", "no", "same"] == (1, 1, 0, 0)  # unparsed is another answer, of neither kind
    assert [r["object"] for r in listed] == ["ant", "egg", "cow"]
    assert listed[2]["answer_first"] == "unparsed" and listed[0]["question_second"].endswith("image?")
    assert verdicts == [
        "s and t, r: 2 of 3 questions of the same text are answered differently; "
        "one deterministic setup cannot have given both."
    ]


def test_nothing_in_common_and_one_split(tmp_path):
    rows = [row("s", 1, "yes", item="cat", r="yes"), row("t", 1, "yes", item="dog", r="no")]
    _, listed, verdicts = compared(tmp_path, write_decisions(tmp_path / "d.parquet", rows))
    assert listed == [] and "nothing to compare" in verdicts[0]
    counts, _, verdicts = compared(tmp_path, write_decisions(tmp_path / "d.parquet", rows[:1]))
    assert counts == {} and verdicts == []


def test_an_object_asked_twice_in_one_split_is_left_out(tmp_path):
    rows = [row("s", n, "yes", item="cat", r=answer) for n, answer in enumerate(["yes", "no"])]
    rows.append(row("t", 1, "yes", item="cat", r="yes"))
    counts, _, _ = compared(tmp_path, write_decisions(tmp_path / "d.parquet", rows))
    assert counts["s", "t", "r", "yes", "same"] == (0, 0, 0, 0)


def test_a_question_about_no_known_object_is_matched_by_its_text(tmp_path):
    red, blue = "Do you see anything red?", "Do you see anything blue?"
    rows = [
        question("s", 1, "", red, "yes") | {"object": None},
        question("s", 2, "", blue, "yes") | {"object": None},
        question("t", 1, "", red, "no") | {"object": None},
        question("t", 2, "cat", "Is there a cat in the image?", "yes"),
    ]
    counts, listed, _ = compared(tmp_path, write_decisions(tmp_path / "d.parquet", rows))
    assert counts["s", "t", "r", "yes", "same"] == (1, 1, 1, 0)
    assert [(r["object"], r["question_first"]) for r in listed] == [(None, red)]


def test_printed_counts_cannot_be_compared(table_7, tmp_path):
    with pytest.raises(AuditError, match="image is not known for every row"):
        compared(tmp_path, table_7)


def test_one_split_of_two_releases(tmp_path):
    # The same model asked under two spellings of one question; the second file has another readout as well.
    old = [
        question("s", 1, "ant", "Is there an ant in the imange?", "no"),
        row("s", 2, "no", item="cat", r="no"),
    ]
    new = [
        question("s", 7, "ant", "Is there an ant in the image?", "yes"),
        row("s", 9, "no", item="cat", r="no"),
    ]
    files = [
        write_decisions(tmp_path / "old.parquet", old),
        write_decisions(tmp_path / "new.parquet", [one | {"other": "yes"} for one in new]),
    ]
    sides = [Side(path.stem, read_decisions(path), np.arange(2)) for path in files]
    counts, listed = compare(*sides)
    found = {
        (r["readout"], r["label"], r["wording"]): r["no_to_yes"] for r in counts.to_pylist() if r["shared"]
    }
    assert found == {("r", "yes", "different"): 1, ("r", "no", "same"): 0}
    (one,) = listed.to_pylist()
    assert (one["first"], one["question_id_first"], one["question_id_second"]) == ("old", "1", "7")
