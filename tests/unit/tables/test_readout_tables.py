"""Tables 1, 4 and 5: first tokens, readouts, ids; above all what stands where there is no number."""

import dataclasses
import json
from pathlib import Path

import pytest

from readout_audit.errors import AuditError
from readout_audit.tables import registry
from readout_audit.tables.arguments import options_from_json, parse
from readout_audit.tables.first_tokens import first_tokens
from readout_audit.tables.inputs import CellKey, Options

from .paper_run import (
    EIGHT,
    LLAVA,
    OPTIONS,
    READOUTS_READ,
    SPLITS,
    TRANSITIONS,
    TWO,
    decision_rows,
    paper_scores,
    run_of,
    score_row,
    write_decisions,
    write_scores,
)
from .test_core_tables import cells

PUBLISHED = LLAVA._replace(source="published")
ASKED = CellKey("demo-pope", "tiny", "fp32", "authors", "inference")
SMALL = {"random": {"yes": (2, 0, 1, 0), "no": (1, 0, 2, 0)}}


@pytest.fixture
def claims(root: Path) -> Path:
    return root / "resources" / "paper" / "numbers.csv"


@pytest.fixture
def published(tmp_path):
    rows = decision_rows(PUBLISHED, TRANSITIONS, tokens=(3869, 1939), order_known=True)
    return write_decisions(tmp_path, rows, PUBLISHED)


def small_run(tmp_path, tokens=(3869, 1939), cell=ASKED, readouts=READOUTS_READ):
    rows = decision_rows(cell, SMALL, tokens=tokens, order_known=True)
    return rows, lambda: run_of(OPTIONS, decisions=(write_decisions(tmp_path, rows, cell, readouts),))


def test_table_1_counts_published_rows(published):
    found = cells(registry.get("table_01_first_tokens")(run_of(decisions=(published,))), by=["token id"])
    assert {token[0]: [row[split] for split in (*SPLITS, "total")] for token, row in found.items()} == {
        "3582": ["0"] * 4,
        "3869": ["1356", "1303", "1234", "3893"],
        "4874": ["0"] * 4,
        "8241": ["0"] * 4,
        "694": ["0"] * 4,
        "1217": ["0"] * 4,
        "1939": ["1644", "1697", "1766", "5107"],
        "3782": ["0"] * 4,
        "all": ["3000", "3000", "3000", "9000"],
    }
    assert found[("3869",)]["piece"] == "▁Yes"
    read = {token[0]: (row[f"read by {EIGHT}"], row[f"read by {TWO}"]) for token, row in found.items()}
    assert read["3869"] == ("as yes", "never")
    assert read["1217"] == ("as no", "as no")


def test_table_1_of_printed_counts_is_the_papers_own(tmp_path, claims):
    rows = decision_rows(LLAVA, TRANSITIONS, tokens=None, order_known=False)
    run = run_of(decisions=(write_decisions(tmp_path, rows),), claims=claims)
    table = registry.get("table_01_first_tokens")(run)
    found = cells(table, by=["token id"])
    assert found[("3869",)]["total"] == "3893"
    assert found[("8241",)]["total"] == "0"
    assert any("own Table 1" in note and "add up" in note for note in table.notes)


def test_table_1_without_the_printed_counts_says_so(tmp_path):
    rows = decision_rows(LLAVA, SMALL, tokens=None, order_known=False)
    run = run_of(decisions=(write_decisions(tmp_path, rows),))
    found = cells(registry.get("table_01_first_tokens")(run), by=["token id"])
    assert list(found) == [("any",), ("all",)]  # one row says it, not one for every id
    assert found[("any",)]["random"] == found[("any",)]["total"] == "not_available"
    assert found[("all",)]["random"] == "6"


