"""Every readout of a model beside every other: scores, and how many questions two of them read differently."""

from typing import NamedTuple

from readout_audit import fileio
from readout_audit.matrix.schema import READOUT_PAIRS
from readout_audit.tables.base import NOT_AVAILABLE, NOT_RUN, Cell, Column, Table, n_text, text_column
from readout_audit.tables.common import IDENTITY, answer_notes, identity_cells
from readout_audit.tables.inputs import CellKey, RunTables, SplitKey
from readout_audit.tables.readout_scores import Scored, scored

SELF = "–"
"""Stands where a readout meets itself."""


class Differing(NamedTuple):
    """Questions that two readouts read differently, of how many."""

    questions: int
    of: int


Disagreements = dict[tuple[SplitKey, str, str], Differing]


def disagreements(inputs: RunTables) -> Disagreements:
    """Return (split, readout, readout) -> how many questions they read differently, each pair both ways round."""
    found: Disagreements = {}
    for path in inputs.sources.readout_pairs:
        for row in fileio.read_table(path, READOUT_PAIRS, "the pairs of readouts").to_pylist():
            cell = CellKey(*(row[name] for name in CellKey._fields))
            key = (cell, row["labels"], row["split"])
            for one, other in ((row["first"], row["second"]), (row["second"], row["first"])):
                found[key, one, other] = Differing(row["disagree"], row["n"])
    return found


def build(inputs: RunTables) -> Table:
    """Return one row per readout of each split: F1, yes-rate, unparsed, and a column per other readout."""
    found, differ = scored(inputs), disagreements(inputs)
    readouts = list(dict.fromkeys(name for by_readout in found.values() for name in by_readout))
    rows: list[tuple[Cell, ...]] = []
    for key, by_readout in found.items():
        for readout, one in by_readout.items():
            others = [_differing(differ, one, other, by_readout) for other in readouts]
            rows.append((*identity_cells(key[0], key[1]), key[2], readout, *_score_cells(one), *others))
    confusions = [one.confusion for by_readout in found.values() for one in by_readout.values()]
    return Table(
        number=None,
        name="table_readout_matrix",
        title="Readout matrix: scores, and questions that two readouts read differently",
        columns=(
            *IDENTITY,
            text_column("split"),
            text_column("readout"),
            Column("n"),
            Column("F1", decimals=4),
            Column("F1 95%", decimals=4),
            Column("yes-rate", decimals=4),
            Column("unparsed"),
            *(Column(name, group="read differently by") for name in readouts),
        ),
        rows=tuple(rows),
        n=n_text([confusion.n for confusion in confusions], "questions per split"),
        notes=(
            "Read differently: the two decisions are not the same word of yes, no, unparsed and invalid.",
            "F1 95%: images resampled, each with all its questions.",
            *answer_notes(confusions),
        ),
    )


def _score_cells(one: Scored) -> tuple[Cell, ...]:
    """Return n, F1, its interval, yes-rate and unparsed answers."""
    confusion = one.confusion
    unparsed = confusion.unparsed_pos + confusion.unparsed_neg
    return (confusion.n, confusion.f1, one.interval, confusion.yes_rate, unparsed)


def _differing(differ: Disagreements, one: Scored, other: str, present: dict[str, Scored]) -> Cell:
    """Return the count of a pair: a word where the other was not read, or the rows are not paired."""
    if other == one.readout:
        return SELF
    if other not in present:
        return NOT_RUN
    differing = differ.get((one.key, one.readout, other))
    return NOT_AVAILABLE if differing is None else differing.questions
