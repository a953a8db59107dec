"""Variance components of decision files: hand-worked F1s, scopes, intervals and refusals."""

from pathlib import Path

import numpy as np
import pytest

from audit.cells import write_cell
from readout_audit.audit.schema import ALL_MODELS, VARIANCE
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, table_metadata
from readout_audit.stages import variance_components
from readout_audit.tables.inputs import Options, RunTables, Sources
from readout_audit.tables.table_variance import build


def decomposed(
    tmp_path: Path, paths: list[Path], readouts: list[str], resamples: int = 0
) -> tuple[list[dict], dict]:
    output = tmp_path / "variance.parquet"
    variance_components.run(paths, output, readouts, resamples=resamples)
    table = read_table(output, VARIANCE, "the components")
    return table.to_pylist(), table_metadata(table)


def grid_files(tmp_path: Path, model: str = "m") -> list[Path]:
    """F1 by (precision, readout): fp32 a 1, b 2/3; nf4 a 1, b 0. Labels are yes yes no no."""
    return [
        write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}, model=model),
        write_cell(tmp_path, {"a": "yynn", "b": "nnnn"}, model=model, precision="nf4"),
    ]


def test_components_by_hand(tmp_path: Path) -> None:
    # In thirds: 3 3 | 2 0. Total 8: [] = 16. Readout 6, 2: 20 - 16 = 4. Precision 5, 3: 17 - 16 = 1.
    # All: 9 + 9 + 4 = 22 - 16 = 6, so the interaction is 1. In squares of F1 these are ninths.
    rows, notes = decomposed(tmp_path, grid_files(tmp_path), ["a", "b"])
    assert [row["factor"] for row in rows] == ["readout", "precision", "readout × precision"]
    assert [row["sum_of_squares"] for row in rows] == [4 / 9, 1 / 9, 1 / 9]
    assert [row["share"] for row in rows] == [4 / 6, 1 / 6, 1 / 6]
    assert {(row["scope"], row["split"], row["cells"], row["n"]) for row in rows} == {("m", "random", 4, 4)}
    assert rows[0]["mean_reach"] == pytest.approx((1 / 3 + 1) / 2)
    assert (rows[0]["largest_reach"], rows[0]["largest_at"]) == (1.0, "b to a (nf4)")
    assert (rows[1]["largest_at"], rows[2]["largest_at"]) == ("nf4 to fp32 (b)", None)
    assert notes["levels"] == {"m": {"readout": ["a", "b"], "precision": ["fp32", "nf4"]}}
    assert notes["method"].startswith("balanced factorial ANOVA")


def test_models_alone_and_together(tmp_path: Path) -> None:
    paths = grid_files(tmp_path) + grid_files(tmp_path, "k")
    rows, _ = decomposed(tmp_path, paths, ["a", "b"])
    assert list(dict.fromkeys(row["scope"] for row in rows)) == ["m", "k", ALL_MODELS]
    together = {row["factor"]: row for row in rows if row["scope"] == ALL_MODELS}
    assert len(together) == 7
    # The models answer alike: nothing is theirs, and everything else counts twice.
    assert together["model"]["sum_of_squares"] == together["readout × model"]["sum_of_squares"] == 0
    assert together["readout"]["sum_of_squares"] == 8 / 9
    assert together["readout"]["cells"] == 8


def test_models_together_share_the_settings_of_all(tmp_path: Path) -> None:
    paths = [*grid_files(tmp_path), write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}, model="k")]
    rows, notes = decomposed(tmp_path, paths, ["a", "b"])
    assert {row["scope"]: row["cells"] for row in rows} == {"m": 4, "k": 2, ALL_MODELS: 4}
    assert notes["levels"][ALL_MODELS] == {"readout": ["a", "b"], "model": ["m", "k"]}


def test_models_without_a_common_setting_are_not_put_together(tmp_path: Path) -> None:
    paths = [
        write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}),
        write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}, model="k", precision="nf4"),
    ]
    rows, _ = decomposed(tmp_path, paths, ["a", "b"])
    assert {row["scope"] for row in rows} == {"m", "k"}