def test_table_1_lists_foreign_tokens_and_missing_ones(tmp_path):
    rows, run = small_run(tmp_path)
    rows[0]["first_token_id"] = rows[1]["first_token_id"] = 77
    rows[2]["first_token_id"] = 12
    rows[3] |= {"first_token_id": None, TWO: "invalid", EIGHT: "invalid"}
    table = registry.get("table_01_first_tokens")(run())
    order = [row[0] for row in (row[5:] for row in table.texts())]
    assert order[8:] == ["77", "12", "none", "all"]  # the most frequent foreign token first
    found = cells(table, by=["token id"])
    assert found[("77",)]["piece"] == "not recorded"
    assert found[("none",)]["random"] == "1"
    assert sum(int(row["random"]) for key, row in found.items() if key != ("all",)) == 6


def test_first_tokens_ask_for_known_words_on_every_row(tmp_path):
    rows, run = small_run(tmp_path)
    assert first_tokens(run())[0].all_emitted_are_read_words("random")
    rows[0]["first_token_id"] = 77
    assert not first_tokens(run())[0].all_emitted_are_read_words("random")
    rows[0]["first_token_id"] = None
    assert not first_tokens(run())[0].all_emitted_are_read_words("random")


def test_copied_ids_of_other_pieces_are_not_words(tmp_path):
    pieces = READOUTS_READ[EIGHT] | {"pieces": {"3869": "▁estab", "1939": "▁No"}}
    _, run = small_run(tmp_path, readouts=READOUTS_READ | {EIGHT: pieces})
    assert not first_tokens(run())[0].all_emitted_are_read_words("random")


def test_table_4_derives_what_theorem_1_gives(tmp_path, published):
    scores = write_scores(tmp_path, paper_scores(PUBLISHED))
    table = registry.get("table_04_readouts")(run_of(scores=scores, decisions=(published,)))
    found = cells(table, by=["split"])
    assert [found[split,][EIGHT] for split in SPLITS] == ["0.8221", "0.8498", "0.8713"]
    for readout in ("dynamic_single", "string_parse"):
        assert [found[split,][readout] for split in SPLITS] == [
            "0.8221 (derived)",
            "0.8498 (derived)",
            "0.8713 (derived)",
        ]
    assert any("0.6667" in note for note in table.notes)
    assert any(note.startswith("derived:") for note in table.all_notes())


def test_table_4_of_printed_counts_shows_an_f1_that_fixes_no_matrix_as_printed(tmp_path, claims):
    """LLaVA-1.6's string parse: F1 0.8521 is printed, and 138 matrices give it."""
    mistral = LLAVA._replace(model="llava-1.6-mistral-7b")
    rows = decision_rows(mistral, SMALL, tokens=None, order_known=False)
    decisions = write_decisions(tmp_path, rows, mistral, READOUTS_READ)
    scores = write_scores(
        tmp_path, [score_row(mistral, "pope", "adversarial", TWO, tp=1500, fp=1500, tn=0, fn=0)]
    )
    options = dataclasses.replace(OPTIONS, models=("llava-1.6-mistral-7b",))
    sources = {"scores": scores, "decisions": (decisions,)}
    table = registry.get("table_04_readouts")(run_of(options, claims=claims, **sources))
    row = cells(table, by=["split"])["adversarial",]
    assert (row["legacy_2tok"], row["string_parse"]) == ("0.6667", "0.8521 (printed)")
    assert any(note.startswith("printed: as the paper prints it") for note in table.all_notes())
    without = registry.get("table_04_readouts")(run_of(options, **sources))
    assert "0.8521" not in str(without.texts())


def test_table_4_has_words_for_what_is_not_there(tmp_path):
    rows = decision_rows(ASKED, SMALL, tokens=(3869, 1939), order_known=True)
    read = READOUTS_READ | {"dynamic_single": {"available": False, "why_not": "no ids"}}
    decisions = write_decisions(tmp_path, rows, ASKED, read)
    scores = write_scores(
        tmp_path,
        [
            score_row(ASKED, "pope", "random", TWO, tp=3, fp=3, tn=0, fn=0),
            score_row(ASKED, "pope", "random", EIGHT, tp=2, fp=1, tn=2, fn=1),
        ],
    )
    options = dataclasses.replace(OPTIONS, models=("tiny", "llava-1.5-7b"))
    table = registry.get("table_04_readouts")(run_of(options, scores=scores, decisions=(decisions,)))
    found = cells(table, by=["model", "split"])
    row = found["tiny", "random"]
    # Never derived from answers of our own: a readout that was not asked for can still be run.
    assert (row["dynamic_single"], row["string_parse"]) == ("not_available", "not_run")
    assert len(found) == 1 + len(SPLITS)
    for split in SPLITS:
        absent = found["llava-1.5-7b", split]
        assert {absent[readout] for readout in (*OPTIONS.readouts, "n")} == {"not_run"}


