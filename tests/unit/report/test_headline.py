"""What a run says first, on its page and on the terminal: the pair that it names, and which readout to trust."""

from pathlib import Path
from typing import Any

import pytest
from scores.decision_files import row, write_decisions

from readout_audit.errors import AuditError
from readout_audit.headline import WIDTH, headline_lines
from readout_audit.report.inputs import Files, RunData
from readout_audit.report.page import build_page
from readout_audit.report.summary import headline_lines as first_words
from readout_audit.report.summary import headlines
from readout_audit.stages import build_report, concatenate_scores, score
from report.reading import read_page
from report.small_run import CELL, PAIR, READOUTS, decision_rows, make_run

WHOLE = {"questions": 4, "outside": 0, "excluded": [], "foreign": {}}
BLIND = {
    "questions": 4,
    "outside": 4,
    "excluded": [{"id": 9, "piece": "Yes", "says": "yes", "count": 4}],
    "foreign": {},
}
PARTLY = BLIND | {"outside": 1, "excluded": [{"id": 9, "piece": "Yes", "says": "yes", "count": 1}]}
FOREIGN = BLIND | {"foreign": {"1": "▁stop", "2": "O"}}
FEW, MANY = (WHOLE | {"questions": 10, "outside": n} for n in (1, 2))
"""One answer in ten, the most that is allowed, and two begin with other words."""

WORDLESS = WHOLE | {"outside": 4}
"""The model's first token is never a yes or no, nor among the ids."""


def logit(coverage: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """A readout of logits that compares ids 1 and 2."""
    known = {"coverage": coverage} if coverage else {}
    ids = {"yes": [1], "no": [2]}
    return {"available": True, "kind": "logit", "source": "s", "ids": ids, "pieces": {}, **known, **more}


def run(folder: Path, pair: tuple[str, str] = ("a", "b"), **readouts: dict[str, Any]) -> RunData:
    """A run of four questions, all of them answered yes under every readout."""
    folder.mkdir(exist_ok=True)
    labels = ("yes", "yes", "no", "no")
    rows = [
        row("random", n, label, "0.jpg", f"thing {n}", **dict.fromkeys(readouts, "yes"))
        for n, label in enumerate(labels)
    ]
    decisions = write_decisions(folder / "d.parquet", rows, cell=CELL, readouts=readouts)
    score.run(decisions, folder / "s.parquet", resamples=0)
    concatenate_scores.run([folder / "s.parquet"], folder / "scores.parquet")
    return RunData(Files(scores=folder / "scores.parquet", decisions=(decisions,)), pair)


def result(data: RunData) -> str:
    """What the first cell's box says."""
    return " ".join(headlines(data)[0].result)


TRUSTED = "Trust a: it reads every yes and no that the model writes"
NEITHER = (
    "Neither readout reads this model's yes or no: a and b compare tokens that say neither in its vocabulary, so both "
    "their scores mean nothing."
)


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        (WHOLE, BLIND, f"{TRUSTED}; b reads none of what the model writes."),
        (WHOLE, PARTLY, f"{TRUSTED}; b misses the yes or no of 1 of 4 (25.0%) answers."),
        (WHOLE, WHOLE | {"foreign": {"2": "O"}}, f"{TRUSTED}; b also compares tokens that are neither"),
        (WHOLE, FOREIGN, f"{TRUSTED}; b compares tokens that are neither yes nor no in this model's vocabulary"),
        (WHOLE, WHOLE, "Both readouts read every yes and no that the model writes. They differ in the rule"),
        (FEW, BLIND, f"{TRUSTED} (1 of 10 (10.0%) answers begin with neither); b reads none"),
        (MANY, BLIND, "Trust neither readout: a decides 2 of 10 (20.0%) answers between tokens that the model did not"),
        (FOREIGN, FOREIGN, f"{NEITHER} Trust c (F1 0.6667 on random) instead"),
        (BLIND, BLIND, "Neither readout reads what the model writes: a and b compare tokens that it did not choose."),
        (PARTLY, BLIND, "Trust neither readout: a misses the yes or no of 1 of 4 (25.0%) answers; b reads none"),
    ],
)  # fmt: skip
def test_the_readout_to_trust_is_one_that_reads_what_the_model_writes(
    tmp_path: Path, first: dict[str, Any], second: dict[str, Any], said: str
) -> None:
    assert said in result(run(tmp_path, a=logit(first), b=logit(second), c=logit(WHOLE)))


def test_scores_that_mean_nothing_are_announced_before_them(tmp_path: Path) -> None:
    box = result(run(tmp_path / "x", a=logit(FOREIGN), b=logit(FOREIGN)))
    # They are no result: the box and the terminal leave them out, and they follow in plain text.
    assert "mean nothing" in box and "F1" not in box
    assert "No readout of logits in this run reads enough of what the model writes to be trusted." in box
    below = headlines(run(tmp_path / "z", a=logit(FOREIGN), b=logit(FOREIGN)))[0].sentences
    assert "its F1 is 0.6667" in below[0]
    assert below[1] == "a and b take every one of these answers for a yes."
    blind = result(run(tmp_path / "w", a=logit(BLIND), b=logit(BLIND)))
    assert blind.index("tokens that it did not choose") < blind.index("its F1 is 0.6667")
    good = result(run(tmp_path / "y", a=logit(WHOLE), b=logit(FOREIGN)))
    assert good.index("its F1 is 0.6667") < good.index("Trust a")


def test_a_model_that_writes_neither_word_makes_no_readout_trusted(tmp_path: Path) -> None:
    box = result(run(tmp_path, a=logit(WORDLESS), b=logit(WORDLESS), c=logit(WORDLESS)))
    assert "Neither readout reads what the model writes" in box and "reads enough" in box


