"""What a run is going to ask, said before its first job: questions, pictures, weights, disk.

Only what files at hand tell is said; what is not fetched or made yet is named as not known.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pyarrow.parquet as pq

from readout_audit.config.plan import Cell
from readout_audit.config.wiring import Wiring
from readout_audit.config.wiring.paths import FETCHED
from readout_audit.datasets.parse import read_questions
from readout_audit.errors import AuditError
from readout_audit.inference.sizes import answer_bytes, expected_bytes, size


class Asked(NamedTuple):
    """How much one dataset asks of a model."""

    questions: int
    pictures: int


def forecast(plan: Wiring, due: Iterable[tuple[str, str]]) -> list[str]:
    """Return what the due jobs are going to ask of local models, in lines for people; nothing if there are none.

    Args:
        plan: the checked plan.
        due: (rule, first output) of every due job.
    """
    shards = {asked_cell(plan, output) for rule, output in due if rule == "ask_model"}
    cells = [cell for cell in plan.cells if cell in shards]
    if not cells:
        return []
    asked = {dataset: counted(plan, dataset) for dataset in dict.fromkeys(cell.dataset for cell in cells)}
    answers = sum(known.questions for cell in cells if (known := asked[cell.dataset]) is not None)
    lines = [question_line(dataset, known, cells) for dataset, known in asked.items()]
    lines += weight_lines(plan, cells)
    if answers:
        lines.append(
            f"In all at most {answers:,} answers, about {answer_bytes(answers) / 1e6:.1f} MB on disk; those kept from "
            f"earlier are not asked again."
        )
    return [
        *lines,
        "Each job counts tokens and estimates its whole memory on the real prompts before it asks.",
    ]


def question_line(dataset: str, asked: Asked | None, cells: Sequence[Cell]) -> str:
    """Return how much a dataset asks, and in how many cells."""
    if asked is None:
        return f"{dataset}: its questions are not here yet; each job counts them before it asks."
    count = sum(cell.dataset == dataset for cell in cells)
    return (
        f"{dataset}: {asked.questions:,} distinct questions about {asked.pictures:,} pictures, asked in "
        f"{count} {'cell' if count == 1 else 'cells'}."
    )


def weight_lines(plan: Wiring, cells: Sequence[Cell]) -> list[str]:
    """Return what the weights of each model take once loaded, and which models are not here yet."""
    lines, absent = [], []
    for model, precision in dict.fromkeys((cell.model, cell.precision) for cell in cells):
        found = weights(plan, model, precision)
        if found is None:
            absent.append(model)
            continue
        parameters, needed = found
        lines.append(
            f"{model} in {precision}: {parameters / 1e6:,.1f} million parameters, about {size(needed)} of memory."
        )
    if absent:
        names = ", ".join(dict.fromkeys(absent))
        lines.append(f"Not here yet, so that what their weights take is not known: {names}.")
    return lines


def asked_cell(plan: Wiring, output: str) -> Cell:
    """Return the cell that a shard file belongs to."""
    return Cell(*Path(output).relative_to(f"results/{plan.run}/shards").parts[:4])


def counted(plan: Wiring, dataset: str) -> Asked | None:
    """Count a dataset's distinct questions, from its table or its files; None where neither is there."""
    table = Path(f"results/{plan.run}/questions/{dataset}.parquet")
    files = [Path(file) for file in plan.question_files(SimpleNamespace(dataset=dataset))]
    try:
        if table.is_file():
            columns = pq.read_table(table, columns=["image", "question"])
            pairs = set(zip(*(columns[name].to_pylist() for name in columns.column_names), strict=True))
        elif files and all(file.is_file() for file in files):
            pairs = {(row.image, row.question) for file in files for row in read_questions(file).rows}
        else:
            return None
    except (AuditError, OSError, ValueError):
        return None  # the job that reads it says what is wrong with it
    return Asked(len(pairs), len({image for image, _ in pairs}))


def weights(plan: Wiring, model: str, precision: str) -> tuple[int, int] | None:
    """Return how many parameters a model has and the bytes they take once loaded; None where it is not here."""
    folder = Path(plan.checkpoint(model))
    # A fetched checkpoint is whole once its manifest stands beside it.
    if folder.parent == Path(FETCHED, "models") and not folder.with_name(f"{model}.json").is_file():
        return None
    try:
        found = expected_bytes(folder, precision, plan.config["inference"]["compute_dtype"])
    except AuditError:
        return None  # the job that loads it says what is wrong with it
    return found if found[0] else None
