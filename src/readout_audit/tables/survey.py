"""Tables 3 and 12: what papers report as their gain, as printed, beside the readout gap of this run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from readout_audit.claims.numbers import read_numbers
from readout_audit.errors import AuditError
from readout_audit.tables.base import NOT_AVAILABLE, Cell
from readout_audit.tables.inputs import RunTables

KINDS = ("survey", "survey_gain")
PARTS = ("baseline", "result", "gain")
NOT_STATED = "not stated"
OURS = "this run"

_PAPER = re.compile(r" of (?P<paper>.+?) \(arXiv (?P<arxiv>[0-9.]+)\)")


@dataclass(frozen=True)
class Surveyed:
    """One row of the survey.

    Attributes:
        paper, arxiv, split, readout: what was surveyed.
        printed: part -> F1 × 100 (or a difference of two) as the surveyed paper prints it.
    """

    paper: str
    arxiv: str
    split: str
    readout: str
    printed: Mapping[str, Fraction]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The row as both tables have it."""
        numbers = (self.printed[part] for part in PARTS)
        return (self.paper, self.arxiv, self.split, self.readout, *numbers)


def read_survey(claims: Path | None) -> list[Surveyed]:
    """Read the survey from the published numbers, in their order; empty where there are none.

    Raises:
        AuditError: a row lacks its paper or one of its three numbers.
    """
    if claims is None:
        return []
    found: dict[tuple[str, str, str, str], dict[str, Fraction]] = {}
    for number in read_numbers(claims):
        if number.kind not in KINDS:
            continue
        named = _PAPER.search(number.claim)
        if named is None:
            raise AuditError(f"{claims}: {number.id} does not name its paper, as in 'of A et al. (arXiv 1)'.")
        key = (named["paper"], named["arxiv"], number.split, number.readout or NOT_STATED)
        found.setdefault(key, {})[number.quantity] = Fraction(number.printed)
    for key, printed in found.items():
        if sorted(printed) != sorted(PARTS):
            raise AuditError(f"{claims}: the survey row {' / '.join(key)} must have {', '.join(PARTS)}.")
    return [Surveyed(*key, printed) for key, printed in found.items()]


def own_rows(inputs: RunTables, split: str) -> list[tuple[Cell, ...]]:
    """Return the gap of every cell on a split, laid out as if the readout alone were a method.

    The baseline is `readout_to`, the result `readout_from`; both F1 × 100.
    """
    options = inputs.options
    rows: list[tuple[Cell, ...]] = []
    for cell, labels, one in inputs.scored_splits():
        if one != split or labels != options.labels[0]:
            continue
        to = inputs.confusion(cell, labels, split, options.readout_to)
        emitted = inputs.confusion(cell, labels, split, options.readout_from)
        numbers: tuple[Cell, ...] = (NOT_AVAILABLE,) * len(PARTS)
        if to is not None and emitted is not None:
            before, after = _points(to.f1), _points(emitted.f1)
            gain = None if before is None or after is None else after - before
            numbers = (before, after, gain)
        about = f"{OURS}: {cell.model}, {cell.precision}, {cell.template}"
        readouts = f"{options.readout_to} → {options.readout_from}"
        rows.append((about, cell.source, split, readouts, *numbers))
    return rows


def _points(f1: Fraction | None) -> Fraction | None:
    """Return an F1 in points."""
    return None if f1 is None else 100 * f1
