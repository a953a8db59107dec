"""Stage: the attention probe of one cell (Appendix F.3), every layer window, and the excluded logits."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from readout_audit.corrections.evidence import Evidence, Files, read_files
from readout_audit.corrections.rows import Block, blocks
from readout_audit.fileio import write_table
from readout_audit.probe.answers import answers_of
from readout_audit.probe.clustered import draw
from readout_audit.probe.comparisons import Resampling, comparison_rows, group_rows
from readout_audit.probe.excluded import Excluded, excluded_rows, main_answers, measure_excluded
from readout_audit.probe.measure import Row, answer_rows, main_columns, window_rows
from readout_audit.probe.schema import COMPARISONS, EXCLUDED, GROUPS, PROBE, WINDOWS
from readout_audit.probe.statistics import RESAMPLES, SEED
from readout_audit.readouts.base import NotAvailableError
from readout_audit.scores.bootstrap import Images
from readout_audit.scores.decisions import Decisions, read_decisions
from readout_audit.scores.labels import label_sets

LOGGER = logging.getLogger(__name__)


class Outputs(NamedTuple):
    """The files the probe writes, each in the form of its schema in `probe.schema`."""

    probe: Path
    groups: Path
    comparisons: Path
    windows: Path
    excluded: Path


SCHEMAS = (PROBE, GROUPS, COMPARISONS, WINDOWS, EXCLUDED)


def run(
    records: Path,
    signals: Path | None,
    decisions: Path,
    outputs: Outputs,
    readouts: Sequence[str] = ("legacy_8tok",),
    excluded: str = "legacy_2tok",
    relabel: Mapping[str, Sequence[Path]] | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> None:
    """Measure one cell and write what is found.

    Args:
        records: record file of the cell.
        signals: signals file of the same answers; without it the gap is that of the records, and attention,
            similarity and layers are not available.
        decisions: the cell's decisions; splits, labels and images are taken from them.
        outputs: the files to write.
        readouts: whose sets make gap and answer; one this model has no ids for is named in the metadata.
        excluded: the readout whose ids are measured as excluded ones.
        relabel: name of a further label set -> its question tables.
        resamples: of both bootstraps; 0 leaves the intervals out.
        seed: of both.

    Raises:
        AuditError: an input is missing or malformed, or they do not belong together.
    """
    files = read_files(records, signals)
    rows = read_decisions(decisions)
    sets = label_sets(rows, relabel)
    missing: dict[str, str] = {}
    of_excluded = _under(files, excluded, missing)
    held = measure_excluded(of_excluded) if of_excluded is not None else None
    evidence = {name: _under(files, name, missing) for name in dict.fromkeys(readouts)}
    found: list[tuple[list[Row], ...]] = []
    for block in blocks(rows, sets, files):
        # One draw of images for all readouts and comparisons of a block.
        resampling = Resampling(
            resamples, seed, draw(Images(block.rows.image, block.rows.images.n), resamples, seed)
        )
        for readout, one in evidence.items():
            if one is None:
                continue
            leading = {**rows.cell, "labels": block.labels, "split": block.split, "readout": readout}
            try:
                tables = _measure(one, rows, block, held, resampling)
            except NotAvailableError as error:
                missing[f"{readout}, {block.split}"] = str(error)
                continue
            found.append(tuple([leading | {"excluded": excluded} | row for row in table] for table in tables))
            LOGGER.info("%s, labels %s, %s: %d answers", block.split, block.labels, readout, len(tables[0]))
    notes = {
        "schema": 1,
        "cell": rows.cell,
        "record_settings_id": files.record_meta.get("settings_id"),
        "signal_settings": files.signal_meta.get("settings"),
        "attention_window": files.signal_meta.get("settings", {}).get("authors_window"),
        "labels": {label_set.name: label_set.describe() for label_set in sets},
        "not_available": missing,
        "excluded": {"readout": excluded, "ids": of_excluded.sets._asdict() if of_excluded else None},
        "bootstrap": {"resamples": resamples, "seed": seed},
    }
    write(outputs, found, notes)


def write(outputs: Outputs, found: Sequence[Sequence[Sequence[Row]]], notes: Mapping[str, Any]) -> None:
    """Write the tables of the probe; a column that a row does not have is null.

    Args:
        outputs: the files, in the order of `SCHEMAS`.
        found: per block, the rows of each table; a table keeps the columns of its schema.
        notes: metadata of every file.
    """
    for index, (path, schema) in enumerate(zip(outputs, SCHEMAS, strict=True)):
        names = set(schema.names)
        rows = [{key: row[key] for key in names & row.keys()} for tables in found for row in tables[index]]
        write_table(path, pa.Table.from_pylist(rows, schema=schema), schema, dict(notes))


def _under(files: Files, readout: str, missing: dict[str, str]) -> Evidence | None:
    """Return the evidence under a readout, or note why there is none."""
    try:
        return files.under(readout)
    except NotAvailableError as error:
        missing[readout] = str(error)
        LOGGER.info("%s: %s", readout, error)
        return None


def _measure(
    evidence: Evidence, decisions: Decisions, block: Block, held: Excluded | None, resampling: Resampling
) -> tuple[list[Row], ...]:
    """Return the rows of all tables for one block, in the order of `Outputs`."""
    answers, kept, of_pass = answers_of(evidence, block)
    weights = resampling.weights
    questions = block.rows.question[kept]
    places = pa.array(block.indices[kept])
    ids, names = (decisions.identity[name].take(places).to_pylist() for name in ("question_id", "image"))
    mains = main_columns(evidence.gap[questions], held.take(questions) if held is not None else None)
    single = [row | main for row, main in zip(answer_rows(answers, ids, names, of_pass), mains, strict=True)]
    of_rows = None if weights is None else weights._replace(image=weights.image[kept])
    excluded: list[Row] = []
    if held is not None:
        in_main = main_answers(evidence, block)
        excluded = list(excluded_rows(in_main, held.take(block.rows.question), weights))
    return (
        single,
        list(group_rows(answers, of_rows)),
        list(comparison_rows(answers, Resampling(resampling.resamples, resampling.seed, of_rows))),
        window_rows(evidence, answers, questions, of_rows),
        excluded,
    )
