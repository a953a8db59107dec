"""The page says what the run found, stands alone, and runs nothing that a file says."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import comb
from pathlib import Path

import pytest
from scores.decision_files import write_decisions
from scores.published import write_published, write_repope

from readout_audit.errors import AuditError
from readout_audit.report.inputs import Files, RunData
from readout_audit.report.manifests import manifests
from readout_audit.report.page import build_page
from readout_audit.stages import (
    build_report,
    compare_splits,
    concatenate_scores,
    measure_gap,
    relabel,
    score,
)
from report.reading import Page, read_page
from report.small_run import (
    CELL,
    HOSTILE,
    MODEL,
    OTHER_RELEASE,
    PAIR,
    READOUTS,
    SETTINGS,
    decision_rows,
    write_claims,
)

SHOWN = HOSTILE.replace("\u202e", "[U+202E]")


def test_nothing_of_the_files_becomes_markup(page: Page, html: str):
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "b>odd", "i", "iframe", "object", "embed", "link", "base", "form"}
    assert all(not name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert {one["src"][:22] for one in page.named("img")} == {"data:image/png;base64,"}
    assert len(page.named("img")) == 2
    # Hostile texts are there, word for word, as text.
    for text in (
        "<script>alert(0)</script>",
        MODEL,
        SHOWN,
        "<script>alert(4)</script>",
        "<b>box</b>",
        "no text <here>",
        OTHER_RELEASE,
        f"Is there a {SHOWN} in the imange?",
    ):
        assert text in page.text
    assert "\u202e" not in html


def test_nothing_is_loaded_from_elsewhere(page: Page, html: str):
    links = [attributes.get("href") for attributes in page.named("a")]
    ids = {attributes.get("id") for _, attributes in page.tags}
    assert links
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    policy = next(one["content"] for one in page.named("meta") if one.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_markup_is_balanced(page: Page):
    assert page.unclosed == []
    assert page.open == []


def test_a_phone_and_both_colour_schemes_are_served(page: Page, html: str):
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.named("meta")
    assert "prefers-color-scheme:dark" in html
    assert "@media print" in html
    assert html.count("<table") == html.count('<div class="scroll"')


def test_wide_tables_say_that_they_scroll_and_captions_stay_in_sight(page: Page, html: str):
    assert "columns: it scrolls sideways where it does not fit." in page.text
    assert "Wide table, 2 columns" not in page.text
    assert "caption span{position:sticky" in html
    assert html.count("<caption>") == html.count("<caption><span>")


def test_headline_of_the_small_run(page: Page):
    # adversarial, eight-token: TP 1, FP 0, FN 1, F1 = 2/3; two-token: TP 2, FP 1, FN 0, F1 = 4/5; gap -2/15.
    assert (
        "was asked 8 yes/no questions about pictures of release<b>: 4 random and 4 adversarial" in page.text
    )
    assert (
        "On the adversarial questions its F1 is 0.6667 if the answers are read by the eight-token rule (legacy_8tok), "
        "and 0.8000 if they are read by the two-token rule (legacy_2tok): a difference of −13.33 points"
        in page.text
    )
    assert "The two ways disagree on 2 of 4 (50.0%) of these answers." in page.text


def test_first_tokens_tell_which_readout_looks_at_the_answer(page: Page):
    # Tokens 6 (5 times) and 5 (3 times); the two-token readout compares 3 and 4 alone.
    assert (
        'The answers begin with "▁No" = 6 (5) and "▁Yes" = 5 (3); legacy_8tok looks at that token in 8 of 8 (100.0%) '
        "and legacy_2tok looks at that token in 0 of 8 (0.0%). Where it does not, it decides between tokens that the "
        "model did not choose." in page.text
    )


def test_splits_that_contradict_themselves_are_named(page: Page):
    # The dog of picture 0 is in both splits: two-token yes in adversarial, no in random.
    assert (
        "adversarial and random share 1 question of the same text. Answered differently: 1 (100.0%) under legacy_2tok. "
        "One deterministic setup cannot have given both answers. Under legacy_8tok none is." in page.text
    )
    # The table has the one row with a differing answer; the others are counted.
    assert "Shared questions that two splits answer differently" in page.text
    assert "without such a question left out" in page.text


def test_naive_intervals_and_tests_stand_beside_those_over_pictures(page: Page):
    text = page.text.partition("How sure is the gap?")[2]
    assert "over pictures naive, by question split gap, points 95% interval permutation p McNemar p" in text
    # Right only under the first reading on one question, only under the second on one: McNemar's p is 1.
    assert re.search(r"adversarial −13\.33 −[\d.]+ to −?[\d.]+ [01]\.\d{3} 1\.000", text)
    assert "times as wide as the one that takes questions for independent." in text


def test_quirks_and_missing_readouts_are_told(page: Page):
    assert "quirk & co" in page.text
    assert "not available: no text <here>" in page.text


def test_claims_are_counted_and_told_together(page: Page):
    assert (
        "4 numbers that the paper or its authors’ repository prints were held against this run." in page.text
    )
    assert "F1 of x; recall of x" in page.text
    assert "0.1; 0.2" in page.text
    assert "1 reproduced, 1 differs" in page.text


def test_verdicts_about_other_models_come_after_the_runs_own_findings(files: Files, html: str, folder: Path):
    own = read_page(html).text
    assert own.index("Published numbers, each with a verdict") < own.index("What the gap is made of")
    assert "The verdicts are" not in own
    claims = write_claims(folder / "claims.csv", source="counts: coco-2023-10/llava-1.5-7b/nf4/authors")
    page = read_page(build_page("run", RunData(replace(files, claims=claims), PAIR)))
    said = page.text.index(f"About other models. The verdicts are not about {MODEL}.")
    assert page.text.index("What the gap is made of") < said
    assert "were held against this run" not in page.text
    assert page.unclosed == []


def scores_of_two_models(files: Files, folder: Path) -> Path:
    """The score table of the run's model and of another one with the same answers."""
    other = write_decisions(
        folder / "other.parquet", decision_rows(), cell={**CELL, "model": "other"}, readouts=READOUTS
    )
    score.run(other, folder / "other_score.parquet")
    score.run(files.decisions[0], folder / "score.parquet")
    concatenate_scores.run([folder / "score.parquet", folder / "other_score.parquet"], folder / "s.parquet")
    return folder / "s.parquet"


