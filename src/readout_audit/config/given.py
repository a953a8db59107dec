"""What a run with `records_from: files` is given: whether it answers all that the run asks."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from readout_audit.config.plan import Plan
from readout_audit.errors import AuditError


def missing_files(plan: Plan) -> list[Path]:
    """Return the record, signal and question files that the run names and that are not there."""
    return [path for path in (*_answers(plan), *_questions(plan)) if not path.is_file()]


def unanswered(plan: Plan) -> Iterator[str]:
    """Yield a sentence for every split that was never asked, and every file that answers a part of the questions."""
    splits = list(plan.config["splits"])
    for path in _questions(plan):
        asked = _columns(path, ["uid", "split"])
        there = asked["split"].unique().to_pylist()
        absent = [split for split in splits if split not in there]
        if absent:
            yield (
                f"splits names {', '.join(absent)}, but {path} has questions of {', '.join(there)} alone; name those "
                "splits, or take the files of a run that asked the others."
            )
            continue
        asked = asked.filter(pc.is_in(asked["split"], value_set=pa.array(splits)))
        yield from (
            sentence for answers in _answers(plan, path.stem) if (sentence := _incomplete(answers, asked))
        )


def _incomplete(path: Path, asked: pa.Table) -> str | None:
    """Return what a record or signals file leaves out of the questions asked; None where it has all."""
    answered = _columns(path, ["uid"])["uid"]
    missing = asked.filter(pc.invert(pc.is_in(asked["uid"], value_set=answered)))
    if not missing.num_rows:
        return None
    counts = pc.value_counts(missing["split"]).to_pylist()
    by_split = ", ".join(f"{one['values']}: {one['counts']}" for one in counts)
    return (
        f"{path} lacks {missing.num_rows} of the {asked.num_rows} questions of the splits that are named ({by_split}); name "
        "the splits that it answers, or take the files of a run that asked all."
    )


def _questions(plan: Plan) -> list[Path]:
    """Return the question tables, named by dataset."""
    return [Path(plan.records_folder(), "questions", f"{name}.parquet") for name in plan.config["datasets"]]


def _answers(plan: Plan, dataset: str | None = None) -> list[Path]:
    """Return the record and signals files, of one dataset or of all."""
    kinds = (("records", plan.cells), ("signals", plan.measured_cells))
    return [
        Path(plan.records_folder(), kind, f"{cell.path}.parquet")
        for kind, cells in kinds
        for cell in cells
        if dataset in (None, cell.dataset)
    ]


def _columns(path: Path, names: list[str]) -> pa.Table:
    """Read a few columns: this runs whenever the workflow is parsed.

    Raises:
        AuditError: they cannot be read.
    """
    try:
        return pq.read_table(path, columns=names).select(names)
    except (OSError, KeyError, pa.ArrowException) as error:
        raise AuditError(
            f"{path} is no Parquet file with the columns {' and '.join(names)} ({error}); copy it again."
        ) from error
