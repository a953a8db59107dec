"""Tables 3, 10, 11 and 12: the survey as printed, encodings, and the first 500 questions by template."""

import dataclasses
import json
from pathlib import Path

import pytest

from readout_audit.claims.numbers import COLUMNS
from readout_audit.errors import AuditError
from readout_audit.tables import registry
from readout_audit.tables.survey import read_survey
from readout_audit.tables.vocabulary import FORMS, in_order

from .paper_run import EIGHT, LLAVA, OPTIONS, TWO, paper_scores, run_of, score_row, write_scores
from .test_core_tables import cells


@pytest.fixture
def claims(root: Path) -> Path:
    return root / "resources" / "paper" / "numbers.csv"


def test_table_3_sets_this_runs_gap_beside_printed_gains(tmp_path, claims):
    run = run_of(scores=write_scores(tmp_path, paper_scores()), claims=claims)
    table = registry.get("table_03_survey")(run)
    found = cells(table, by=["paper"])
    assert {row["split"] for row in found.values()} == {"adversarial"}
    assert len(found) == 6 + 1
    assert [found[paper,]["gain"] for paper in ("Tang et al. 2025", "Seo et al. 2025")] == ["10.81", "0.70"]
    ours = found["this run: llava-1.5-7b, nf4, authors",]
    # 2876/3780 and 2348/2856, times 100; the gain is their exact difference.
    assert (ours["baseline"], ours["result"], ours["gain"]) == ("76.08", "82.21", "6.13")
    assert ours["readout"] == f"{TWO} → {EIGHT}"


def test_table_12_counts_papers_that_state_their_readout(tmp_path, claims):
    table = registry.get("table_12_survey_readouts")(
        run_of(scores=write_scores(tmp_path, paper_scores()), claims=claims)
    )
    assert table.n == "8 surveyed rows of 6 papers, 0 of which state their readout"
    assert [row[6] for row in table.texts()[-3:]] == ["6.13", "5.37", "3.15"]


def numbers_file(tmp_path, *rows):
    """A file of published numbers with only what the survey reads."""
    path = tmp_path / "numbers.csv"
    lines = [",".join(COLUMNS)]
    for number, (claim, printed, kind, quantity) in enumerate(rows):
        values = dict.fromkeys(COLUMNS, "") | {"id": f"n{number}", "claim": f'"{claim}"', "printed": printed}
        values |= {"decimals": "2", "origin": "paper", "split": "random", "kind": kind, "quantity": quantity}
        lines.append(",".join(values[column] for column in COLUMNS))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_survey_row_needs_its_paper_and_all_three_numbers(tmp_path):
    with pytest.raises(AuditError, match="does not name its paper"):
        read_survey(numbers_file(tmp_path, ("baseline", "1.00", "survey", "baseline")))
    named = "baseline of A et al. (arXiv 1.2), F1"
    with pytest.raises(AuditError, match=r"A et al\. / 1\.2 / random / not stated must have baseline"):
        read_survey(numbers_file(tmp_path, (named, "1.00", "survey", "baseline")))
    assert read_survey(None) == []


def test_table_10_prints_what_a_tokenizer_gives(tmp_path, claims):
    token_map = {
        "model": "tiny",
        "encode": {"YES": [3], " yes": [1, 2], "yes": [2], "Yes": []},
        "pieces": {"1": "▁", "2": "▁yes", "3": "▁YES"},
    }
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(token_map), encoding="utf-8")
    found = cells(
        registry.get("table_10_encodings")(run_of(tokens=(path,), claims=claims)), by=["model", "form"]
    )
    kept = {
        form: row["kept by the one-token rule"] for (model, form), row in found.items() if model == "tiny"
    }
    # Capitals are no form of the rule, whatever they encode to.
    assert kept == {'"yes"': "yes", '"Yes"': "no", '" yes"': "no", '"YES"': "no"}
    assert list(kept) == ['"yes"', '"Yes"', '" yes"', '"YES"']
    assert found["tiny", '" yes"']["pieces"] == "▁ ▁yes"
    assert found["tiny", '"Yes"']["ids"] == "none"
    printed = found["llava-1.6-mistral-7b", '" Yes"']
    assert (printed["source"], printed["ids"], printed["tokens"]) == ("paper", "28705 5592", "2")


def test_a_tokenizer_takes_the_place_of_the_printed_map(tmp_path, claims):
    token_map = {"model": "llava-1.6-mistral-7b", "encode": {"yes": [5081]}, "pieces": {"5081": "▁yes"}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(token_map), encoding="utf-8")
    table = registry.get("table_10_encodings")(run_of(tokens=(path,), claims=claims))
    assert table.texts() == [["llava-1.6-mistral-7b", "vocabulary", '"yes"', "5081", "▁yes", "1", "yes"]]


def test_forms_come_in_the_papers_order():
    assert in_order(sorted([*FORMS, "YES", " NO"])) == [*FORMS, " NO", "YES"]


def test_table_11_takes_the_first_500_of_the_hardest_split(tmp_path):
    chat = LLAVA._replace(template="native_chat", source="inference")
    # Table 11's native_chat row of the authors' file: tp 197, fp 10, tn 240, fn 53.
    rows = [
        score_row(chat, "pope", "adversarial", TWO, tp=250, fp=222, tn=28, fn=0) | {"subset": "first_500"},
        score_row(chat, "pope", "adversarial", EIGHT, tp=197, fp=10, tn=240, fn=53) | {"subset": "first_500"},
        score_row(chat, "pope", "random", TWO, tp=1) | {"subset": "first_500"},
        score_row(chat, "pope", "adversarial", TWO, tp=9),
    ]
    options = dataclasses.replace(OPTIONS, models=("llava-1.5-7b", "absent"))
    table = registry.get("table_11_templates")(run_of(options, scores=write_scores(tmp_path, rows)))
    found = cells(table, by=["model", "readout"])
    metrics = ("n", "F1", "P", "R", "yes-rate")
    shown = {key: " ".join(row[name] for name in metrics) for key, row in found.items()}
    assert shown["llava-1.5-7b", TWO] == "500 0.6925 0.5297 1.0000 0.944"
    assert shown["llava-1.5-7b", EIGHT] == "500 0.8621 0.9517 0.7880 0.414"
    assert shown["llava-1.5-7b", "string_parse"] == "not_run not_run not_run not_run not_run"
    assert shown["absent", TWO].startswith("not_run")
    assert found["llava-1.5-7b", TWO]["template"] == "native_chat"
    assert len(table.notes) == 1


def test_table_11_says_why_it_is_empty(tmp_path):
    rows = [score_row(LLAVA, "pope", "adversarial", TWO, tp=9)]
    table = registry.get("table_11_templates")(run_of(scores=write_scores(tmp_path, rows)))
    assert {row["n"] for row in cells(table, by=["readout"]).values()} == {"not_run"}
    assert table.notes[1].startswith("Nothing of this run was scored on them: subsets does not list 500")