def test_a_run_that_asks_other_models_too_says_whom_the_verdicts_are_about(files: Files, folder: Path):
    scores = scores_of_two_models(files, folder)
    both = Files(scores=scores, claims=files.claims)
    text = read_page(build_page("run", RunData(both, PAIR))).text
    assert f"The verdicts are about {MODEL}, and not about other." in text


def test_manifests_are_told_by_kind_and_by_group(folder: Path):
    place = folder / "results" / "r" / "questions"
    place.mkdir(parents=True)
    splits = {"a": {"rows": 3, "labels": {"no": 1}}, "b": {"rows": 4, "more": True}}
    (place / "q.json").write_text(json.dumps({"rows": 7, "splits": splits, "ids": {" yes": [1, 2]}}))
    (folder / "x.json").write_text("[1, 2]")
    decisions = write_decisions(folder / "d.parquet", decision_rows(), cell=CELL, readouts=READOUTS)
    score.run(decisions, folder / "s.parquet")
    found = manifests(
        RunData(Files(folder / "s.parquet", manifests=(folder / "x.json", place / "q.json")), PAIR)
    )
    assert [(one.kind, [file.name for file in one.files]) for one in found] == [
        ("Questions", ["results/r/questions/q.json"]),
        ("Other files", ["x.json"]),
    ]
    alone, by_split, ids = found[0].files[0].tables
    assert alone.rows == (("rows", "7"),)
    # Like things stand side by side; what one of them lacks is a dash.
    assert [column.name for column in by_split.columns] == ["name", "a", "b"]
    assert by_split.rows == (("rows", "3", "4"), ("labels.no", "1", "–"), ("more", "–", "yes"))
    assert (ids.caption, ids.rows) == ("ids", (('" yes"', "1, 2"),))
    assert found[1].files[0].tables[0].rows == (("value", "1, 2"),)


