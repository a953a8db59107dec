"""Which token each answer began with, counted: shared by Tables 1, 4 and 5 and Figure 5."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from readout_audit import contracts
from readout_audit.claims.numbers import read_numbers, select
from readout_audit.tables.inputs import CellKey, Decisions, RunTables
from readout_audit.tokens.surface import bare_word, surface

COUNTS = "counts"
"""The source whose rows are made from printed integers; its first tokens are the paper's Table 1."""


@dataclass(frozen=True)
class FirstTokens:
    """First generated tokens of one cell.

    Attributes:
        cell: what was asked.
        sides: id -> yes | no, for the ids that the two readouts of the gap pair read; yes first, then by id.
        narrow: the ids that the other readout of the pair reads.
        pieces: id -> vocabulary piece, as far as known.
        n: split -> questions.
        counts: split -> id -> questions whose answer began with it; a split is absent where the source does
            not know.
    """

    cell: CellKey
    sides: Mapping[int, str]
    narrow: frozenset[int]
    pieces: Mapping[int, str]
    n: Mapping[str, int]
    counts: Mapping[str, Counter[int]]

    @property
    def others(self) -> list[int]:
        """Return the emitted ids outside `sides`, most frequent first, equal counts by id."""
        total = self.total
        return sorted(
            (token for token in total if token not in self.sides), key=lambda token: (-total[token], token)
        )

    @property
    def total(self) -> Counter[int]:
        """Return the counts over all splits together; ids never emitted are left out."""
        return +sum(self.counts.values(), Counter())

    def unknown(self, split: str) -> int:
        """Return how many questions of a counted split have no first token (invalid rows)."""
        return self.n[split] - self.counts[split].total()

    def all_emitted_are_read_words(self, split: str) -> bool:
        """Tell whether every answer of a split began with a yes or no piece that the wider readout reads.

        Then the decoded answer, and by Theorem 1 any largest-logit readout whose sets hold the emitted
        pieces, decide as that readout does.
        """
        if split not in self.counts or self.unknown(split):
            return False
        return all(
            token in self.sides
            and bare_word(surface(self.pieces.get(token, ""), byte_level=True)) == self.sides[token]
            for token in +self.counts[split]
        )


def first_tokens(inputs: RunTables) -> list[FirstTokens]:
    """Count the first tokens of every cell of the run, in the order of its files."""
    return [_of_cell(inputs, cell, decisions) for cell, decisions in inputs.decisions.items()]


def _of_cell(inputs: RunTables, cell: CellKey, decisions: Decisions) -> FirstTokens:
    """Count the first tokens of one cell."""
    rows = decisions.rows
    n = {split: count for split in inputs.options.splits if (count := int((rows["split"] == split).sum()))}
    if cell.source == COUNTS:
        counts = _printed(inputs, cell.model, n)
    else:
        known = rows[rows["first_token_id"].notna()]
        counts = {
            split: Counter(known.loc[known["split"] == split, "first_token_id"].astype(int).tolist())
            for split in n
        }
        counts = {split: counter for split, counter in counts.items() if counter}
    wide = _sides(decisions, inputs.options.readout_from)
    narrow = _sides(decisions, inputs.options.readout_to)
    sides = dict(sorted((wide | narrow).items(), key=lambda item: (item[1] == contracts.NO, item[0])))
    return FirstTokens(cell, sides, frozenset(narrow), decisions.pieces(), n, counts)


def _sides(decisions: Decisions, readout: str) -> dict[int, str]:
    """Return id -> yes | no of one readout; empty for a string readout."""
    ids = decisions.readouts.get(readout, {}).get("ids") or {}
    return {int(token): answer for answer in contracts.LABELS for token in ids.get(answer, [])}


def _printed(inputs: RunTables, model: str, n: Mapping[str, int]) -> dict[str, Counter[int]]:
    """Return the printed first-token counts of a model by split (the paper's Table 1)."""
    if inputs.sources.claims is None:
        return {}
    numbers = select(read_numbers(inputs.sources.claims), kind="first_token", model=model)
    return {
        split: Counter({int(number.quantity): number.as_count for number in select(numbers, split=split)})
        for split in n
        if select(numbers, split=split)
    }
