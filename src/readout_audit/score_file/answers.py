"""One answer file in memory, whatever wrote it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class Answers:
    """The rows of one answer file. A column is None where the file has no such thing.

    Attributes:
        name: the file, for messages.
        format: what it was recognised as.
        places: where each row stands in the file, such as "line 7".
        text: the answers; None for a file that holds decisions only, a None entry for a row without one.
        invalid: rows that the file itself marks as failed.
        prompt: what was asked, with whatever was put around the question.
        image: plain file names, folders removed.
        question_id: ids as text.
        label: yes | no as the file has it.
        split: the splits each row belongs to, by the file's own word.
        decisions: readout -> decision per row, for files that hold decisions.
        facts: what the file says about how the answers were made.
        records: our own record rows, for a record file, and their metadata.
    """

    name: str
    format: str
    places: Sequence[str]
    text: Sequence[str | None] | None
    invalid: Sequence[bool]
    prompt: Sequence[str] | None = None
    image: Sequence[str] | None = None
    question_id: Sequence[str] | None = None
    label: Sequence[str] | None = None
    split: Sequence[tuple[str, ...]] | None = None
    decisions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    records: pa.Table | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Return the number of answers."""
        return len(self.places)

    def where(self, row: int) -> str:
        """Return file and place of a row, for a message."""
        return f"{self.name}, {self.places[row]}"
