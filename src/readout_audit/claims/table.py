"""The claims table: one row per published number, what this run found, and a verdict."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from readout_audit.claims import measured, statements, vocabulary
from readout_audit.claims.evidence import Evidence
from readout_audit.claims.finding import Finding, Missing, agrees, as_printed, overlaps
from readout_audit.claims.groups import contradictions
from readout_audit.claims.numbers import Number
from readout_audit.errors import AuditError

STATUSES = (
    "reproduced",
    "within_noise",
    "differs",
    "inconsistent_in_paper",
    "derived",
    "not_identifiable",
    "not_run",
)


class Claim(NamedTuple):
    """One row of the claims table."""

    id: str
    section: str
    claim: str
    published: str
    reproduced: str
    decimals: int | None
    status: str
    source: str
    note: str


Reproduce = Callable[[Number, Evidence], Finding | Missing]


def _elsewhere(why: str) -> Reproduce:
    """Return a function for numbers that only another stage can measure."""
    return lambda number, evidence: Missing("not_run", why)


KINDS: dict[str, Reproduce] = {
    "score": measured.score,
    "gap": measured.gap,
    "gap_numerator": measured.gap,
    "gap_denominator": measured.gap,
    "transition": measured.transition,
    "first_token": measured.first_token,
    "emitted_ids": measured.emitted_ids,
    "questions": measured.questions,
    "running_rate": measured.running_rate,
    "running_f1": measured.running_f1,
    "shared_questions": measured.shared_questions,
    "outcome": measured.outcome,
    "vocabulary": vocabulary.vocabulary,
    "encode": vocabulary.encode,
    "single_ids": vocabulary.single_ids,
    "expression": statements.expression,
    "statement": statements.statement,
    "description": statements.description,
    "survey": statements.survey,
    "survey_gain": statements.survey_gain,
    "fact": statements.fact,
    "correction": _elsewhere("this run did not apply the correction."),
    "probe": statements.probe,
}
"""Kind of a published number -> how it is reproduced. Adding a kind is one function and one line."""


def build_claims(evidence: Evidence) -> list[Claim]:
    """Hold every published number against a run, in the order of the numbers."""
    conflicts = contradictions(evidence.numbers)
    return [judge(number, find(number, evidence), conflicts.get(number.group)) for number in evidence.numbers]


def find(number: Number, evidence: Evidence) -> Finding | Missing:
    """Return what the run knows about one number: from its own stage if that measured it, else by its kind.

    Raises:
        AuditError: the number's kind is not known.
    """
    entry = evidence.measured.get(number.id)
    if entry is not None and entry.get("status"):
        return Missing(str(entry["status"]), str(entry.get("note") or ""))
    if entry is not None:
        value = entry["value"]
        exact = None if value is None else _exact(str(value))
        return Finding(exact, str(entry["source"]), str(entry.get("note") or ""))
    if number.kind not in KINDS:
        raise AuditError(f"published number {number.id}: kind {number.kind!r} is not known.")
    return KINDS[number.kind](number, evidence)


def _exact(text: str) -> Fraction | str:
    """Return a measured value exactly ("2348/2856", "0.0738"), or the text if it is no number."""
    try:
        return Fraction(text)
    except ValueError:
        return text


def judge(number: Number, found: Finding | Missing, conflict: str | None) -> Claim:
    """Compare what was found with what is published."""
    if isinstance(found, Missing):
        status, note, reproduced, source = found.status, found.note, "", ""
        if conflict is not None:
            status, note, source = "inconsistent_in_paper", conflict, statements.PAPER
    else:
        reproduced, source = _shown(number, found), found.source
        status, note = _status(number, found)
        if conflict is not None:
            status, note = "inconsistent_in_paper", " ".join(filter(None, (conflict, found.note)))
    return Claim(
        number.id,
        number.section,
        number.claim,
        number.printed,
        reproduced,
        number.decimals,
        status,
        source,
        _sentence(note),
    )


def _status(number: Number, found: Finding) -> tuple[str, str]:
    """Return status and note of a number whose group holds together."""
    if found.derived:
        follows = overlaps(*found.bounds, number) if found.bounds else agrees(found.value, number)
        return ("derived" if follows else "inconsistent_in_paper"), found.note
    if agrees(found.value, number):
        zero = "undefined (0/0) here; the paper prints 0 for it." if found.value is None else ""
        return "reproduced", " ".join(filter(None, (found.note, zero)))
    ties = found.near_ties
    if ties is not None and ties.count and overlaps(ties.low, ties.high, number):
        near = f"{ties.count} near-tied decisions allow {as_printed(ties.low, number)} to {as_printed(ties.high, number)}."
        return "within_noise", " ".join(filter(None, (found.note, near)))
    return "differs", found.note


def _shown(number: Number, found: Finding) -> str:
    """Return what was found as the number is printed; a range where the rounding of its sources leaves one."""
    if found.bounds is None:
        return as_printed(found.value, number)
    ends = dict.fromkeys(as_printed(end, number) for end in found.bounds)
    return " to ".join(ends)


def _sentence(note: str) -> str:
    """Return a note that begins with a capital letter."""
    return note[:1].upper() + note[1:]


def as_csv(claims: Sequence[Claim]) -> str:
    """Return the claims table as CSV text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(Claim._fields)
    writer.writerows(["" if cell is None else cell for cell in claim] for claim in claims)
    return stream.getvalue()


def count_statuses(claims: Sequence[Claim]) -> dict[str, int]:
    """Return how many claims have each status, zeros included."""
    counts = Counter(claim.status for claim in claims)
    return {status: counts[status] for status in STATUSES}
