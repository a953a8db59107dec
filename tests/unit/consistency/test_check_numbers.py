"""The command: options, files, exit status, and one sentence for each mistake."""

import csv
import json
import re

import pytest
import typer
from typer.testing import CliRunner

from readout_audit.consistency.cli import check_numbers

APP = typer.Typer()
APP.command()(check_numbers)
COUNTS = ("--positives", "1500", "--negatives", "1500")

TABLE = """\
Method,beta,Positives,negatives,f1,Precision,recall
baseline,,1500,1500,0.8221,0.8658,0.7827
magnitude,1,1500,1500,0.8148,0.8981,0.7467
f1 only,,1500,1500,0.8221,,
"""


def run(*arguments):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments])


def table(tmp_path, text=TABLE):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_one_row_without_a_matrix():
    result = run(*COUNTS, "--precision", "0.8963", "--recall", "0.7460")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[:2] == [
        "no matrix: precision 0.8963 and recall 0.7460 have no common matrix",
        "  nearest: tp 1119, fp 129, fn 381, tn 1371, prints precision 0.8966, recall 0.7460",
    ]


def test_one_row_with_one_matrix():
    result = run(*COUNTS, "--precision", "0.9031", "--recall", "0.7453")
    assert result.exit_code == 0
    assert result.stdout == "1 matrix: tp 1118, fp 120, fn 382, tn 1380\n"


def test_percent_answers_in_percent():
    result = run(*COUNTS, "--percent", "--precision", "89.63", "--recall", "74.60")
    assert result.exit_code == 1
    assert "prints precision 89.66, recall 74.60" in result.stdout


def test_decimals_restore_dropped_zeros():
    # 0.75 as typed is 1118 to 1132 of 1,500. At four decimals it is 1125 alone, and 1125/1255 = 0.89641...,
    # 1125/1256 = 0.89570... print no 0.8963.
    assert run(*COUNTS, "--recall", "0.75", "--precision", "0.8963").exit_code == 0
    assert run(*COUNTS, "--recall", "0.75", "--precision", "0.8963", "--decimals", "4").exit_code == 1


def test_rounding_is_chosen():
    eighth = ("--positives", "8", "--negatives", "0", "--recall", "0.12", "--rounding")
    assert run(*eighth, "half-up").exit_code == 1
    assert run(*eighth, "half-even").exit_code == 0


def test_the_list_is_cut_and_the_rest_counted():
    result = run(*COUNTS, "--f1", "0.8221", "--limit", "2")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "172 matrices",
        "  tp 1047, fp 0, fn 453, tn 1500",
        "  tp 1049, fp 3, fn 451, tn 1497",
        "  and 170 more",
    ]


def test_a_table_of_rows(tmp_path):
    result = run("--csv", table(tmp_path), "--output", tmp_path / "out.csv", "--limit", "0")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "baseline       1 matrix"
    assert lines[1].startswith("magnitude / 1  no matrix: precision 0.8981 and recall 0.7467 have no common")
    assert lines[-1] == "3 rows: 2 have a matrix, 1 have none."
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["Method"] for row in rows] == ["baseline", "magnitude", "f1 only"]
    assert [row["beta"] for row in rows] == ["", "1", ""]
    assert [(row["fits"], row["matrices"]) for row in rows] == [("yes", "1"), ("no", "0"), ("yes", "172")]
    assert [row["precision"] for row in rows] == ["0.8658", "0.8981", ""]


