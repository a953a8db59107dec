"""What a table prints as, and that what stands in it is never markup."""

import csv
import io
import re
import shutil
import subprocess
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readout_audit.tables.base import (
    NOT_RUN,
    Column,
    Marked,
    Table,
    fold_constant_columns,
    n_text,
    text_column,
)
from readout_audit.tables.render import latex_text, markdown_text, one_line, to_csv, to_latex, to_markdown

HOSTILE = 'a & b % c_d | <script>\n$x^2$ "q" \\input{x} #1 ~ `ls` *b* [l](u)'


def table(*rows, columns=None, **more):
    return Table(
        number=99,
        name="table_99_test",
        title=more.pop("title", "A test"),
        columns=columns
        or (
            text_column("model", identity=True),
            text_column("split"),
            Column("F1", decimals=4),
            Column("n"),
        ),
        rows=rows,
        n="3 questions",
        **more,
    )


def test_cells_print_exactly():
    # 2382/2734 - 2882/3432 = 0.03153...: the exact difference, not that of the rounded values (0.0316).
    gap = Fraction(2382, 2734) - Fraction(2882, 3432)
    shown = table(("m", "random", gap, 3), ("m", "popular", None, 0), ("m", "x", -gap, 1)).texts()
    assert shown == [
        ["m", "random", "0.0315", "3"],
        ["m", "popular", "undefined", "0"],
        ["m", "x", "-0.0315", "1"],
    ]


def test_a_half_rounds_up():
    assert table(("m", "s", Fraction(1, 20000), 1)).texts()[0][2] == "0.0001"


def test_a_marked_cell_keeps_number_and_word():
    shown = table(("m", "s", Marked(Fraction(2348, 2856), "derived"), 1))
    assert shown.texts()[0][2] == "0.8221 (derived)"
    assert any(note.startswith("derived:") for note in shown.all_notes())


def test_words_are_explained_only_where_used():
    assert table(("m", "s", Fraction(1), 1)).all_notes() == ()
    assert [note.split(":")[0] for note in table(("m", "s", NOT_RUN, 1)).all_notes()] == ["not_run"]


@pytest.mark.parametrize("row", [("m", "s", Fraction(1)), ("m", " ", Fraction(1), 1)])
def test_a_short_row_or_an_empty_cell_is_refused(row):
    with pytest.raises(ValueError, match="table_99_test"):
        table(row)


def test_two_columns_of_one_heading_are_refused():
    with pytest.raises(ValueError, match="share a heading"):
        table(columns=(Column("n"), Column("n")))


def test_a_ratio_needs_decimals():
    with pytest.raises(ValueError, match="'n' has no decimals"):
        table(("m", "s", Fraction(1), Fraction(1, 2))).texts()


def test_csv_is_rfc_4180_and_gives_every_cell_back():
    text = to_csv(table((HOSTILE, "s,t", Fraction(1, 3), 3)))
    assert "\r" not in text
    assert list(csv.reader(io.StringIO(text))) == [
        ["model", "split", "F1", "n"],
        [HOSTILE, "s,t", "0.3333", "3"],
    ]


def test_markdown_shows_constant_identity_once():
    text = to_markdown(table(("m", "a", Fraction(1), 3), ("m", "b", Fraction(1), 3)))
    assert text.splitlines()[2] == "| split |     F1 |   n |"
    assert "In all rows: model m." in text
    assert to_csv(table(("m", "a", Fraction(1), 3))).startswith("model,")


def test_markdown_keeps_identity_that_differs():
    text = to_markdown(table(("m", "a", Fraction(1), 3), ("k", "a", Fraction(1), 3)))
    assert text.splitlines()[2].startswith("| model ")
    assert "In all rows" not in text


