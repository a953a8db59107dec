"""What a run is going to ask, said before its first job: questions, pictures, weights, disk.

Only what files at hand tell is said; what is not fetched or made yet is named as not known.
"""

from collections.abc import Iterable
from contextlib import suppress
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
    cells = list(dict.fromkeys(asked_cell(plan, output) for rule, output in due if rule == "ask_model"))
    if not cells:
        return []
    lines, total = [], 0
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        models = [cell for cell in cells if cell.dataset == dataset]
        asked = counted(plan, dataset)
        if asked is None:
            lines.append(f"{dataset}: its questions are not here yet; each job counts them before it asks.")
            continue
        total += asked.questions * len(models)
        lines.append(
            f"{dataset}: {asked.questions:,} distinct questions about {asked.pictures:,} pictures, asked in "
            f"{len(models)} {'cell' if len(models) == 1 else 'cells'}."
        )
    for model, precision in dict.fromkeys((cell.model, cell.precision) for cell in cells):
        lines.append(f"{model} in {precision}: {weights(plan, model, precision)}.")
    if total:
        lines.append(
            f"In all at most {total:,} answers, about {answer_bytes(total) / 1e6:.1f} MB on disk; those kept from "
            f"earlier are not asked again."
        )
    lines.append("Each job counts tokens and estimates its whole memory on the real prompts before it asks.")
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


def weights(plan: Wiring, model: str, precision: str) -> str:
    """Return how many parameters a model has and what they take once loaded."""
    folder = Path(plan.checkpoint(model))
    # A fetched checkpoint is whole once its manifest stands beside it.
    whole = folder.parent != Path(FETCHED, "models") or folder.with_name(f"{model}.json").is_file()
    parameters = needed = 0
    if whole:
        with suppress(AuditError):  # the job that loads a damaged file says so
            parameters, needed = expected_bytes(folder, precision, plan.config["inference"]["compute_dtype"])
    if not parameters:
        return "its weights are not here yet, so what they take is not known"
    return f"{parameters / 1e6:,.1f} million parameters, about {size(needed)} of memory for the weights"
