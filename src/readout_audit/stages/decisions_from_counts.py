"""Stage: printed integers -> a decision table that realises them."""

from pathlib import Path

from readout_audit.claims.numbers import read_numbers
from readout_audit.contracts import decisions_schema
from readout_audit.fileio import write_table
from readout_audit.sources.counts import PAIR, paired_counts, paired_decisions
from readout_audit.sources.readouts import describe_readout


def run(
    paper_numbers: Path,
    model: str,
    output: Path,
    *,
    dataset: str = "coco-2023-10",
    precision: str = "nf4",
    template: str = "authors",
) -> None:
    """Write the decisions of one model from the paper's printed counts.

    Args:
        paper_numbers: resources/paper/numbers.csv.
        model: a model whose transitions are printed (Table 7: llava-1.5-7b).
        output: decision table; its metadata says what these rows can and cannot answer.
        dataset: release the counts are about.
        precision: precision of the cell.
        template: template of the cell.

    Raises:
        AuditError: no counts of this model are printed.
    """
    table = paired_decisions(paired_counts(read_numbers(paper_numbers), model), dataset)
    readouts = sorted(PAIR)
    source = "the paper's Table 7 (printed counts)"
    metadata = {
        "cell": {
            "dataset": dataset,
            "model": model,
            "precision": precision,
            "template": template,
            "source": "counts",
        },
        "readouts": {name: describe_readout(name, source, model) for name in readouts},
        "record_settings_id": None,
        "joint": True,
        "first_tokens": "Table 1, where only its consistency with Table 7 is claimed",
        "rows": "made to realise printed counts: no question, image or order behind a single row",
    }
    write_table(output, table, decisions_schema(readouts), metadata)