def test_markdown_of_hostile_text_is_one_row_of_the_right_width():
    text = to_markdown(table((HOSTILE, "a", Fraction(1), 3), ("k", "a", Fraction(1), 3)))
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {5}
    assert "<" not in text
    assert "&lt;script&gt;" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("legacy_8tok", "legacy_8tok"),
        ("_x_", r"\_x\_"),
        ("a|b", r"a\|b"),
        ("a\\|b", r"a\\\|b"),
        ("a\r\nb\u202ec", "a b c"),
    ],
)
def test_markdown_text(text, shown):
    assert markdown_text(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b & c%", r"a\_b \& c\%"),
        ("\\input{x}", r"\textbackslash{}input\{x\}"),
        ("-0.0315", "$-$0.0315"),
        ("llava-1.5", "llava-1.5"),
        ("a--b", "a-{}-b"),
        ("▁Yes", r"\textvisiblespace{}Yes"),
        ("φ → ρ", r"$\varphi$ $\to$ $\rho$"),
        ("Müller 中", "Müller U+4E2D"),
    ],
)
def test_latex_text(text, shown):
    assert latex_text(text) == shown


def test_latex_of_hostile_text_has_no_unescaped_special():
    body = latex_text(HOSTILE)
    without_escapes = re.sub(r"\\(?:[a-z]+\{\}|[&%$#_{}])", "", body)
    assert not re.search(r"[&%$#_{}\\~^]", without_escapes)


def test_one_line_drops_control_characters():
    assert one_line("a\x00b\tc\n\nd") == "a b c d"


def test_latex_has_groups_rules_and_blocks():
    columns = (text_column("model", identity=True), Column("P", 2, "old"), Column("R", 2, "old"), Column("n"))
    half = Fraction(1, 2)
    text = to_latex(table(("a", half, half, 1), ("a", half, half, 1), ("b", half, half, 1), columns=columns))
    assert r"\multicolumn{1}{c}{} & \multicolumn{2}{c}{old} & \multicolumn{1}{c}{} \\" in text
    assert r"\cmidrule(lr){2-3}" in text
    assert text.count(r"\addlinespace") == 1
    assert r"\label{tab:table-99-test}" in text


def test_a_table_without_rows_renders():
    empty = table()
    assert to_csv(empty) == "model,split,F1,n\n"
    assert "| model | split |" in to_markdown(empty)
    assert r"\bottomrule" in to_latex(empty)
    assert fold_constant_columns(empty)[2] == ()


@pytest.mark.parametrize(
    ("counts", "shown"),
    [([], "0 rows"), ([3000, 3000], "3,000 rows"), ([2910, 3000], "2,910 to 3,000 rows")],
)
def test_n_text(counts, shown):
    assert n_text(counts, "rows") == shown


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(TEXTS, TEXTS)
def test_any_text_comes_back_from_the_csv(model, split):
    text = to_csv(table((model, split, Fraction(1), 3)))
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [[model, split, "1.0000", "3"]]


@given(TEXTS, TEXTS)
def test_any_text_stays_in_its_markdown_cell(model, split):
    text = to_markdown(table((model, split, Fraction(1), 3), ("other " + model, split, Fraction(1), 3)))
    rows = text.split("\n")[2:6]
    assert all(len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 5 for row in rows)
    assert "<" not in text


@given(TEXTS, TEXTS)
def test_any_text_stays_in_its_latex_cell(model, split):
    text = to_latex(table((model, split, Fraction(1), 3), ("other " + model, split, Fraction(1), 3)))
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")].split("\n")[1:-1]
    for row in body:
        if row == r"\addlinespace":
            continue
        bare = re.sub(r"\\[&%$#_{}]", "", row)
        assert bare.count("&") == 3
        assert bare.endswith(r" \\")
        assert bare.count("{") == bare.count("}")
        assert not re.search("[%#~^]", bare.replace(r"\^", ""))
        assert row.isascii() or all(c.isascii() or "À" <= c <= "ÿ" for c in row)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(tmp_path):
    body = to_latex(table((HOSTILE, "▁Yes Ġ φ → ρ_N −", -Fraction(1, 3), 3), ("中", "[x]", None, 1)))
    (tmp_path / "t.tex").write_text(
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage{booktabs,graphicx}"
        f"\\begin{{document}}\n{body}\\end{{document}}\n",
        encoding="utf-8",
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_the_questions_own_labels_are_not_called_popes():
    columns = (Column("labels", identity=True), Column("n"))
    assert "In all rows: labels of the questions themselves." in to_markdown(
        table(("pope", 1), columns=columns)
    )
    assert "In all rows: labels repope." in to_markdown(table(("repope", 1), columns=columns))
