"""Stage: corrections of one cell, their sweep, and what their signals know about wrong answers."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from readout_audit.corrections.compare import Settings, compare
from readout_audit.corrections.correctness import correctness
from readout_audit.corrections.evidence import Evidence, Files, read_files
from readout_audit.corrections.registry import CORRECTIONS as METHODS
from readout_audit.corrections.registry import VALUES, correction, value
from readout_audit.corrections.rows import blocks
from readout_audit.corrections.schema import CORRECTIONS, CORRECTNESS, SWEEPS
from readout_audit.corrections.tallies import STEPS, STOP, sweep_strengths
from readout_audit.fileio import write_table
from readout_audit.readouts.base import NotAvailableError, valid_rows
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.labels import label_sets

LOGGER = logging.getLogger(__name__)

Row = dict[str, Any]


def run(
    records: Path,
    signals: Path,
    decisions: Path,
    corrections_output: Path,
    sweeps_output: Path,
    correctness_output: Path,
    readouts: Sequence[str] = ("legacy_8tok",),
    methods: Sequence[str] | None = None,
    relabel: Mapping[str, Sequence[Path]] | None = None,
    resamples: int = 0,
    seed: int = 42,
    folds: int = 5,
    stop: float = STOP,
    steps: int = STEPS,
) -> None:
    """Apply corrections to one cell and write what they do.

    Args:
        records: record file of the cell.
        signals: signals file of the same answers.
        decisions: the cell's decisions; splits, labels and images are taken from them.
        corrections_output: written in the form of `corrections.schema.CORRECTIONS`.
        sweeps_output: in the form of `corrections.schema.SWEEPS`.
        correctness_output: in the form of `corrections.schema.CORRECTNESS`.
        readouts: whose largest yes and no logits are corrected; one this model has no ids for is named in the
            metadata.
        methods: names of corrections; None for all.
        relabel: name of a further label set -> its question tables.
        resamples: bootstrap samples over images; 0 leaves the intervals of the corrections out.
        seed: of the draw (that of the scores) and of the folds.
        folds: parts of the images for cross-fitting and cross-validation.
        stop: the largest strength of the sweep, which starts at 0.
        steps: strengths in the sweep.

    Raises:
        AuditError: an input is missing or malformed, or they do not belong together.
    """
    files = read_files(records, signals)
    rows = read_decisions(decisions)
    sets = label_sets(rows, relabel)
    chosen = [correction(name) for name in (METHODS if methods is None else methods)]
    asked = [value(name) for name in VALUES]
    settings = Settings(sweep_strengths(stop, steps), resamples, seed, folds)
    corrected: list[Row] = []
    swept: list[Row] = []
    known: list[Row] = []
    evidence, missing = _under(files, readouts)
    for block in blocks(rows, sets, files):
        for readout, one in evidence.items():
            leading = {**rows.cell, "labels": block.labels, "split": block.split, "readout": readout}
            outcomes = list(compare(one, block, chosen, settings))
            corrected += [leading | scored.columns for outcome in outcomes for scored in outcome.scored]
            swept += [leading | step for outcome in outcomes for step in outcome.sweep]
            known += [leading | row for row in correctness(one, block, asked, folds, seed)]
            LOGGER.info("%s, labels %s, %s: %d rows", block.split, block.labels, readout, len(block.indices))
    notes = {
        "schema": 1,
        "cell": rows.cell,
        "record_settings_id": files.record_meta.get("settings_id"),
        "signal_settings": files.signal_meta.get("settings"),
        "labels": {label_set.name: label_set.describe() for label_set in sets},
        "not_available": missing,
        "invalid_records": int((~valid_rows(files.records)).sum()),
        "bootstrap": {"unit": "image", "resamples": resamples, "seed": seed, "folds": folds},
        "sweep": {"stop": stop, "steps": steps},
    }
    _write(corrections_output, corrected, CORRECTIONS, notes)
    _write(sweeps_output, swept, SWEEPS, notes)
    _write(correctness_output, known, CORRECTNESS, notes)


def _under(files: Files, readouts: Sequence[str]) -> tuple[dict[str, Evidence], dict[str, str]]:
    """Return the evidence under each readout, and why a readout has none."""
    evidence, missing = {}, {}
    for readout in dict.fromkeys(readouts):
        try:
            evidence[readout] = files.under(readout)
        except NotAvailableError as error:
            missing[readout] = str(error)
            LOGGER.info("%s: %s", readout, error)
    return evidence, missing


def _write(path: Path, rows: list[Row], schema: pa.Schema, notes: dict[str, Any]) -> None:
    """Write rows under a schema; a column that a row does not have is null."""
    write_table(path, pa.Table.from_pylist(rows, schema=schema), schema, notes)
