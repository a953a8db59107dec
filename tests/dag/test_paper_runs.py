"""The paper's core from its printed integers, and from the authors' published decisions."""

import csv
import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from readout_audit import contracts, fileio
from tests.dag.conftest import copy_project, environment, snakemake

pytestmark = pytest.mark.dag

# Paper, Table 7: label, eight-token decision, two-token decision -> count.
TABLE_7 = {
    "adversarial": {"yes": (1174, 0, 264, 62), "no": (182, 0, 660, 658)},
    "popular": {"yes": (1191, 0, 250, 59), "no": (112, 0, 567, 821)},
    "random": {"yes": (1191, 0, 250, 59), "no": (43, 0, 448, 1009)},
}
MOVES = (("yes", "yes"), ("yes", "no"), ("no", "yes"), ("no", "no"))


@pytest.fixture(scope="module")
def counts(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = copy_project(root, tmp_path_factory.mktemp("counts") / "project")
    result = snakemake(project, "all", "--cores", "2", "--configfile", "config/paper-counts.yaml")
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return project


@pytest.fixture(scope="module")
def published(root: Path, shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run offline: any attempt to open a socket ends the job."""
    project = copy_project(root, tmp_path_factory.mktemp("published") / "project")
    blocked = project / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(
        "import socket\n"
        "def refuse(self, address, *rest):\n"
        "    raise RuntimeError(f'a socket to {address} was opened')\n"
        "socket.socket.connect = socket.socket.connect_ex = refuse\n",
        encoding="utf-8",
    )
    result = snakemake(
        project,
        "all", "--cores", "2", "--configfile", "config/paper-published.yaml",
        "--config", f"mirror={shared / 'mirror'}",
        PYTHONPATH=f"{project / 'src'}:{blocked}",
    )  # fmt: skip
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return project


def transitions(project: Path, run: str) -> dict[tuple[str, str, str, str], int]:
    path = project / f"results/{run}/transitions/coco-2023-10/llava-1.5-7b/nf4/authors.parquet"
    rows = fileio.read_table(path, contracts.TRANSITIONS, "transitions").to_pylist()
    return {
        (row["split"], row["label"], row["decision_from"], row["decision_to"]): row["n"]
        for row in rows
        if (row["readout_from"], row["readout_to"], row["labels"]) == ("legacy_8tok", "legacy_2tok", "pope")
    }


def claims(project: Path, run: str) -> dict[str, dict[str, str]]:
    with (project / f"paper_tables/{run}/claims.csv").open(encoding="utf-8", newline="") as stream:
        return {row["id"]: row for row in csv.DictReader(stream)}


def check_table_7(found: dict[tuple[str, str, str, str], int]) -> None:
    expected = {
        (split, label, *move): count
        for split, labels in TABLE_7.items()
        for label, cells in labels.items()
        for move, count in zip(MOVES, cells, strict=True)
    }
    assert {key: found[key] for key in expected} == expected


def test_counts_give_table_7_and_every_core_number(counts: Path) -> None:
    check_table_7(transitions(counts, "paper-counts"))
    core = {
        key: row for key, row in claims(counts, "paper-counts").items()
        if row["section"] in {"Table 1", "Table 2", "Table 7", "Table 13", "Section 3.4"}
    }  # fmt: skip
    assert len(core) > 100
    assert {key for key, row in core.items() if row["status"] != "reproduced"} == {"t2.random.gap"}
    gap = core["t2.random.gap"]
    assert (gap["status"], gap["published"], gap["reproduced"]) == (
        "inconsistent_in_paper",
        "0.0316",
        "0.0315",
    )


def test_table_4_of_counts_says_what_was_not_measured(counts: Path) -> None:
    text = (counts / "paper_tables/paper-counts/table_04_readouts.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if "llava-1.5-7b" in line and "|" in line]
    assert rows and all("derived" in line for line in rows)
    assert "| |" not in text and "nan" not in text.lower().split()


THIRTEEN = (
    *(
        "table_01_first_tokens",
        "table_02_protocols",
        "table_03_survey",
        "table_04_readouts",
        "table_05_token_ids",
    ),
    *("table_06_notation", "table_07_transitions", "table_08_published", "table_09_published"),
    *("table_10_encodings", "table_11_templates", "table_12_survey_readouts", "table_13_confusion"),
)


def check_thirteen_tables(project: Path, run: str) -> None:
    """All thirteen are there, no cell of them is empty, and what was not run says so."""
    for name in THIRTEEN:
        with (project / f"paper_tables/{run}/{name}.csv").open(encoding="utf-8", newline="") as stream:
            heading, *rows = list(csv.reader(stream))
        assert rows, name
        assert all(cell.strip() for row in [heading, *rows] for cell in row), name
    with (project / f"paper_tables/{run}/table_09_published.csv").open(
        encoding="utf-8", newline=""
    ) as stream:
        assert {row["this run: mean"] for row in csv.DictReader(stream)} == {"not_run"}


def test_counts_make_all_thirteen_tables(counts: Path) -> None:
    check_thirteen_tables(counts, "paper-counts")


@pytest.mark.slow
def test_published_decisions_make_all_thirteen_tables(published: Path) -> None:
    check_thirteen_tables(published, "paper-published")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_every_table_compiles_in_one_document(counts: Path, tmp_path: Path) -> None:
    files = sorted((counts / "paper_tables/paper-counts").glob("*.tex"))
    assert {file.stem for file in files} >= set(THIRTEEN)
    inputs = "".join(f"\\input{{{file}}}\\clearpage\n" for file in files)
    packages = "\\usepackage[T1]{fontenc}\\usepackage{booktabs,graphicx}\\usepackage[margin=2cm]{geometry}"
    text = f"\\documentclass{{article}}{packages}\n\\begin{{document}}\n{inputs}\\end{{document}}\n"
    (tmp_path / "all.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Overfull" not in done.stdout


@pytest.mark.slow
def test_published_decisions_give_table_7_without_opening_a_socket(published: Path) -> None:
    check_table_7(transitions(published, "paper-published"))
    core = [
        row
        for row in claims(published, "paper-published").values()
        if row["section"] in {"Table 2", "Table 7", "Table 13"}
    ]
    assert {row["id"] for row in core if row["status"] != "reproduced"} == {"t2.random.gap"}


@pytest.mark.slow
def test_published_run_counts_the_real_questions(published: Path) -> None:
    report = json.loads(
        (published / "results/paper-published/questions/coco-2023-10.json").read_text("utf-8")
    )
    assert (report["rows"], report["distinct"], report["misspelt"]) == (9000, 5170, 57)


@pytest.mark.slow
def test_the_mirrors_tokenizer_gives_table_5(published: Path) -> None:
    path = published / "paper_tables/paper-published/table_05_token_ids.csv"
    rows = [row for row in csv.DictReader(path.open(encoding="utf-8")) if row["model"] == "llava-1.5-7b"]
    assert {row["source"] for row in rows} == {"vocabulary"}
    # The eight ids of LLaMA-2's vocabulary, as the paper prints them.
    assert [int(row["id"]) for row in rows] == [3582, 8241, 4874, 3869, 1217, 3782, 694, 1939]


def test_published_scores_stand_under_both_label_sets(published: Path) -> None:
    table = pq.read_table(published / "results/paper-published/scores.parquet").to_pandas()
    repope = table[(table.labels == "repope") & (table.subset == "all") & (table.split == "adversarial")]
    counted = repope.set_index("readout")["n"].to_dict()
    # RePOPE keeps 2,684 of the adversarial questions (its README).
    assert counted == {"legacy_2tok": 2684, "legacy_8tok": 2684}


@pytest.mark.slow
def test_snakemakes_own_report_holds_tables_figures_claims_and_page(counts: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = snakemake(
        counts, "--report", str(page), "--cores", "1", "--configfile", "config/paper-counts.yaml"
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    text = page.read_text(encoding="utf-8")
    for name in ("table_13_confusion.csv", "figure_02_confusion.png", "claims.csv", "report.html"):
        assert name in text
    for category in ("Tables", "Figures", "Claims", "Report"):
        assert f'"{category}"' in text


def test_the_socket_trap_works(tmp_path: Path) -> None:
    """A trap that never springs would prove nothing."""
    server = socket.create_server(("127.0.0.1", 0))
    code = (
        "import socket\n"
        "def refuse(self, address, *rest): raise RuntimeError('a socket was opened')\n"
        "socket.socket.connect = refuse\n"
        f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment(tmp_path)
    )
    server.close()
    assert "a socket was opened" in result.stderr
