"""How sure the gap is: intervals and tests over pictures, beside the naive ones that take questions for independent."""

from collections.abc import Iterator
from fractions import Fraction

from readout_audit.exact import p_text, printed
from readout_audit.report.findings.base import Finding, Names, name_of
from readout_audit.report.grid import Column, Grid, grid, numbers, texts
from readout_audit.report.inputs import CellKey, GapKey, GapValue, RunData, ScoreRow
from readout_audit.report.text import points

NOT_COMPUTED = "not computed"
NAIVE = "naive, by question"
BY_PICTURE = "over pictures"


def certainty(data: RunData, names: Names) -> list[Finding]:
    """Return, by cell, intervals and tests of the gap and of both F1, each beside its naive counterpart."""
    findings = []
    for cell in data.cells:
        keys = [GapKey(cell, data.labels[0], split, *data.pair) for split in data.splits]
        tested = [key for key in keys if "mcnemar_p" in data.gap.get(key, {})]
        if tested:
            tables = (_gap_tests(data, tested), _f1_intervals(data, cell, tested))
            findings.append(Finding("", name_of(names, cell), tuple(_wider(data, cell, tested)), tables))
    return findings


def _gap_tests(data: RunData, keys: list[GapKey]) -> Grid:
    """Return the gap of every split with its interval and both tests."""
    columns = (
        *texts("split"),
        *numbers("gap, points"),
        *numbers("95% interval", "permutation p", group=BY_PICTURE),
        *numbers("McNemar p", group=NAIVE),
    )
    rows = []
    for key in keys:
        found = data.gap[key]
        rows.append(
            (
                key.split,
                points(found["delta_f1"].exact),
                _interval(found.get("delta_f1_ci_low"), found.get("delta_f1_ci_high")),
                _p(found.get("delta_f1_permutation_p")),
                _p(found["mcnemar_p"]),
            )
        )
    notes = (
        "Over pictures: a paired interval, and a test that exchanges the two readouts picture by picture; p is at least "
        "1 / (1 + the number of exchanges). McNemar's test asks which readout is right more often and takes questions for "
        "independent, which they are not: several are about one picture.",
    )
    return grid(columns, rows, "The gap", notes)


def _f1_intervals(data: RunData, cell: CellKey, keys: list[GapKey]) -> Grid:
    """Return F1 of both readouts with both intervals."""
    columns = (
        *texts("split", "readout"),
        *numbers("F1"),
        Column("95% interval", "number", BY_PICTURE),
        Column("Wilson 95%", "number", NAIVE),
    )
    rows = []
    for key in keys:
        for readout in data.pair:
            row = data.score_index.get((cell, key.labels, key.split, readout))
            if row is None or row.confusion is None:
                continue
            ends = ([row.values[f"{name}_{end}"] for end in ("low", "high")] for name in ("f1", "f1_wilson"))
            rows.append(
                (key.split, readout, printed(row.confusion.f1, 4), *(_between(*pair) for pair in ends))
            )
    return grid(columns, rows, "F1 of both readouts")


def _wider(data: RunData, cell: CellKey, keys: list[GapKey]) -> Iterator[str]:
    """Say how wide the interval over pictures is, beside Wilson's, on the hardest split."""
    row = data.score_index.get((cell, keys[-1].labels, keys[-1].split, data.pair[0]))
    widths = [_width(row, name) for name in ("f1", "f1_wilson")] if row is not None else []
    if widths and widths[0] is not None and widths[1]:
        yield (
            f"On {keys[-1].split}, the interval of F1 over pictures under {data.pair[0]} is "
            f"{printed(widths[0] / widths[1], 2)} times as wide as the one that takes questions for independent."
        )


def _width(row: ScoreRow, name: str) -> Fraction | None:
    """Return how wide an interval of a score is; None where it was not computed."""
    low, high = (row.values[f"{name}_{end}"] for end in ("low", "high"))
    return None if low is None or high is None else Fraction(high) - Fraction(low)


def _interval(low: GapValue | None, high: GapValue | None) -> str:
    """Return an interval of a gap in points."""
    if low is None or high is None:
        return NOT_COMPUTED
    return f"{points(low.exact)} to {points(high.exact)}"


def _between(low: float | None, high: float | None) -> str:
    """Return an interval of F1."""
    if low is None or high is None:
        return NOT_COMPUTED
    return f"{printed(Fraction(low), 4)} to {printed(Fraction(high), 4)}"


def _p(found: GapValue | None) -> str:
    """Return a p value; undefined where nothing differs to be tested."""
    if found is None:
        return NOT_COMPUTED
    return printed(None, 0) if found.value is None else p_text(found.value)
