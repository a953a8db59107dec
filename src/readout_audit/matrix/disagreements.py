"""The questions on which readouts of the same answer say different things."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from readout_audit.contracts import INVALID, LABELS, NO, UNPARSED, YES
from readout_audit.matrix.schema import listing_schema
from readout_audit.scores.confusion import ABSENT, Codes
from readout_audit.scores.decisions import Decisions


def differing(answers: Iterable[Codes], n: int) -> npt.NDArray[np.bool_]:
    """Return shape (n,), whether two readouts say different words of a row; `ABSENT` says nothing.

    Args:
        answers: any number of readouts, shape (n,) each.
        n: number of rows.
    """
    seen, differ = np.full(n, ABSENT, dtype=np.int8), np.zeros(n, dtype=bool)
    for codes in answers:
        differ |= (codes != ABSENT) & (seen != ABSENT) & (codes != seen)
        seen = np.where(seen == ABSENT, codes, seen)
    return differ


def list_disagreements(table: pa.Table, decisions: Decisions) -> pa.Table:
    """Return the rows on which the readouts do not all agree, in the file's order.

    A source that does not pair its readouts (`joint: false`) has no such rows: which of its decisions belong to
    one answer is not known.

    Args:
        table: the decision file's rows.
        decisions: the same, coded.

    Returns:
        rows under `listing_schema`, for the readouts that the source has.
    """
    schema = listing_schema(list(decisions.answers))
    differ = differing(decisions.answers.values(), table.num_rows)
    rows = np.flatnonzero(differ if decisions.joint else np.zeros_like(differ))
    return table.select(schema.names).take(pa.array(rows)).replace_schema_metadata(None).cast(schema)


@dataclass
class Pattern:
    """Questions on which the readouts differ in the same way.

    Attributes:
        said: decision -> the readouts that made it, in the file's order.
        by_label: label -> questions.
        example: the first of them, as a row of the list.
    """

    said: Mapping[str, tuple[str, ...]]
    example: Mapping[str, Any]
    by_label: dict[str, int] = field(default_factory=lambda: dict.fromkeys(LABELS, 0))

    @property
    def n(self) -> int:
        """Questions of this pattern."""
        return sum(self.by_label.values())


def patterns(rows: Iterable[Mapping[str, Any]], readouts: Sequence[str]) -> list[Pattern]:
    """Group rows of a list by what each readout said, most frequent first, then as first met."""
    found: dict[tuple[str | None, ...], Pattern] = {}
    for row in rows:
        key = tuple(row[name] for name in readouts)
        if key not in found:
            found[key] = Pattern(_said(key, readouts), row)
        found[key].by_label[row["label"]] += 1
    return sorted(found.values(), key=lambda pattern: -pattern.n)


def _said(decisions: Sequence[str | None], readouts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return decision -> readouts that made it; a readout without one stands nowhere."""
    return {
        word: tuple(name for name, decision in zip(readouts, decisions, strict=True) if decision == word)
        for word in (YES, NO, UNPARSED, INVALID)
    }
