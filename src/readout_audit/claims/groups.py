"""Numbers that must hold together: which groups of published numbers no integers satisfy."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from readout_audit.claims.finding import agrees
from readout_audit.claims.numbers import Number
from readout_audit.consistency.difference import difference_check
from readout_audit.consistency.metrics import METRICS
from readout_audit.consistency.search import Consistency, fitting_matrices
from readout_audit.exact import PrintedValue, printed, read_printed

PER_LABEL = {"": 1500, "first_500": 250}
"""Questions with label yes, and as many with label no, of a whole split and of its first 500."""

_EVERY_MATRIX = 2_000
_CELLS = ("tp", "fp", "tn", "fn")

Groups = Mapping[str, Sequence[Number]]


def grouped(numbers: Sequence[Number]) -> dict[str, list[Number]]:
    """Return the numbers by group, those that stand alone left out."""
    groups: dict[str, list[Number]] = defaultdict(list)
    for number in numbers:
        if number.group:
            groups[number.group].append(number)
    return dict(groups)


def contradictions(numbers: Sequence[Number]) -> dict[str, str]:
    """Return group -> one sentence, for every group that no integers satisfy."""
    groups = grouped(numbers)
    found = {}
    for name, members in groups.items():
        checks = dict.fromkeys(_CHECKS[member.kind] for member in members if member.kind in _CHECKS)
        sentences = [sentence for check in checks if (sentence := check(members, groups)) is not None]
        if sentences:
            found[name] = " ".join(sentences)
    return found


def _metrics(members: Sequence[Number]) -> dict[str, PrintedValue]:
    """Return the printed metrics of a row."""
    named = ((member.quantity.rpartition(":")[2], member) for member in members)
    return {name: read_printed(member.printed, member.id) for name, member in named if name in METRICS}


def fitting(members: Sequence[Number]) -> Consistency | None:
    """Return the integer matrices that a row's printed metrics allow, None where it prints none."""
    values = _metrics(members)
    if not values:
        return None
    per_label = PER_LABEL[subset_of(members)]
    return fitting_matrices(per_label, per_label, values, limit=_EVERY_MATRIX)


def subset_of(members: Sequence[Number]) -> str:
    """Return the part of a split that a row is about, a key of `PER_LABEL`."""
    return next((key for key in PER_LABEL if key and members[0].quantity.startswith(f"{key}:")), "")


def _row(members: Sequence[Number], groups: Groups) -> str | None:
    """Check that one integer matrix gives all printed metrics and cells of a row."""
    cells = {member.quantity: member.as_count for member in members if member.quantity in _CELLS}
    if len(cells) == len(_CELLS) and any(
        cells[a] + cells[b] != PER_LABEL[""] for a, b in (("tp", "fn"), ("fp", "tn"))
    ):
        return "The cells do not add up to 1,500 per label."
    result = fitting(members)
    if result is None or result.fits:
        return None
    nearest = result.nearest
    closest = f" Closest: {nearest.matrix}." if nearest is not None else ""
    return f"No integer confusion matrix gives this row: {result.blame}.{_without_f1(members)}{closest}"


def _without_f1(members: Sequence[Number]) -> str:
    """Say which matrix the other metrics of a row fix, and what its F1 would print; nothing if they fix none."""
    printed_f1 = next((one for one in members if one.quantity.rpartition(":")[2] == "f1"), None)
    others = [one for one in members if one is not printed_f1]
    result = fitting(others)
    if printed_f1 is None or result is None or result.count != 1:
        return ""
    matrix = result.matrices[0]
    f1 = Fraction(2 * matrix.tp, 2 * matrix.tp + matrix.fp + matrix.fn)
    names = " and ".join(one.quantity.rpartition(":")[2] for one in others)
    return (
        f" Its {names} alone fix TP {matrix.tp:,} and FP {matrix.fp:,}, whose F1 is "
        f"{printed(f1, printed_f1.decimals or 0)}, not {printed_f1.printed}."
    )


def _gap(members: Sequence[Number], groups: Groups) -> str | None:
    """Check that a printed difference of F1s is that of exact ones."""
    for member in members:
        if member.quantity != "delta_f1":
            continue
        rows = [groups[f"t2.{member.split}.{readout}"] for readout in ("legacy_8tok", "legacy_2tok")]
        eight, two = (fitting(row) for row in rows)
        if eight is None or two is None:
            continue
        difference = read_printed(member.printed, member.id, signed=True)
        verdict = difference_check(eight.matrices, two.matrices, "f1", difference)
        if verdict.verdict == "rounded_only":
            exact = (
                f"; the exact one prints {printed(verdict.exact, member.decimals or 0)}"
                if verdict.exact
                else ""
            )
            return f"The printed difference is that of the rounded F1s{exact}."
        if verdict.verdict == "neither":
            return "The printed difference is neither that of the exact F1s nor of the rounded ones."
    return None


def _ratio(members: Sequence[Number], groups: Groups) -> str | None:
    """Check that a printed ratio is that of its printed numerator and denominator."""
    parts = {member.kind: member for member in members}
    value, above = parts.get("gap"), parts.get("gap_numerator")
    below = parts.get("gap_denominator")
    if value is None or above is None:
        return None
    whole = below.as_count if below is not None else 2 * PER_LABEL[""]
    exact = Fraction(above.as_count, whole)
    if agrees(exact, value):
        return None
    return f"{above.printed}/{whole} prints {printed(exact, value.decimals or 0)}, not {value.printed}."


def _totals(members: Sequence[Number], groups: Groups) -> str | None:
    """Check that paired counts add up to the questions of each label."""
    for label in ("yes", "no"):
        total = sum(member.as_count for member in members if member.quantity.startswith(f"{label}:"))
        if total != PER_LABEL[""]:
            return f"The counts with label {label} add up to {total:,}, not to 1,500."
    return None


def _first_tokens(members: Sequence[Number], groups: Groups) -> str | None:
    """Check that first tokens add up to the questions, and totals to the splits."""
    total = sum(member.as_count for member in members)
    splits = [name for name in groups if name.startswith("t1.") and name != "t1.total"]
    questions = 2 * PER_LABEL[""] * (1 if members[0].split else len(splits))
    return None if total == questions else f"The first tokens add up to {total:,}, not to {questions:,}."


def _survey(members: Sequence[Number], groups: Groups) -> str | None:
    """Check that a gain is result minus baseline, as printed."""
    parts = {member.quantity: Fraction(member.printed) for member in members}
    if parts["result"] - parts["baseline"] == parts["gain"]:
        return None
    return f"Result minus baseline is {float(parts['result'] - parts['baseline']):.2f}."


def _kinds(members: Sequence[Number], groups: Groups) -> str | None:
    """Check that two counts of the same kinds of methods agree."""
    said = {member.section: re.findall(r"(\w+) contrastive", member.printed) for member in members}
    counts = {tuple(words) for words in said.values()}
    if len(counts) == 1:
        return None
    return (
        "; ".join(f"{section} counts {' '.join(words)} contrastive" for section, words in said.items()) + "."
    )


_CHECKS: dict[str, Callable[[Sequence[Number], Groups], str | None]] = {
    "score": _row,
    "correction": _row,
    "gap": _gap,
    "gap_numerator": _ratio,
    "transition": _totals,
    "first_token": _first_tokens,
    "survey": _survey,
    "description": _kinds,
}
"""Kind of a number -> what its group must satisfy."""
