"""Stage: printed integers -> a decision table that realises them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from readout_audit.claims.numbers import read_numbers
from readout_audit.contracts import readouts_of
from readout_audit.fileio import write_table
from readout_audit.sources.counts import (
    MARGINAL_SOURCE,
    PAIRED_SOURCE,
    SPLITS,
    is_paired,
    marginal_counts,
    marginal_decisions,
    paired_counts,
    paired_decisions,
    unidentified,
)
from readout_audit.sources.readouts import describe_readout


def run(
    paper_numbers: Path,
    model: str,
    output: Path,
    *,
    dataset: str = "coco-2023-10",
    precision: str = "nf4",
    template: str = "authors",
    splits: Sequence[str] = SPLITS,
) -> None:
    """Write the decisions of one model from the paper's printed counts.

    Where transitions are printed (Table 7: LLaVA-1.5) the readouts of a row belong together; for the other
    models each readout's matrix stands alone, and the metadata says `"joint": false`.

    Args:
        paper_numbers: resources/paper/numbers.csv.
        model: a model of Table 7 or Table 4.
        output: decision table; its metadata says what these rows can and cannot answer.
        dataset: release the counts are about.
        precision: precision of the cell.
        template: template of the cell.
        splits: the splits to make rows of.

    Raises:
        AuditError: no counts of this model on these splits are printed.
    """
    numbers = read_numbers(paper_numbers)
    joint = is_paired(numbers, model)
    if joint:
        table, why_not = paired_decisions(paired_counts(numbers, model, splits), dataset), dict[str, str]()
    else:
        marginals = marginal_counts(numbers, model, splits)
        table, why_not = marginal_decisions(marginals, dataset), unidentified(marginals)
    cell = {
        "dataset": dataset,
        "model": model,
        "precision": precision,
        "template": template,
        "source": "counts",
    }
    metadata = {"cell": cell, **_describe(table, model, why_not, joint=joint)}
    write_table(output, table, table.schema, metadata)


def _describe(table: pa.Table, model: str, why_not: dict[str, str], *, joint: bool) -> dict[str, Any]:
    """Return what the metadata of made decisions says."""
    source = PAIRED_SOURCE if joint else MARGINAL_SOURCE
    described = {name: describe_readout(name, source, model) for name in readouts_of(table)}
    for name, reason in why_not.items():
        described[name] |= {"available": False, "why_not": reason}
    first_tokens = "Table 1, where only its consistency with Table 7 is claimed" if joint else "not known"
    return {
        "readouts": described,
        "record_settings_id": None,
        "joint": joint,
        "first_tokens": first_tokens,
        "rows": "made to realise printed counts: no question, image or order behind a single row",
    }
