"""Table 9 as published, each number beside this run's own mean (paper, Appendix F.3)."""

from collections.abc import Mapping
from typing import Any

from readout_audit.claims.evidence import RELEASE, TEMPLATE
from readout_audit.claims.finding import agrees
from readout_audit.claims.numbers import Number, read_numbers, select
from readout_audit.corrections.published import DIFFERS, REPRODUCED
from readout_audit.exact import printed
from readout_audit.probe.answers import ATTENTION_WINDOW
from readout_audit.probe.claimed import SIGNALS
from readout_audit.tables.base import NOT_AVAILABLE, NOT_RUN, Cell, Column, Table, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.measured import blocks, number
from readout_audit.tables.table_09_group_means import TITLES, group_title

SHOWN = ("n", "mean", "sd")

PAPERS_WINDOW = "attention, positions 1 to 576"
"""What the paper's numbers rest on (Appendix F.3, and the script behind it)."""

Groups = Mapping[tuple[str, str], Mapping[Any, Any]]


def build(inputs: RunTables) -> Table:
    """Return every published row with n, mean and SD as printed and as this run measured them."""
    published = _published(inputs)
    model = next(iter(next(iter(published.values())).values())).model
    groups = _measured(inputs, model)
    rows: list[tuple[Cell, ...]] = []
    for (name, group), numbers in published.items():
        signal = SIGNALS[name]
        row = groups.get((signal, group))
        ours, verdict = _ours(numbers, row)
        printed_cells = tuple(numbers[what].printed for what in SHOWN)
        title = PAPERS_WINDOW if signal == ATTENTION_WINDOW else TITLES[signal]
        rows.append((title, group_title(group), *printed_cells, *ours, verdict))
    return Table(
        number=9,
        name="table_09_published",
        title="Group means of the attention probe: as published, and as measured here",
        columns=(
            text_column("signal"),
            text_column("group"),
            *(Column(name, group="published") for name in ("n", "mean", "SD")),
            *(Column(name, group="this run") for name in ("n", "mean", "SD")),
            text_column("verdict"),
        ),
        rows=tuple(rows),
        n="3,000 adversarial questions, one instrumented pass",
        notes=(
            "The published pass is separate from the paper's main run and answers two questions otherwise.",
            "Verdict: reproduced where n, mean and SD of this run print as published. Logits of another card or "
            "batch move means in the last digit, so differs is no contradiction of the finding itself.",
        ),
    )


def _published(inputs: RunTables) -> dict[tuple[str, str], dict[str, Number]]:
    """Return (signal, group) -> n, mean and SD of the paper's Table 9, in its order."""
    if inputs.sources.claims is None:
        raise ValueError("this table needs the published numbers, and none were given")
    found: dict[tuple[str, str], dict[str, Number]] = {}
    for one in select(read_numbers(inputs.sources.claims), section="Table 9"):
        _, signal, group, what = one.id.split(".")
        found.setdefault((signal, group), {})[what] = one
    return found


def _measured(inputs: RunTables, model: str) -> Groups:
    """Return the groups of the paper's model and split by (signal, group); empty where nothing was probed."""
    for block in blocks(inputs, "probe_groups"):
        cell = block.cell
        about = (cell.dataset, cell.model, cell.template, block.split)
        if about == (RELEASE, model, TEMPLATE, "adversarial"):
            return {(row["signal"], row["group"]): row for row in block.rows}
    return {}


def _ours(numbers: Mapping[str, Number], row: Mapping[Any, Any] | None) -> tuple[tuple[Cell, ...], str]:
    """Return this run's n, mean and SD as the paper prints them, and the verdict."""
    if row is None:
        return (NOT_RUN,) * 3, NOT_RUN
    values = {"n": number(row["n"]), "mean": number(row["mean"]), "sd": number(row["sd"])}
    cells = tuple(
        NOT_AVAILABLE if value is None else printed(value, numbers[name].decimals or 0)
        for name, value in values.items()
    )
    if None in values.values():
        return cells, NOT_AVAILABLE
    same = all(agrees(value, numbers[name]) for name, value in values.items())
    return cells, REPRODUCED if same else DIFFERS