def test_without_optional_files_every_section_says_so(files: Files):
    page = read_page(build_page("run", RunData(Files(scores=files.scores), PAIR)))
    for why in ("set claims: true in its run file", "It takes a second label set: name one under labels"):
        assert why in page.text
    for what in ("A claims table", "This finding", "A table", "A figure", "A decision file", "A manifest"):
        assert f"{what} is not part of this run." in page.text
    assert "0.6667" in page.text  # the scores are there all the same
    assert page.unclosed == []


def test_a_pair_that_was_not_read_is_said(files: Files):
    page = read_page(build_page("run", RunData(files, ("legacy_8tok", "string_parse"))))
    assert (
        "The pair legacy_8tok and string_parse was not read from it (string_parse: no text <here>)."
        in page.text
    )


def test_several_models_have_an_overview(files: Files, folder: Path):
    scores = scores_of_two_models(files, folder)
    page = read_page(build_page("run", RunData(Files(scores=scores), PAIR)))
    assert (
        "F1 of all models on adversarial, under each of 2 readouts model legacy_8tok legacy_2tok "
        f"{MODEL} 0.6667 0.8000" in page.text
    )
    assert "other 0.6667 0.8000" in page.text


def test_models_of_which_one_sentence_says_all_share_a_line_and_no_fold(files: Files, folder: Path):
    """Two models with the same answers, all of them readable and without logits: nothing is unclear about either."""
    scored = []
    for name in ("one", "other"):
        rows = [{**row, **dict.fromkeys(READOUTS, "yes")} for row in decision_rows()]
        decisions = write_decisions(
            folder / f"{name}.parquet", rows, cell={**CELL, "model": name}, readouts=READOUTS
        )
        score.run(decisions, folder / f"{name}_score.parquet")
        scored.append(folder / f"{name}_score.parquet")
    concatenate_scores.run(scored, folder / "s.parquet")
    html = build_page("run", RunData(Files(scores=folder / "s.parquet"), PAIR))
    said = "No answer was unparsed or invalid, and no tie is known."
    assert html.count(said) == 1
    assert f'<p class="brief"><b>one; other:</b> {said}</p>' in html


def test_unpaired_counts_are_told_as_bounds(folder: Path):
    """adversarial: T = 1 of P = 2, then 2 of 2: the wrong no must have flipped. random: 1 and 1 of 2, the same or not."""
    rows = decision_rows()
    rows[4]["legacy_8tok"] = "no"
    decisions = write_decisions(folder / "d.parquet", rows, cell=CELL, readouts=READOUTS, joint=False)
    score.run(decisions, folder / "s.parquet")
    measure_gap.run(decisions, folder / "t.parquet", folder / "g.parquet", pairs=[PAIR])
    files = Files(scores=folder / "s.parquet", decisions=(decisions,), gap=(folder / "g.parquet",))
    text = read_page(build_page("run", RunData(files, PAIR))).text
    assert "adversarial wrong no read as yes mended misses 1 of 1 (100.0%)" in text
    assert "random wrong no read as yes mended misses between 0 and 1 of 1 not identifiable" in text
    assert "only bounds of the flips are known" in text


def demo_decisions(folder: Path, names: Sequence[str]) -> list[Path]:
    """The small run's answers as those of models that lie in the demo's folder."""
    settings = {**SETTINGS, "folder": "resources/demo/models/x"}
    return [
        write_decisions(
            folder / f"{name}.parquet",
            decision_rows(),
            cell={**CELL, "model": name},
            readouts=READOUTS,
            settings=settings,
        )
        for name in names
    ]


def test_a_run_of_demo_models_says_so_before_its_result(files: Files, html: str, folder: Path):
    decisions = demo_decisions(folder, ["a", "b", "c"])
    for path in decisions:
        score.run(path, folder / f"{path.stem}.s.parquet")
    concatenate_scores.run([folder / f"{path.stem}.s.parquet" for path in decisions], folder / "s.parquet")
    demo = Files(scores=folder / "s.parquet", decisions=tuple(decisions))
    text = read_page(build_page("run", RunData(demo, PAIR))).text
    said = text.index("a, b and c are small models that this project trained on pictures it drew itself")
    assert "no evidence about real models" in text
    assert said < text.index("On the adversarial questions its F1")
    # Three models, two readouts: what there is more of goes down the page; the sentence goes before the table.
    assert "readout a b c" not in text
    assert text.index("On the adversarial questions its F1") < text.index("All models and readouts")
    assert "demonstration" not in read_page(html).text


