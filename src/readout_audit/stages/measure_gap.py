"""Stage: transitions between readouts, and the gap they make."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from readout_audit import contracts
from readout_audit.fileio import write_table
from readout_audit.gap.intervals import infer
from readout_audit.gap.table import gap_table, measure, only_pairing, steps, transitions_table
from readout_audit.scores.decisions import read_decisions
from readout_audit.scores.labels import label_sets


def run(
    decisions: Path,
    transitions_output: Path,
    gap_output: Path,
    pairs: Sequence[tuple[str, str]] | None = None,
    relabel: Mapping[str, Sequence[Path]] | None = None,
    resamples: int = 0,
    seed: int = 42,
) -> None:
    """Count the paired decisions of a file and write transitions and gap.

    Args:
        decisions: in the form of `contracts.decisions_schema`.
        transitions_output: written in the form of `contracts.TRANSITIONS`; without rows where the source does
            not pair its readouts and their two matrices allow several pairings.
        gap_output: written in the form of `contracts.GAP`.
        pairs: (from, to) readouts; None for all ordered pairs. A pair without data is named in the metadata.
        relabel: name of a further label set -> its question tables.
        resamples: bootstrap samples and permutations over images; 0 leaves intervals and that test out.
        seed: of these draws; with the seed of the scores, the resamples are theirs.

    Raises:
        AuditError: an input is missing or malformed, or a pair names an unknown readout.
    """
    rows = read_decisions(decisions)
    sets = label_sets(rows, relabel)
    counted = steps(rows, sets, pairs)
    measured = measure(rows, counted)
    notes = {
        "schema": 1,
        "cell": rows.cell,
        "joint": rows.joint,
        "labels": {label_set.name: label_set.describe() for label_set in sets},
        "not_available": rows.unavailable,
    }
    if rows.joint:
        inference = infer(rows, sets, counted, resamples, seed)
        measured = [
            (step, [*exact, *inferred])
            for (step, exact), inferred in zip(measured, inference.quantities, strict=True)
        ]
        notes["bootstrap"] = inference.note
    paired = counted if rows.joint else [step for one in counted if (step := only_pairing(one)) is not None]
    transitions = transitions_table(rows.cell, paired)
    write_table(transitions_output, transitions, contracts.TRANSITIONS, notes)
    write_table(gap_output, gap_table(rows.cell, measured), contracts.GAP, notes)
