"""The demo as `make demo` runs it: real pictures, real models, real files."""

import json
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from readout_audit import contracts, fileio
from tests.dag.conftest import environment, planned, snakemake

pytestmark = [pytest.mark.dag, pytest.mark.slow]
DEMO = ("all", "--configfile", "config/demo.yaml")
SPLITS = ("random", "popular", "adversarial")


def config(project: Path) -> dict:
    return yaml.safe_load((project / "config/demo.yaml").read_text(encoding="utf-8"))


def scores(project: Path, model: str) -> pd.DataFrame:
    table = fileio.read_table(project / "results/demo/scores.parquet", contracts.SCORES, "scores").to_pandas()
    chosen = table[(table.model == model) & (table.subset == "all") & (table.labels == "pope")]
    return chosen.set_index(["split", "readout"])


def test_a_second_run_has_nothing_to_do(demo: Path) -> None:
    assert planned(snakemake(demo, *DEMO, "-n")) == {}


def test_every_table_and_figure_is_there_and_not_empty(demo: Path) -> None:
    listed = config(demo)
    expected = [
        f"paper_tables/demo/{name}.{kind}" for name in listed["tables"] for kind in ("csv", "md", "tex")
    ]
    expected += [f"figures/demo/{name}.{kind}" for name in listed["figures"] for kind in ("pdf", "png")]
    assert [
        name for name in expected if not (demo / name).is_file() or not (demo / name).stat().st_size
    ] == []


@pytest.mark.parametrize("split", SPLITS)
def test_two_token_rule_says_yes_too_often_and_scores_lower(demo: Path, split: str) -> None:
    """What the demo is for; the size of it is put there by the training mixture."""
    table = scores(demo, "tiny-llava")
    two, eight = table.loc[(split, "legacy_2tok")], table.loc[(split, "legacy_8tok")]
    assert two.yes_rate > 0.5 and two.yes_rate > eight.yes_rate
    assert two.f1 < eight.f1


def test_dynamic_single_equals_first_token_where_the_argmax_is_read(demo: Path) -> None:
    """Theorem 1 on real logits: untied, and with the argmax in the sets, the two readouts agree."""
    path = demo / "results/demo/decisions/demo-pope/tiny-llava/fp32/authors.parquet"
    table = pq.read_table(path)
    sets = fileio.table_metadata(table)["readouts"]["dynamic_single"]["ids"]
    read = {*sets["yes"], *sets["no"]}
    rows = table.to_pandas()
    inside = rows["first_token_id"].isin(read) & ~rows["dynamic_single.tie"].fillna(False).astype(bool)
    assert inside.sum() > 0
    assert (rows["dynamic_single"] == rows["first_token"])[inside].all()


def test_gap_is_rebuilt_exactly_from_its_rates(demo: Path) -> None:
    gap = fileio.read_table(
        demo / "results/demo/gap/demo-pope/tiny-llava/fp32/authors.parquet", contracts.GAP, "gap"
    ).to_pandas()
    pair = gap[
        (gap.readout_from == "legacy_8tok") & (gap.readout_to == "legacy_2tok") & (gap.labels == "pope")
    ]
    for split in SPLITS:
        values = pair[pair.split == split].set_index("quantity")
        exact = {
            name: Fraction(int(values.loc[name].numerator), int(values.loc[name].denominator))
            for name in ("f1_to", "f1_to_rebuilt", "f1_from", "delta_f1")
        }
        assert exact["f1_to"] == exact["f1_to_rebuilt"]
        assert exact["f1_from"] - exact["f1_to"] == exact["delta_f1"]


def test_records_hold_what_the_contract_says(demo: Path) -> None:
    table = fileio.read_table(
        demo / "results/demo/records/demo-pope/tiny-llava/fp32/authors.parquet", contracts.RECORDS, "records"
    )
    meta = fileio.table_metadata(table)
    rows = table.to_pandas()
    assert rows.uid.is_unique
    assert set(rows.status) == {"ok"}
    assert (rows.new_ids.str[0] == rows.argmax_id).all()
    assert (rows.n_image_tokens == 36).all()
    assert (rows.candidate_logits.str.len() == len(meta["candidate_ids"])).all()
    assert (rows.top_ids.str[0] == rows.argmax_id).all() and (rows.top_ids.str.len() == 20).all()
    assert (rows.log_z > rows.argmax_logit).all()
    assert meta["parameter_dtypes"].keys() == {"float32"}