def test_more_readouts_than_models_go_down_the_page(files: Files, folder: Path):
    one, other = demo_decisions(folder, ["a", "b"])
    three = READOUTS | {"string_parse": {**READOUTS["string_parse"], "available": True}}
    for path in (one, other):
        rows = [{**row, "string_parse": row["legacy_8tok"]} for row in decision_rows()]
        cell = {**CELL, "model": path.stem}
        write_decisions(path, rows, cell=cell, readouts=three)
        score.run(path, folder / f"{path.stem}.s.parquet")
    concatenate_scores.run([folder / "a.s.parquet", folder / "b.s.parquet"], folder / "s.parquet")
    text = read_page(build_page("run", RunData(Files(scores=folder / "s.parquet"), PAIR))).text
    assert "readout a b legacy_8tok 0.6667 0.6667 legacy_2tok 0.8000 0.8000 string_parse 0.6667" in text


def test_the_same_files_give_the_same_page(files: Files, html: str):
    assert build_page("<script>alert(0)</script>", RunData(files, PAIR)) == html


def test_stage_takes_folders_and_files(files: Files, folder: Path):
    tables = files.tables[0].parent
    output = folder / "report.html"
    words = ["--run", "r", "--scores", str(files.scores), "--tables", str(tables), "--figures", str(tables)]
    words += [
        "--claims",
        str(files.claims),
        "--decisions",
        str(files.decisions[0]),
        "--gap",
        str(files.gap[0]),
    ]
    words += ["--pair", "legacy_2tok", "legacy_8tok", "--self-agreement", "--output", str(output)]
    assert build_report.main(words) == 0
    text = read_page(output.read_text()).text
    assert "a difference of 13.33 points" in text
    assert "Table 2." in text
    assert "Figure 2." in text


def test_stage_refuses_a_missing_folder(files: Files, folder: Path):
    words = [
        "--run",
        "r",
        "--scores",
        str(files.scores),
        "--tables",
        str(folder / "no"),
        "--output",
        "o.html",
    ]
    with pytest.raises(AuditError, match="no: neither a file nor a folder"):
        build_report.main(words)


