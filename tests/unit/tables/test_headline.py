"""The lines a run ends with, whatever its splits are called, and whether its page is made."""

from pathlib import Path

from readout_audit.headline import headline_lines

from .paper_run import EIGHT, LLAVA, TWO, score_row, write_scores


def lines(root: Path, *splits: str, readouts: tuple[str, ...] = (EIGHT, TWO)) -> list[str]:
    """The headline of a run whose splits have F1 4/5 under the first readout and 2/3 under the other."""
    counts = {EIGHT: {"tp": 2, "fp": 1, "tn": 1, "fn": 0}, TWO: {"tp": 1, "fp": 0, "tn": 2, "fn": 1}}
    rows = [score_row(LLAVA, "pope", split, name, **counts[name]) for split in splits for name in readouts]
    folder = root / "results/mine"
    folder.mkdir(parents=True)
    write_scores(folder, rows).rename(folder / "scores.parquet")
    return headline_lines(["mine"], root)


def test_a_split_of_ones_own_has_a_headline(tmp_path: Path) -> None:
    _, what = lines(tmp_path, "main")
    assert what.startswith("  llava-1.5-7b on main (4 questions): F1 0.8000 read over all eight")
    assert what.endswith("moves F1 by 13.33 points.")


def test_popes_splits_come_first_in_their_order(tmp_path: Path) -> None:
    assert (
        "on random, adversarial, extra (4, 4, 4 questions)"
        in lines(tmp_path, "extra", "pooled", "adversarial", "random", "distinct")[1]
    )


def test_a_run_that_was_not_read_in_both_ways_says_so(tmp_path: Path) -> None:
    assert "were not both read" in lines(tmp_path, "main", readouts=(EIGHT,))[1]


def test_the_page_is_named_where_it_is_made(tmp_path: Path) -> None:
    assert len(lines(tmp_path, "main")) == 2
    page = tmp_path / "results/mine/report.html"
    page.touch()
    assert headline_lines(["mine"], tmp_path)[2] == f"  the page about it: {page}"