def test_questions_are_balanced_and_shared(demo: Path) -> None:
    rows = pq.read_table(demo / "results/demo/questions/demo-pope.parquet").to_pylist()
    assert Counter((row["split"], row["label"]) for row in rows) == {
        (split, label): 600 for split in SPLITS for label in ("yes", "no")
    }
    positives = {
        split: [r["uid"] for r in rows if r["split"] == split and r["label"] == "yes"] for split in SPLITS
    }
    assert positives["random"] == positives["popular"] == positives["adversarial"]


def test_logs_and_benchmarks_are_not_empty(demo: Path) -> None:
    logs = [path for path in (demo / "logs/demo").rglob("*.log") if not path.stat().st_size]
    assert logs == []
    assert (demo / "results/demo/benchmarks/make_demo_world.tsv").stat().st_size


def test_copied_records_are_rescored_without_torch(demo: Path, fresh: Path) -> None:
    """`records_from: files`: another machine's records and questions, no model, no torch to import."""
    blocked = fresh / "blocked"
    blocked.mkdir()
    for name in ("torch", "transformers"):
        (blocked / f"{name}.py").write_text("raise ImportError('not on this machine')\n", encoding="utf-8")
    overrides = fresh / "rescore.yaml"
    changed = config(demo) | {
        "run": "rescored",
        "records_from": "files",
        "records_folder": str(demo / "results/demo"),
        "figures": ["figure_02_confusion"],
    }
    overrides.write_text(yaml.safe_dump(changed), encoding="utf-8")
    path = f"{fresh / 'src'}:{blocked}"
    result = snakemake(fresh, "all", "--cores", "2", "--configfile", str(overrides), PYTHONPATH=path)
    assert result.returncode == 0, result.stderr[-3000:]
    columns = ["model", "split", "readout", "tp", "fp", "tn", "fn"]
    tables = [
        pq.read_table(file).to_pandas()[columns]
        for file in (demo / "results/demo/scores.parquet", fresh / "results/rescored/scores.parquet")
    ]
    assert tables[0].equals(tables[1])
    # Signals came along, so the corrections were redone there, too.
    cell = "corrections/demo-pope/tiny-llava/fp32/authors.parquet"
    corrected = [
        pq.read_table(folder / cell).drop_columns("source")
        for folder in (demo / "results/demo", fresh / "results/rescored")
    ]
    assert corrected[0].num_rows == 3 * 48 and corrected[0].equals(corrected[1])


def test_headline_of_a_finished_run(demo: Path) -> None:
    command = [sys.executable, "-m", "readout_audit.cli", "headline", "demo"]
    done = subprocess.run(
        command, cwd=demo, env=environment(demo), capture_output=True, text=True, check=True
    )
    where, *said, page = done.stdout.splitlines()
    # What was found is wrapped for a terminal.
    text = " ".join(line.strip() for line in said)
    assert where == "demo: tables in paper_tables/demo/, figures in figures/demo/"
    assert text.startswith("This is a demonstration. tiny-llava and tiny-mistral are small models")
    assert "tiny-llava: On the adversarial questions its F1 is " in text
    assert (
        "Trust legacy_8tok: it reads every yes and no that the model writes; legacy_2tok reads none" in text
    )
    assert "tiny-mistral: Neither readout reads this model's yes or no" in text
    assert page == "  the page about it: results/demo/report.html" and (demo / page.split(": ")[1]).is_file()


def test_manifest_says_how_fast(demo: Path) -> None:
    manifest = json.loads(
        (demo / "results/demo/records/demo-pope/tiny-llava/fp32/authors.manifest.json").read_text(
            encoding="utf-8"
        )
    )
    assert manifest
