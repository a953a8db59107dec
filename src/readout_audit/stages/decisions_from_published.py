"""Stage: the authors' published per-question files -> a decision table."""

from collections.abc import Mapping
from pathlib import Path

from readout_audit.contracts import QUESTIONS, decisions_schema, readouts_of
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table, sha256_file, write_table
from readout_audit.sources.published import join_published, read_published
from readout_audit.sources.readouts import describe_readout


def run(
    files: Mapping[str, Path],
    questions: Path,
    output: Path,
    *,
    model: str = "llava-1.5-7b",
    dataset: str = "coco-2023-10",
    precision: str = "nf4",
    template: str = "authors",
) -> None:
    """Write the decisions of one model from its published files.

    Args:
        files: split -> published file.
        questions: question table of the release they were made on.
        output: decision table; its metadata counts the rows and names the files' hashes.
        model: model of the cell.
        dataset: release of the cell.
        precision: precision of the cell.
        template: template of the cell.

    Raises:
        AuditError: a file cannot be used, or belongs to another release.
    """
    splits = {split: read_published(files[split]) for split in sorted(files)}
    asked = read_table(questions, QUESTIONS, "the question table")
    if set(asked["dataset"].to_pylist()) != {dataset}:
        raise AuditError(
            f"{questions}: not the questions of {dataset}, which the published decisions answer."
        )
    table = join_published(splits, asked)
    readouts = readouts_of(table)
    expected = asked["split"].to_pylist()
    metadata = {
        "cell": {
            "dataset": dataset,
            "model": model,
            "precision": precision,
            "template": template,
            "source": "published",
        },
        "readouts": {
            name: describe_readout(name, "the authors' published records", model) for name in readouts
        },
        "record_settings_id": None,
        "joint": True,
        "files": {
            split: {"name": files[split].name, "sha256": sha256_file(files[split])} for split in splits
        },
        "rows": {split: len(rows) for split, rows in splits.items()},
        "question_ids": {split: sorted({row.id_form for row in rows}) for split, rows in splits.items()},
        "questions_without_a_record": {
            split: expected.count(split) - len(rows) for split, rows in splits.items()
        },
    }
    write_table(output, table, decisions_schema(readouts), metadata)