def test_missing_cell_is_named(tmp_path: Path) -> None:
    paths = [
        write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}),
        write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}, precision="nf4"),
        write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}, template="u"),
    ]
    with pytest.raises(AuditError) as refused:
        decomposed(tmp_path, paths, ["a", "b"])
    assert str(refused.value) == (
        "variance components need every combination of the grid, and F1 on random (pope labels) of readout a, "
        "model m, precision nf4, template u, dataset d is missing or undefined; add that cell, or leave one of "
        "its levels out."
    )


def test_a_readout_without_f1_somewhere_is_left_out_and_named(tmp_path: Path) -> None:
    # Readout c is not there at all; d parses nothing at nf4, where its F1 is 0/0.
    paths = [
        write_cell(tmp_path, {"a": "yynn", "b": "ynnn", "d": "yynn"}),
        write_cell(tmp_path, {"a": "yynn", "b": "nnnn", "d": "uuuu"}, precision="nf4"),
    ]
    rows, notes = decomposed(tmp_path, paths, ["a", "b", "c", "d"])
    assert [row["sum_of_squares"] for row in rows] == [4 / 9, 1 / 9, 1 / 9]  # as without c and d
    assert notes["levels"]["m"]["readout"] == ["a", "b"]
    assert list(notes["left_out"]["m"]) == ["c", "d"]
    assert notes["left_out"]["m"]["d"].startswith("no F1 on random for d/m/nf4/")
    table = build(RunTables(Sources(variance=tmp_path / "variance.parquet"), Options(splits=("random",))))
    assert any(note.startswith("Left out of m: c (no F1 on random for") for note in table.notes)


def test_a_readout_that_one_model_lacks_stays_in_the_other_models_grid(tmp_path: Path) -> None:
    paths = [
        write_cell(tmp_path, {"a": "yynn", "b": "ynnn"}),
        write_cell(tmp_path, {"a": "yynn", "b": "uuuu"}, model="k"),
    ]
    rows, notes = decomposed(tmp_path, paths, ["a", "b"])
    assert {row["scope"]: row["cells"] for row in rows} == {"m": 2, ALL_MODELS: 2}
    assert notes["left_out"] == {
        "m": {},
        "k": {"b": notes["left_out"]["k"]["b"]},
        ALL_MODELS: notes["left_out"]["k"],
    }


def test_no_readout_with_f1_everywhere_is_refused(tmp_path: Path) -> None:
    unparsed = [write_cell(tmp_path, {"a": "uuuu"}), write_cell(tmp_path, {"a": "yynn"}, precision="nf4")]
    with pytest.raises(
        AuditError, match=r"no readout has an F1 in every cell of the grid \(a: no F1 on random"
    ):
        decomposed(tmp_path, unparsed, ["a"])
    with pytest.raises(AuditError, match="there are no decision files"):
        decomposed(tmp_path, [], ["a"])


def test_interval_of_two_images_by_hand(tmp_path: Path) -> None:
    """One factor takes the whole variance in every resample in which anything varies."""
    paths = [write_cell(tmp_path, {"a": "yynn"}), write_cell(tmp_path, {"a": "nyny"}, precision="nf4")]
    (row,), notes = decomposed(tmp_path, paths, ["a"], resamples=200)
    assert (row["factor"], row["share"], row["share_low"], row["share_high"]) == ("precision", 1.0, 1.0, 1.0)
    assert notes["bootstrap"]["resamples"] == 200


def test_intervals_lie_between_nothing_and_all(tmp_path: Path) -> None:
    rows, _ = decomposed(tmp_path, grid_files(tmp_path), ["a", "b"], resamples=200)
    ends = np.array([[row["share_low"], row["share_high"]] for row in rows])
    assert (ends[:, 0] <= ends[:, 1]).all() and (ends >= -1e-12).all() and (ends <= 1 + 1e-12).all()


def test_other_images_have_no_interval(tmp_path: Path) -> None:
    from scores.decision_files import CELL, row, write_decisions

    rows = [row("random", i, "yes", image=f"other {i % 2}.jpg", a="yes" if i else "no") for i in range(4)]
    other = write_decisions(tmp_path / "e.parquet", rows, cell=CELL | {"dataset": "e"})
    (one,), _ = decomposed(tmp_path, [write_cell(tmp_path, {"a": "yynn"}), other], ["a"], resamples=20)
    assert (one["factor"], one["share"], one["share_low"]) == ("dataset", 1.0, None)
