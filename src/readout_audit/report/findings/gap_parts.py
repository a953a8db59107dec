"""What the gap is made of: which answers the second readout of the pair reads otherwise."""

from readout_audit.gap.algebra import RATES
from readout_audit.report.findings.base import Finding, Names, name_of
from readout_audit.report.grid import Column, grid, numbers, texts
from readout_audit.report.inputs import GapKey, RunData
from readout_audit.report.text import listed, of, points

PART_WORDS = {
    "rho_n": ("correct no", "read as yes", "new false alarms"),
    "phi": ("wrong no", "read as yes", "mended misses"),
    "yes_to_no_pos": ("correct yes", "read as no", "new misses"),
    "yes_to_no_neg": ("wrong yes", "read as no", "mended false alarms"),
}
"""Rate -> answers of the first readout, what the second makes of them, and what these are."""


def gap_parts(data: RunData, names: Names) -> list[Finding]:
    """Return, by cell, the four flip rates of the pair and the part of the gap that each makes."""
    findings = []
    for cell in data.cells:
        keys = [
            key
            for split in data.splits
            if (key := GapKey(cell, data.labels[0], split, *data.pair)) in data.gap
        ]
        rows = [row for key in keys for row in _part_rows(data, key)]
        if not rows:
            continue
        columns = (
            *texts("split", "answer by the first", "second readout", "which are"),
            Column("of these", "number"),
            *numbers("part of the gap, points"),
        )
        notes: tuple[str, ...] = (
            "A positive part lowers F1 under the second readout, a negative part raises it; the four parts sum to "
            "the gap exactly (each rate's effect, averaged over all orders of switching the four on).",
        )
        if any("between" in row[4] for row in rows):
            notes = (
                *notes,
                "The source gives each readout's counts alone: where these allow several pairings, only bounds of the "
                "flips are known.",
            )
        table = grid(columns, rows, f"From {data.pair[0]} to {data.pair[1]}", notes)
        findings.append(Finding("", name_of(names, cell), _part_sentences(data, keys[-1]), (table,)))
    return findings


def _part_rows(data: RunData, key: GapKey) -> list[tuple[str, ...]]:
    """Return one row per flip rate of one split."""
    quantities = data.gap[key]
    rows: list[tuple[str, ...]] = []
    for name in RATES:
        rate, part = quantities.get(name), quantities.get(f"delta_f1_part:{name}")
        low, high = (quantities.get(f"{name}_bound_{end}") for end in ("low", "high"))
        if rate is not None and rate.numerator is not None and rate.denominator is not None:
            counted = of(rate.numerator, rate.denominator)
        elif (
            low is not None and high is not None and low.numerator is not None and high.numerator is not None
        ):
            counted = f"between {low.numerator:,} and {high.numerator:,} of {low.denominator or 0:,}"
        else:
            continue
        shown = points(part.exact) if part is not None else "not identifiable"
        rows.append((key.split, *PART_WORDS[name], counted, shown))
    return rows


def _part_sentences(data: RunData, key: GapKey) -> tuple[str, ...]:
    """Say for one split which parts make the gap; nothing where they are not known."""
    quantities = data.gap[key]
    parts = {name: quantities.get(f"delta_f1_part:{name}") for name in RATES}
    known = {name: part.exact for name, part in parts.items() if part is not None}
    exact = {name: value for name, value in known.items() if value}
    delta = quantities.get("delta_f1")
    if not exact or delta is None or delta.exact is None:
        return ()
    said = [
        f"{PART_WORDS[name][2]} {'cost' if value > 0 else 'give back'} {points(abs(value))} points"
        for name, value in exact.items()
    ]
    return (f"On {key.split}, {listed(said)}: together {points(delta.exact)}.",)
