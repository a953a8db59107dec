"""Which cell of one run belongs to which of the other."""

from collections.abc import Sequence
from typing import NamedTuple

from readout_audit.errors import AuditError

PARTS = ("dataset", "model", "precision", "template")

AGREE_IN = (
    ("dataset", "model", "precision", "template"),
    ("dataset", "model", "template"),
    ("model", "precision", "template"),
    ("model", "template"),
    ("dataset", "model", "precision"),
    ("model",),
    (),
)
"""What two cells must share to be one pair, the strictest first. At every step only cells that are alone with their
values in both runs are paired, so that nothing is guessed; the last step pairs the only two left."""


class Matched(NamedTuple):
    """Pairs of cells as paths, and the cells that found no partner."""

    pairs: tuple[tuple[str, str], ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


def match_cells(first: Sequence[str], second: Sequence[str]) -> Matched:
    """Pair the cells of two runs, each "dataset/model/precision/template".

    Raises:
        AuditError: no cell of one run has a partner in the other.
    """
    rest_a, rest_b = list(first), list(second)
    pairs: list[tuple[str, str]] = []
    for names in AGREE_IN:
        found = _alone(rest_a, rest_b, names)
        pairs += found
        rest_a = [cell for cell in rest_a if cell not in {a for a, _ in found}]
        rest_b = [cell for cell in rest_b if cell not in {b for _, b in found}]
    if not pairs:
        raise AuditError(
            f"no cell of {', '.join(first)} belongs to one of {', '.join(second)} beyond doubt; "
            "name the two with --cells."
        )
    order = {cell: place for place, cell in enumerate(first)}
    return Matched(tuple(sorted(pairs, key=lambda pair: order[pair[0]])), tuple(rest_a), tuple(rest_b))


def _alone(first: Sequence[str], second: Sequence[str], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the cells that share the named parts with exactly one cell of the other run, and it with them."""
    keys_a, keys_b = ([_key(cell, names) for cell in cells] for cells in (first, second))
    return [
        (cell, second[keys_b.index(key)])
        for cell, key in zip(first, keys_a, strict=True)
        if keys_a.count(key) == 1 and keys_b.count(key) == 1
    ]


def _key(cell: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the named parts of a cell."""
    parts = dict(zip(PARTS, cell.split("/"), strict=True))
    return tuple(parts[name] for name in names)


def one_pair(names: tuple[str, str], first: Sequence[str], second: Sequence[str]) -> Matched:
    """Return the pair that the user named.

    Raises:
        AuditError: a run has no such cell.
    """
    for name, cells in zip(names, (first, second), strict=True):
        if name not in cells:
            raise AuditError(f"--cells: {name} is not there; the cells are {', '.join(cells)}.")
    return Matched((names,), (), ())