def test_csv_result_has_the_only_matrix_or_the_nearest(tmp_path):
    run("--csv", table(tmp_path), "--output", tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        fits, none, many = csv.DictReader(stream)
    assert [fits[name] for name in ("tp", "fp", "fn", "tn", "nearest_tp")] == [
        "1174",
        "182",
        "326",
        "1318",
        "",
    ]
    assert [many[name] for name in ("tp", "nearest_tp", "conflict")] == ["", "", ""]
    assert (none["tp"], none["nearest_tp"], none["nearest_fp"]) == ("", "1120", "127")
    assert none["conflict"].split("; ") == [
        "precision 0.8981 and recall 0.7467 have no common matrix",
        "precision 0.8981 and f1 0.8148 have no common matrix",
    ]
    assert none["nearest_prints"] == "precision 0.8982, recall 0.7467, f1 0.8154"


def test_json_result_has_every_list(tmp_path):
    run("--csv", table(tmp_path), "--output", tmp_path / "out.json", "--limit", "2")
    fits, none, many = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert fits["matrices"] == [{"tp": 1174, "fp": 182, "fn": 326, "tn": 1318}]
    assert fits["names"] == {"Method": "baseline", "beta": ""}
    assert fits["nearest"] is None
    assert none["conflicts"] == [["precision", "recall"], ["precision", "f1"]]
    assert none["nearest"]["matrix"] == {"tp": 1120, "fp": 127, "fn": 380, "tn": 1373}
    assert (many["count"], len(many["matrices"])) == (172, 2)


def test_counts_may_come_from_the_options_and_headings_in_any_case(tmp_path):
    path = table(tmp_path, "\ufeffname,Yes-Rate,ACCURACY\na,0.5,0.5\n\n")
    result = run("--csv", path, "--positives", "1", "--negatives", "1")
    # Of two questions one is answered yes: either tp 1 and both right, or fp 1 and none; never one right.
    assert result.exit_code == 1
    assert "accuracy 0.5 and yes_rate 0.5 have no common matrix" in result.stdout


@pytest.mark.parametrize("row", ["a;1500;1500;0.8963;0.7460", "a;1500;1500;0,8963;0,7460"])
def test_a_spreadsheet_may_part_cells_by_semicolons(tmp_path, row):
    result = run("--csv", table(tmp_path, f"name;positives;negatives;precision;recall\n{row}\n"))
    assert "precision 0.8963 and recall 0.7460 have no common matrix" in result.stdout


def test_names_do_not_steer_the_terminal(tmp_path):
    path = table(tmp_path, "name,positives,negatives,f1\n\x1b[2Ja,1,1,1.0\nb,1,1,1.0\n")
    result = run("--csv", path)
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--positives", "-3", "--negatives", "5", "--f1", "0.5"), "positives: -3 is negative"),
        (("--positives", "x", "--negatives", "5", "--f1", "0.5"), "positives: 'x' is not a whole number"),
        (("--positives", "5", "--f1", "0.5"), "questions have that label (--negatives N)"),
        (COUNTS, "no printed value to check"),
        ((*COUNTS, "--f1", "0,5"), "f1: '0,5' is not a plain decimal"),
        ((*COUNTS, "--f1", "82.21"), "say so with --percent"),
        ((*COUNTS, "--f1", "0.5", "--rounding", "down"), "--rounding: 'down' is not known"),
        ((*COUNTS, "--f1", "0.5", "--decimals", "x"), "--decimals: 'x' is not"),
        ((*COUNTS, "--f1", "0.5", "--limit", "-1"), "--limit: '-1' is not a whole number from 0 on"),
        ((*COUNTS, "--f1", "0.5", "--limit", "many"), "--limit: 'many' is not a whole number from 0 on"),
        ((*COUNTS, "--f1", "0.5", "--output", "out.txt"), "out.txt: name a file that ends in .csv or .json"),
        ((*COUNTS, "--f1", "0.5", "--csv", "rows.csv"), "--csv and --f1 were both given"),
        (("--csv", "nowhere.csv"), "nowhere.csv: cannot be read"),
        (("--positives", "0", "--negatives", "0", "--f1", "0.5"), "no question to score"),
    ],
)
def test_bad_usage_is_one_sentence_and_status_2(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1 and result.stderr.startswith("error: ")
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line in it"),
        ("name,positives,negatives,f1\n", "no row below the header"),
        (
            "name,positives,negatives,f1,mcc\na,1,1,0.5,0\n",
            "column 'mcc' is not known; the known ones are positives",
        ),
        (
            "name,percision,positives,negatives,f1\na,1,1,1,0.5\n",
            "'percision' is not known; did you mean precision?",
        ),
        ("name,positives,negatives,f1,F1\na,1,1,0.5,0.5\n", "column 'F1' stands there twice"),
        ("name,positives,negatives,f1\na,1,1\n", "line 2: 3 cells where the header has 4"),
        ("name,positives,negatives,f1\na,1,1,\n", "line 2, no printed value to check"),
        ("name,positives,negatives,f1\na,1,1,0.5\nb,1,1,high\n", "line 3, f1: 'high' is not a plain decimal"),
        ("name,positives,negatives,f1\na,,1,0.5\n", "line 2, positives: not given"),
        ("name,positives,negatives,f1\na,1.0,1,0.5\n", "line 2, positives: '1.0' is not a whole number"),
        ("name,positives,negatives,f1\na,0,0,0.5\n", "row 1: positives and negatives are both 0"),
        ('name,positives,negatives,f1\n"a,1,1,0.5\n', "not a CSV"),
    ],
)
def test_a_bad_file_is_one_sentence_that_names_the_place(tmp_path, text, message):
    result = run("--csv", table(tmp_path, text))
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_manual_shows_what_the_command_prints(root, tmp_path, monkeypatch):
    manual = (root / "docs" / "check-numbers.md").read_text(encoding="utf-8")
    one, many = re.findall(r"```console\n(.*?)```", manual, flags=re.DOTALL)
    command, _, shown = one.partition("\n")
    assert run(*command.split()[3:]).stdout == shown
    rows, _, rest = many.removeprefix("$ cat rows.csv\n").partition("$ ")
    command, _, shown = rest.partition("\n")
    table(tmp_path, rows)
    monkeypatch.chdir(tmp_path)
    assert run(*command.split()[2:]).stdout == shown


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b"name,f1\n\xff\xfe\x00,1\n")
    assert "not a CSV in UTF-8" in run("--csv", path).stderr