def test_table_5_looks_ids_up_or_prints_the_papers(tmp_path, published):
    token_map = {
        "model": "tiny",
        "vocabulary": {
            "yes": {"yes": 5, "Yes": None, " yes": 7, " Yes": 3869},
            "no": {"no": 11, "No": 12, " no": 13, " No": 1939},
        },
        "pieces": {
            "5": "yes",
            "7": "Ġyes",
            "3869": "ĠYes",
            "11": "no",
            "12": "No",
            "13": "Ġno",
            "1939": "ĠNo",
        },
    }
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(token_map), encoding="utf-8")
    rows = decision_rows(ASKED, SMALL, tokens=(3869, 1939), order_known=True)
    own = write_decisions(tmp_path, rows, ASKED, name="tiny.parquet")
    table = registry.get("table_05_token_ids")(run_of(decisions=(own, published), tokens=(path,)))
    found = cells(table, by=["model", "form"])
    assert {row["source"] for key, row in found.items() if key[0] == "tiny"} == {"vocabulary"}
    assert found["tiny", '"Yes"']["id"] == found["tiny", '"Yes"']["piece"] == "not in the vocabulary"
    assert found["tiny", '" Yes"']["answers that begin with it"] == "3"
    assert found["llava-1.5-7b", '" Yes"'] == {
        "model": "llava-1.5-7b",
        "source": "paper",
        "answer": "yes",
        "form": '" Yes"',
        "piece": "▁Yes",
        "id": "3869",
        "answers that begin with it": "3893",
    }
    assert table.n == "9,006 answers with a known first token, over all splits and settings"
    assert not any("counted together" in note for note in table.notes)
    again = ASKED._replace(template="paper")
    more = write_decisions(tmp_path, rows[:2], again, name="again.parquet")
    pooled = registry.get("table_05_token_ids")(run_of(decisions=(own, more, published), tokens=(path,)))
    said = [note for note in pooled.notes if "counted together" in note]
    where = f"{ASKED.dataset} {ASKED.precision}"
    assert said == [
        f"tiny: the answers of its 2 settings are counted together ({where} {ASKED.template}, 6; {where} paper, 2)."
    ]


def test_two_decision_files_of_one_cell_are_refused(tmp_path, published):
    with pytest.raises(AuditError, match="second decision file of coco-2023-10/llava"):
        _ = run_of(decisions=(published, published)).decisions


def test_a_file_that_is_no_decision_file_is_refused(tmp_path):
    path = tmp_path / "decisions.parquet"
    path.write_text("hello", encoding="utf-8")
    with pytest.raises(AuditError, match="cannot be read"):
        _ = run_of(decisions=(path,)).decisions


def test_arguments_round_trip():
    options = '{"splits":["random"],"models":["m"],"readout_from":"a","readout_to":"b"}'
    argv = ["--name", "t", "--options", options, "--scores", "s", "--decisions", "d", "e", "--md", "o.md"]
    name, sources, read, outputs = parse(argv, ("csv", "md"), "table")
    assert name == "t"
    assert (sources.scores, sources.decisions, sources.gap) == (Path("s"), (Path("d"), Path("e")), ())
    assert read == Options(splits=("random",), models=("m",), readout_from="a", readout_to="b")
    assert outputs == {"md": Path("o.md")}


@pytest.mark.parametrize("text", ["[", "[]", '{"splits": ["a"], "colour": 1}', "{}"])
def test_bad_options_are_one_sentence(text):
    with pytest.raises(AuditError, match="--options must be"):
        options_from_json(text)
