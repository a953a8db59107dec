"""Answers without a clear reading: ties, unparsed and invalid ones, and those that a quirk decided."""

from readout_audit.report import unanswered
from readout_audit.report.findings.base import Finding, Names, name_of
from readout_audit.report.grid import grid, numbers, texts
from readout_audit.report.inputs import CellKey, RunData


def unclear(data: RunData, names: Names) -> list[Finding]:
    """Return, by cell, ties, unparsed and invalid answers, and answers that a quirk of a rule decided."""
    findings = []
    for cell in data.cells:
        rows = [row for split in data.splits for row in _unclear_rows(data, cell, split)]
        quirks = _quirk_rows(data, cell)
        tables = []
        if rows:
            columns = (*texts("split", "readout"), *numbers("questions", "ties", "unparsed", "invalid"))
            notes = ("A tie is read as no; unparsed counts as wrong; invalid answers are in no rate.",)
            tables.append(grid(columns, rows, "", notes))
        if quirks:
            columns = (*texts("readout", "quirk", "split"), *numbers("answers"))
            tables.append(grid(columns, quirks, "Answers that a quirk of the rule decided"))
        without = unanswered.unanswered(data, cell)
        if without is not None and without.reasons:
            tables.append(unanswered.table(without))
        said = () if rows else ("No answer was unparsed or invalid, and no tie is known.",)
        findings.append(Finding("", name_of(names, cell), said, tuple(tables)))
    return findings


def _unclear_rows(data: RunData, cell: CellKey, split: str) -> list[list[str]]:
    """Return the readouts of one split that have such answers."""
    rows = []
    for (where, labels, of_split, readout), row in data.score_index.items():
        if (where, labels, of_split) != (cell, data.labels[0], split) or row.confusion is None:
            continue
        matrix, ties = row.confusion, row.values["ties"]
        unparsed = matrix.unparsed_pos + matrix.unparsed_neg
        invalid = matrix.invalid_pos + matrix.invalid_neg
        if ties or unparsed or invalid:
            tied = "no logits" if ties is None else f"{ties:,}"
            rows.append([split, readout, f"{matrix.n:,}", tied, f"{unparsed:,}", f"{invalid:,}"])
    return rows


def _quirk_rows(data: RunData, cell: CellKey) -> list[list[str]]:
    """Return the flags of a decision file that marked any answer."""
    decisions = data.decisions.get(cell)
    readouts = decisions.metadata.get("readouts", {}) if decisions is not None else {}
    return [
        [readout, flag, split, f"{count:,}"]
        for readout, described in readouts.items()
        for flag, by_split in (described.get("flags") or {}).items()
        for split, count in by_split.items()
        if count
    ]