def test_a_rule_that_was_fitted_to_the_labels_is_not_the_one_to_trust(tmp_path: Path) -> None:
    fitted = logit(WHOLE, needs_labels=True)
    assert f"{TRUSTED}; b decides by a rule that was fitted to the labels." in result(
        run(tmp_path / "x", a=logit(WHOLE), b=fitted)
    )
    assert "Trust c (F1 0.6667 on random) instead" in result(
        run(tmp_path / "y", a=fitted, b=logit(BLIND), c=logit(WHOLE))
    )


def test_dynamic_single_is_the_first_choice_elsewhere(tmp_path: Path) -> None:
    blind = {"a": logit(BLIND), "b": logit(BLIND)}
    assert "Trust dynamic_single (" in result(
        run(tmp_path, **blind, c=logit(WHOLE), dynamic_single=logit(WHOLE))
    )


def test_without_first_tokens_no_readout_is_vouched_for(tmp_path: Path) -> None:
    data = run(tmp_path, a=logit(None), b=logit(None))
    assert "so neither readout can be vouched for." in result(data)
    assert len(headlines(data)[0].lines) == 2


def test_first_tokens_of_the_rows_are_read_where_no_coverage_is_recorded(tmp_path: Path) -> None:
    # Every answer begins with ▁Yes or ▁No, which legacy_8tok compares and legacy_2tok does not.
    data = RunData(make_run(tmp_path), PAIR)
    assert (
        "Trust legacy_8tok: it reads every yes and no that the model writes; legacy_2tok reads none of what the model "
        "writes." in result(data)
    )
    [line] = headlines(data)[0].lines
    assert line.startswith("Readout legacy_8tok: yes = 3")
    page = build_page("r", data)
    assert page.index("The line to print beside the score</summary>") < page.index('id="findings"')


def test_rules_stand_where_readouts_are_introduced(tmp_path: Path) -> None:
    page = read_page(build_page("r", RunData(make_run(tmp_path), PAIR)))
    assert (
        'legacy_8tok compares "yes" and "▁Yes" with "no" and "▁No", by the rule: largest yes > largest no; legacy_2tok '
        'compares "yes" with "no", by the rule: yes > no' in page.text
    )


def test_a_prompt_is_named_as_one(tmp_path: Path) -> None:
    paths = []
    for name in ("authors", "paper"):
        cell = CELL | {"model": "m", "template": name}
        path = write_decisions(tmp_path / f"{name}.d.parquet", decision_rows(), cell=cell, readouts=READOUTS)
        score.run(path, tmp_path / f"{name}.s.parquet", resamples=0)
        paths.append(tmp_path / f"{name}.s.parquet")
    concatenate_scores.run(paths, tmp_path / "s.parquet")
    data = RunData(Files(scores=tmp_path / "s.parquet"), PAIR)
    assert [one.name for one in headlines(data)] == ["m, prompt 'authors'", "m, prompt 'paper'"]
    assert len(first_words(data)) == 2


@pytest.mark.parametrize(
    ("source", "said"),
    [("counts", "the paper agrees with itself"), ("published", "follows from those decisions"), ("inference", "")],
)  # fmt: skip
def test_what_a_match_is_worth_comes_first(tmp_path: Path, source: str, said: str) -> None:
    cell = CELL | {"source": source}
    decisions = write_decisions(tmp_path / "d.parquet", decision_rows(), cell=cell, readouts=READOUTS)
    score.run(decisions, tmp_path / "s.parquet", resamples=0)
    concatenate_scores.run([tmp_path / "s.parquet"], tmp_path / "scores.parquet")
    data = RunData(Files(scores=tmp_path / "scores.parquet", decisions=(decisions,)), PAIR)
    text = read_page(build_page("r", data)).text
    assert ("No model was asked." in text) is bool(said)
    assert said in text
    assert first_words(data)[0].startswith("No model was asked.") is bool(said)


def finished(files: Files, root: Path, pair: tuple[str, str]) -> tuple[list[str], str]:
    """Build the page of run "mine" as the workflow does; return what the terminal says, and the page's text."""
    folder = root / "results" / "mine"
    words = ["--run", "mine", "--scores", str(files.scores), "--decisions", str(files.decisions[0])]
    words += ["--gap", *map(str, files.gap), "--pair", *pair]
    words += ["--headline", str(folder / "headline.txt"), "--output", str(folder / "report.html")]
    folder.mkdir(parents=True)
    assert build_report.main(words) == 0
    text = read_page((folder / "report.html").read_text(encoding="utf-8")).text
    return headline_lines(["mine"], root), text


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        (PAIR, "a difference of −13.33 points (95% interval over pictures: "),
        (PAIR[::-1], "read by the two-token rule (legacy_2tok), and 0.6667 if"),
        (("legacy_8tok", "string_parse"), "The pair legacy_8tok and string_parse was not read from it (string_parse: "),
    ],
)  # fmt: skip
def test_the_terminal_says_what_the_page_says_about_the_runs_own_pair(
    files: Files, tmp_path: Path, pair: tuple[str, str], said: str
) -> None:
    (where, *lines, page), text = finished(files, tmp_path, pair)
    what = " ".join(line.strip() for line in lines)
    assert max(map(len, lines)) <= WIDTH
    assert where == f"mine: tables in {tmp_path}/paper_tables/mine/, figures in {tmp_path}/figures/mine/"
    assert said in what and said in text
    assert page == f"  the page about it: {tmp_path}/results/mine/report.html"
    assert all(sentence in text for sentence in headlines(RunData(files, pair))[0].result)


def test_a_run_without_its_page_says_what_makes_it(tmp_path: Path) -> None:
    with pytest.raises(AuditError, match=r"run 'mine' has no headline yet; make it, and the page with it"):
        headline_lines(["mine"], tmp_path)
