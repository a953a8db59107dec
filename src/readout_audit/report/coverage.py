"""Which readouts compare tokens that the decoder did not select, as the decision files say."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from readout_audit.report.grid import Column, Grid, grid, numbers, texts
from readout_audit.report.inputs import CellKey, RunData, short_names
from readout_audit.report.text import listed, of, plural, quoted

MOST_TOKENS = 6


class Missed(NamedTuple):
    """What one readout of one cell misses of the first tokens."""

    readout: str
    coverage: Mapping[str, Any]

    @property
    def misread(self) -> int:
        """Distinct questions whose emitted yes or no it does not read."""
        return sum(int(token["count"]) for token in self.coverage["excluded"])

    @property
    def questions(self) -> int:
        """Distinct questions with logits."""
        return int(self.coverage["questions"])


def missed(data: RunData, cell: CellKey) -> list[Missed] | None:
    """Return the readouts of a cell that miss an emitted yes or no; None where the source does not tell."""
    decisions = data.decisions.get(cell)
    described = decisions.metadata.get("readouts", {}) if decisions is not None else {}
    known = [Missed(name, one["coverage"]) for name, one in described.items() if one.get("coverage")]
    return [one for one in known if one.misread] if known else None


def on_purpose(data: RunData, cell: CellKey) -> bool:
    """Tell whether the run names such readouts on purpose (`expect_excluded`)."""
    decisions = data.decisions.get(cell)
    return bool(decisions is not None and decisions.metadata.get("expect_excluded"))


def warnings(data: RunData) -> list[str]:
    """Return one sentence per cell with such readouts that the run does not say it expects."""
    names = short_names(data.cells)
    return [
        f"{names[cell]}: {listed([one.readout for one in found])} "
        f"{'compares' if len(found) == 1 else 'compare'} tokens that the decoder did not select, on up to "
        f"{of(max(one.misread for one in found), found[0].questions)} questions. Read dynamic_single or in_context "
        f"instead, or say expect_excluded: true if the run names them on purpose."
        for cell in data.cells
        if not on_purpose(data, cell) and (found := missed(data, cell))
    ]


def missed_sentence(found: list[Missed], *, expected: bool) -> str:
    """Say how many readouts of a cell miss something, and whether that is meant."""
    if not found:
        return "Every readout of logits reads every yes and no that was emitted."
    meant = "which the run names on purpose" if expected else "which the run does not say it expects"
    miss = "misses" if len(found) == 1 else "miss"
    return f"{plural(len(found), 'readout')} of logits {miss} an emitted yes or no, {meant}."


def missed_table(found: list[Missed]) -> Grid:
    """Return what each readout misses, and the pieces it reads that say neither yes nor no."""
    columns = (
        *texts("readout"),
        *numbers("questions concerned"),
        Column("emitted, not read (times)", "long"),
        Column("pieces it reads that say neither yes nor no", "long"),
    )
    rows = [
        (
            one.readout,
            of(one.misread, one.questions),
            _tokens(one.coverage),
            _foreign(one.coverage["foreign"]),
        )
        for one in found
    ]
    notes = ("Distinct questions; a token by its id and its piece in this model's vocabulary.",)
    return grid(columns, rows, "", notes)


def _tokens(coverage: Mapping[str, Any]) -> str:
    """Return the excluded tokens, the most frequent first."""
    tokens = coverage["excluded"]
    shown = [
        f"{token['id']} {quoted(str(token['piece']))} ({token['count']:,})" for token in tokens[:MOST_TOKENS]
    ]
    more = [f"{len(tokens) - MOST_TOKENS} more"] if len(tokens) > MOST_TOKENS else []
    return ", ".join([*shown, *more])


def _foreign(pieces: Mapping[str, str | None]) -> str:
    """Return the ids that a readout reads and whose piece says neither yes nor no."""
    return ", ".join(f"{token} {quoted(str(piece))}" for token, piece in pieces.items()) or "none"