@pytest.fixture(scope="session")
def published_page(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of the authors' 9,000 decisions, without intervals."""
    folder = tmp_path_factory.mktemp("published run")
    decisions = write_published(shared / "mirror", folder / "d.parquet")
    write_repope(shared / "mirror", folder / "labels.parquet")
    labels = {"repope": [folder / "labels.parquet"]}
    paths = {name: folder / f"{name}.parquet" for name in ("s", "t", "g", "a", "x", "r", "c")}
    score.run(decisions, paths["s"], relabel=labels)
    measure_gap.run(decisions, paths["t"], paths["g"], pairs=[PAIR], relabel=labels)
    compare_splits.run(decisions, paths["a"], paths["x"])
    relabel.run(decisions, paths["r"], paths["c"], labels, PAIR)
    files = Files(
        scores=paths["s"],
        decisions=(decisions,),
        gap=(paths["g"],),
        self_agreement=(paths["a"],),
        disagreements=(paths["x"],),
        relabel=(paths["r"],),
        carriers=(paths["c"],),
    )
    return read_page(build_page("published", RunData(files, PAIR)))


def test_page_of_the_published_decisions(published_page: Page):
    text = published_page.text
    for said in (
        # Table 2: 2348/2856 - 2876/3780 = 0.06128; finding 7: 3.6, 2.2 and 2.1 times under RePOPE.
        "F1 is 0.8221 if the answers are read by the eight-token rule (legacy_8tok), and 0.7608",
        "a difference of 6.13 points",
        "The two ways disagree on 924 of 3,000 (30.8%)",
        "the gap is 11.29, 11.75 and 12.59 points (random, popular and adversarial): 3.6, 2.2 and 2.1 times",
        # Finding 7's table, by row.
        "the gap is 3.6 (random), 2.2 (popular) and 2.1 (adversarial) times as large",
        "own labels, all rows 3.15 5.37 6.13",
        "own labels, rows the other set keeps 5.60 7.59 7.88",
        "all rows, other label where there is one 7.99 8.91 10.13",
        "other labels 11.29 11.75 12.59",
        "other labels, rates at 50% positives 7.33 8.63 9.70",
        "F1 under legacy_8tok goes from 0.8221 to 0.8570 and F1 under legacy_2tok goes from 0.7608 to 0.7311",
        # Finding 2.
        "adversarial and popular share 2,245 questions of the same text. Answered differently: 68 (3.0%) under "
        "legacy_8tok and 73 (3.3%) under legacy_2tok, 140 under at least one. One deterministic setup cannot have given",
        # T is 1,174 on adversarial and 1,191 on popular.
        "Of the 1,500 questions labelled yes that adversarial and popular share, however they are spelt, legacy_8tok "
        "answers 45 differently: 31 are yes in popular alone, 14 in adversarial alone, a difference of 17 true positives. "
        "Taken apart: 40 of 1,457 (2.7%) of the same text (−16 in adversarial) and 5 of 43 (11.6%) of another text, such as "
        "a misspelt one (−1 in adversarial).",
        # Popular and random agree under both readouts.
        "popular and random share 1,563 questions of the same text and answer every one alike under legacy_8tok and "
        "legacy_2tok: what one deterministic setup would give.",
        # McNemar's exact test on the adversarial split: right only under the one on 660 questions, under the other on 264.
        f"adversarial 6.13 not computed not computed {float(2 * Fraction(sum(comb(924, k) for k in range(265)), 2**924)):.2e}",
        # Section 3.4: 660 of 1318 and 264 of 326.
        "660 of 1,318 (50.1%)",
        "264 of 326 (81.0%)",
    ):
        assert said in text


def test_the_five_relabelled_gaps_stand_in_the_headline(published_page: Page):
    headline = published_page.text.partition("Published numbers, each with a verdict")[0]
    for said in (
        "own labels, all rows 3.15 5.37 6.13",
        "other labels, rates at 50% positives 7.33 8.63 9.70",
    ):
        assert said in headline


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--allow-file-access-from-files",
    "--virtual-time-budget=4000",
)


def browse(folder: Path, *words: str) -> str:
    """Run Chromium with a profile of its own and return what it prints."""
    command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
class TestInABrowser:
    @pytest.mark.parametrize("width", [320, 390, 1100])
    def test_nothing_is_wider_than_the_screen(self, html: str, folder: Path, width: int):
        (folder / "report.html").write_text(html, encoding="utf-8")
        (folder / "frame.html").write_text(
            f'<iframe id="f" src="report.html" width="{width}" height="900" frameborder="0"></iframe><script>'
            "f.onload = () => document.body.dataset.wide = f.contentDocument.documentElement.scrollWidth</script>"
        )
        printed = browse(folder, "--dump-dom", (folder / "frame.html").as_uri())
        assert f'data-wide="{width}"' in printed

    def test_no_script_of_a_file_runs(self, html: str, folder: Path):
        # An alert would stop the dump; a script that ran could only do so through markup that is not there.
        (folder / "report.html").write_text(html, encoding="utf-8")
        printed = browse(folder, "--dump-dom", (folder / "report.html").as_uri())
        assert "<script" not in printed
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in printed

    def test_the_screenshot_is_drawn(self, html: str, folder: Path):
        from PIL import Image

        (folder / "report.html").write_text(html, encoding="utf-8")
        shot = folder / "shot.png"
        browse(folder, f"--screenshot={shot}", "--window-size=390,1600", (folder / "report.html").as_uri())
        with Image.open(shot) as image:
            assert image.size == (390, 1600)
            colours = image.convert("RGB").getcolors(maxcolors=390 * 1600)
        assert len(colours) > 50  # text, the chart's two colours and their edges; an empty page has one
        background = max(colours)[0] / (390 * 1600)
        assert 0.5 < background < 0.97
