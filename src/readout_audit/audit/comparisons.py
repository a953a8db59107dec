"""The same questions asked twice: under another precision, template, release, or of another model.

Every cell is compared with the reference cell of its model, which is the model's first in the order of the
run, and with every other model that was asked in the same way (does the ranking hold?).
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import pyarrow as pa

from readout_audit.audit.asked import Asked, Rows, match
from readout_audit.audit.schema import COMPARISONS, GAP, MODEL, REFERENCE
from readout_audit.errors import AuditError
from readout_audit.matrix.resampled import resampled_f1
from readout_audit.scores.bootstrap import Floats, percentile_intervals
from readout_audit.scores.confusion import NO, YES

FACTORS = ("dataset", "precision", "template")
"""What may vary between a cell and the reference cell of its model."""


class Pair(NamedTuple):
    """Two cells by their place in the run: the one looked at, its reference, and what differs."""

    cell: int
    reference: int
    varied: str


def wanted(cells: Sequence[Mapping[str, str]]) -> Iterator[Pair]:
    """Yield the pairs to compare: each cell with its model's first, then models asked alike.

    Args:
        cells: the fields of `contracts.CELL` of each, in the order of the run.
    """
    first: dict[tuple[str, str], int] = {}
    for index, cell in enumerate(cells):
        reference = first.setdefault((cell["model"], cell["source"]), index)
        differing = [name for name in FACTORS if cell[name] != cells[reference][name]]
        yield Pair(index, reference, " + ".join(differing) or REFERENCE)
    for reference, index in combinations(range(len(cells)), 2):
        alike = all(cells[index][name] == cells[reference][name] for name in (*FACTORS, "source"))
        if alike:
            yield Pair(index, reference, MODEL)


def compare_cells(
    cells: Sequence[Asked], gap_pair: tuple[str, str] | None, resamples: int, seed: int
) -> pa.Table:
    """Return every wanted comparison under `COMPARISONS`.

    Args:
        cells: of one run, with the same label sets.
        gap_pair: the readouts of the gap, (from, to); None leaves it out.
        resamples: bootstrap samples over images; 0 leaves the intervals empty.
        seed: of that draw, the scores'.

    Raises:
        AuditError: there is no cell.
    """
    if not cells:
        raise AuditError("settings audit: there are no decision files to compare.")
    pairs = list(wanted([cell.decisions.cell for cell in cells]))
    rows: list[dict[str, Any]] = []
    for labels in cells[0].label_sets:
        for split in dict.fromkeys(split for cell in cells for split in cell.decisions.splits):
            drawn = draw(cells, labels, split, resamples, seed)
            for pair in pairs:
                rows += _compare(cells, pair, (labels, split), gap_pair, drawn)
    return pa.Table.from_pylist(rows, schema=COMPARISONS)


def draw(
    cells: Sequence[Asked], labels: str, split: str, resamples: int, seed: int
) -> dict[tuple[int, str], Floats]:
    """Return (place of the cell, readout) -> shape (resamples,), F1 on resampled images.

    Cells with as many images get the same draw. It is a paired one only where the images are the same, which
    the caller has to check. Empty without resamples; cells with unknown images are left out.
    """
    by_size: dict[int, list[tuple[int, str]]] = {}
    for place, cell in enumerate(cells):
        if resamples and cell.images is not None:
            names = [name for name in cell.decisions.answers if cell.has(name, split)]
            by_size.setdefault(cell.images.n, []).extend((place, name) for name in names)
    drawn: dict[tuple[int, str], Floats] = {}
    for keys in by_size.values():
        f1 = resampled_f1(
            [cells[place].counted(labels, split, name) for place, name in keys], resamples, seed
        )
        drawn |= {key: f1[:, column] for column, key in enumerate(keys)}
    return drawn


def _compare(
    cells: Sequence[Asked],
    pair: Pair,
    where: tuple[str, str],
    gap_pair: tuple[str, str] | None,
    drawn: Mapping[tuple[int, str], Floats],
) -> Iterator[dict[str, Any]]:
    """Yield the rows of two cells on one split."""
    cell, reference = cells[pair.cell], cells[pair.reference]
    labels, split = where
    about = {
        **cell.decisions.cell,
        **{f"reference_{name}": reference.decisions.cell[name] for name in (MODEL, *FACTORS)},
        "varied": pair.varied,
        "labels": labels,
        "split": split,
    }
    shared = [name for name in cell.decisions.answers if cell.has(name, split) and reference.has(name, split)]
    matched = match(cell, reference, labels, split)
    paired = pair.varied != REFERENCE and cell.image_names == reference.image_names
    for name in shared:
        values = [one.confusion(labels, split, name).f1 for one in (cell, reference)]
        resampled = [drawn.get((place, name)) for place in (pair.cell, pair.reference)] if paired else []
        yield about | {"readout": name} | _changes(cell, reference, name, matched) | _delta(values, resampled)
    if gap_pair is not None and set(gap_pair) <= set(shared):
        values = [_gap(one, labels, split, gap_pair) for one in (cell, reference)]
        ends = [[drawn.get((place, name)) for name in gap_pair] for place in (pair.cell, pair.reference)]
        resampled = [_minus(*end) for end in ends] if paired else []
        yield about | {"readout": GAP} | _delta(values, resampled)


def _changes(
    cell: Asked, reference: Asked, readout: str, matched: tuple[Rows, Rows] | None
) -> dict[str, int | None]:
    """Return the counts of changed decisions and near-ties on the matched rows."""
    if matched is None:
        return {}
    here, there = matched
    now, before = cell.decisions.answers[readout][here], reference.decisions.answers[readout][there]
    changed = now != before
    near, near_before = cell.near.get(readout), reference.near.get(readout)
    close = None if near is None or near_before is None else near[here] | near_before[there]
    return {
        "n": len(here),
        "changed": int(changed.sum()),
        "no_to_yes": int(((before == NO) & (now == YES)).sum()),
        "yes_to_no": int(((before == YES) & (now == NO)).sum()),
        "near_ties": None if near is None else int(near[here].sum()),
        "changed_near_ties": None if close is None else int((changed & close).sum()),
    }


def _gap(cell: Asked, labels: str, split: str, gap_pair: tuple[str, str]) -> Fraction | None:
    """Return F1(from) − F1(to); None where one is undefined."""
    before, after = (cell.confusion(labels, split, name).f1 for name in gap_pair)
    return None if before is None or after is None else before - after


def _minus(first: Floats | None, second: Floats | None) -> Floats | None:
    """Return the difference of two resampled values, None where one was not drawn."""
    return None if first is None or second is None else first - second


def _delta(values: Sequence[Fraction | None], resampled: Sequence[Floats | None]) -> dict[str, float | None]:
    """Return both values, their exact difference, and its interval where both were drawn together."""
    here, there = values
    low = high = undefined = None
    if len(resampled) == 2 and (difference := _minus(*resampled)) is not None:
        low, high, undefined = percentile_intervals(difference[:, None])[0]
    return {
        "value": None if here is None else float(here),
        "reference_value": None if there is None else float(there),
        "delta": None if here is None or there is None else float(here - there),
        "delta_low": low,
        "delta_high": high,
        "delta_undefined": undefined,
    }


def describe(cells: Sequence[Asked], resamples: int, seed: int, within: int) -> dict[str, Any]:
    """Return what the metadata of a comparison says."""
    sizes = sorted({cell.images.n for cell in cells if cell.images is not None})
    return {
        "schema": 1,
        "bootstrap": {"unit": "image", "resamples": resamples, "seed": seed, "images": sizes},
        "near_tie_within_steps": within,
        "not_available": {
            cell.name: cell.decisions.unavailable for cell in cells if cell.decisions.unavailable
        },
        "without_near_ties": [cell.name for cell in cells if not cell.near],
    }
