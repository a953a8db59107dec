"""Table 8 as published: which matrices its rows allow, and what this run's corrections make of each."""

from collections.abc import Mapping, Sequence
from typing import Any

from readout_audit.claims.finding import agrees
from readout_audit.claims.groups import fitting, grouped
from readout_audit.claims.numbers import Number, read_numbers, select
from readout_audit.consistency.search import Consistency
from readout_audit.corrections.registry import correction
from readout_audit.corrections.schema import FIXED, OK
from readout_audit.scores.confusion import Confusion
from readout_audit.tables.base import NOT_IDENTIFIABLE, NOT_RUN, Cell, Column, Table, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.measured import blocks
from readout_audit.tables.table_08_corrections import baseline_matrix, matrix_of

OURS: Mapping[str, tuple[tuple[str, float | None], ...]] = {
    "clip_b32_certainty_beta_1.0": (("clip_b32", 1.0), ("clip_b32_code", 1.0)),
    "clip_b32_certainty_beta_1.5": (("clip_b32", 1.5), ("clip_b32_code", 1.5)),
    "clip_l14_336_certainty": (("clip_l", 1.0),),
    "entropy": (("entropy", 1.0), ("entropy_code", 1.0)),
    "magnitude": (("magnitude", 1.0), ("magnitude_code", 1.0)),
    "cls_similarity": (("cls", 1.0), ("cls_code", 1.0)),
    "object_noun_clip": (("object_noun", 1.0), ("object_code", 1.0)),
    "uniform": (("uniform", 1.0),),
    "vcd_noise": (("vcd", 1.0), ("vcd_uniform_code", 1.0)),
}
"""Row of the published table -> the forms of it that can be run, as Appendix F.1 and as the code have it."""

METRICS = {"f1": "f1", "precision": "precision", "recall": "recall"}


def build(inputs: RunTables) -> Table:
    """Return every published row with the matrices that print as it, this run's scores and a verdict."""
    numbers = _published(inputs)
    measured = _measured(inputs)
    rows: list[tuple[Cell, ...]] = []
    blame: list[str] = []
    for members in grouped(numbers).values():
        name = members[0].quantity.partition(":")[0]
        verdict = fitting(members)
        if verdict is None:
            continue
        blame += [f"{name}: {verdict.blame}."] if not verdict.fits else []
        forms = OURS.get(name, ((name, None),))
        for method, strength in forms:
            found = measured.get((members[0].model, members[0].split, members[0].readout, method, strength))
            rows.append(
                (name, *_printed(members), matrices(verdict), method, *_ours(found, members, verdict, method))
            )
    return Table(
        number=8,
        name="table_08_published",
        title="The published rows against integer matrices and against this run",
        columns=(
            text_column("row"),
            *(Column(name, group="published") for name in ("F1", "P", "R")),
            text_column("matrices (TP, FP)"),
            text_column("run as"),
            *(Column(name, decimals=4, group="this run") for name in ("F1", "P", "R")),
            text_column("verdict"),
        ),
        rows=tuple(rows),
        n="1,500 questions of each label, adversarial",
        notes=(
            "matrices: integer matrices of 1,500 positives and 1,500 negatives that print as the row; where "
            "there is none, the row cannot come from one run of these questions.",
            *blame,
            "verdict: reproduced where this run prints the same, differs where the source leaves nothing open, "
            "not_identifiable where it does (Appendix F.1 gives no map to [0, 1] and no β for several).",
        ),
    )


def _published(inputs: RunTables) -> list[Number]:
    """Return the published numbers of Table 8."""
    if inputs.sources.claims is None:
        raise ValueError("this table needs the published numbers, and none were given")
    return select(read_numbers(inputs.sources.claims), kind="correction")


_Key = tuple[str, str, str, str, float | None]


def _measured(inputs: RunTables) -> dict[_Key, Confusion]:
    """Return this run's matrices by (model, split, readout, method, strength), the first cell of a model each."""
    found: dict[_Key, Confusion] = {}
    for block in blocks(inputs, "corrections"):
        if block.labels != inputs.options.labels[0]:
            continue
        for row in block.rows:
            if row["choice"] != FIXED or row["status"] != OK:
                continue
            about = (block.cell.model, block.split, block.readout)
            strength = None if row["strength"] != row["strength"] else float(row["strength"])
            found.setdefault((*about, row["method"], strength), matrix_of(row))
            found.setdefault((*about, "baseline", None), baseline_matrix(row))
    return found


def _printed(members: Sequence[Number]) -> tuple[str, ...]:
    """Return F1, precision and recall as printed."""
    texts = {number.quantity.partition(":")[2]: number.printed for number in members}
    return tuple(texts[name] for name in METRICS)


def matrices(verdict: Consistency) -> str:
    """Say which matrices print as a row: the only one, how many, or that there is none."""
    if not verdict.fits:
        return "none"
    only = verdict.matrices[0]
    return f"({only.tp}, {only.fp})" if verdict.count == 1 else f"{verdict.count}"


def _ours(
    found: Confusion | None, members: Sequence[Number], verdict: Consistency, method: str
) -> tuple[Cell, ...]:
    """Return this run's metrics and the verdict on one form of a row."""
    if found is None:
        word = NOT_RUN if verdict.fits else "inconsistent_in_paper"
        return (*(NOT_RUN,) * 3, word)
    values: dict[str, Any] = {name: getattr(found, attribute) for name, attribute in METRICS.items()}
    same = all(agrees(values[number.quantity.partition(":")[2]], number) for number in members)
    return (*values.values(), _verdict(same, verdict.fits, method))


def _verdict(same: bool, fits: bool, method: str) -> str:
    """Return the word for one form of a row."""
    if not fits:
        return "inconsistent_in_paper"
    if same:
        return "reproduced"
    settled = method == "baseline" or not correction(method).ours
    return "differs" if settled else NOT_IDENTIFIABLE
