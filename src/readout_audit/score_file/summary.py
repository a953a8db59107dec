"""The result in a few lines: F1 by rule and split, each script's own figure beside it, and what to make of it."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pyarrow as pa

from readout_audit.contracts import UNPARSED
from readout_audit.exact import printed
from readout_audit.readouts.base import valid_rows
from readout_audit.readouts.diagnose import cover, first_tokens
from readout_audit.readouts.harness.base import HarnessReadout
from readout_audit.readouts.registry import get
from readout_audit.score_file.scoring import OWN, Audit, ScoreRow
from readout_audit.scores.blocks import AGGREGATES, DISTINCT, MACRO, POOLED

DECIMALS = 4
NO_SCRIPT = "–"
"""Stands where a rule is no script's, which so has no figure of its own."""

BySplit = Mapping[str, ScoreRow]


def f1_table(audit: Audit, labels: str) -> tuple[list[str], dict[str, dict[str, ScoreRow]]]:
    """Return the splits and, by readout, its score rows by split."""
    table: dict[str, dict[str, ScoreRow]] = {}
    for row in audit.scores:
        if row.labels == labels:
            table.setdefault(row.readout, {})[row.split] = row
    return list(next(iter(table.values()))), table


def label_words(audit: Audit, labels: str) -> str:
    """Return whose labels these are: POPE's own stand in the question files, and other sets have others in them."""
    return f"the labels of {audit.release}" if labels == OWN else f"{labels} labels"


def real_splits(rows: BySplit) -> list[ScoreRow]:
    """Return the rows of splits, aggregates left out."""
    return [row for split, row in rows.items() if split not in AGGREGATES]


def unparsed(rows: BySplit) -> int:
    """Return the rows of all splits that a readout could not parse."""
    counted = [row.counts for row in real_splits(rows)]
    return sum((counts["unparsed_pos"] or 0) + (counts["unparsed_neg"] or 0) for counts in counted)


def own_f1(rows: BySplit) -> Fraction | None:
    """Return the F1 that a script itself would print, its mean over several splits; None where it prints none."""
    values = [None if row.own is None else row.own["f1"] for row in real_splits(rows)]
    known = [value for value in values if value is not None]
    return sum(known, Fraction(0)) / len(known) if values and len(known) == len(values) else None


def own_text(name: str, rows: BySplit) -> str:
    """Return that figure as text; a dash for a rule that is no script's."""
    return printed(own_f1(rows), DECIMALS) if isinstance(get(name), HarnessReadout) else NO_SCRIPT


def quirk_text(rows: BySplit) -> str:
    """Return how many readings a quirk of the script decided, such as "12 default_yes"; empty where none."""
    flags: dict[str, int] = {}
    for row in real_splits(rows):
        for flag, count in row.flags.items():
            flags[flag] = flags.get(flag, 0) + count
    return ", ".join(f"{count} {flag}" for flag, count in flags.items() if count)


def aggregate_words(audit: Audit, labels: str) -> dict[str, str]:
    """Return what each aggregate of a label set is over, with its number of rows."""
    splits, table = f1_table(audit, labels)
    rows = next(iter(table.values()))
    # A rule under which the splits answer one question differently has no distinct row; another may.
    n = {
        split: next((count for one in table.values() if (count := one[split].counts["n"])), None)
        for split in splits
    }
    return {
        name: words
        for name, words in (
            (MACRO, f"the mean of {len(real_splits(rows))} splits"),
            (POOLED, f"all {n.get(POOLED)} rows at once"),
            (DISTINCT, f"each of {n.get(DISTINCT)} different questions once" if n.get(DISTINCT) else ""),
        )
        if name in splits and words
    }


def as_lines(audit: Audit) -> list[str]:
    """Return the result for a terminal: F1 by split and readout, under each label set."""
    lines = []
    for answers, pairing in zip(audit.answers, audit.pairings, strict=True):
        asked = ", ".join(
            f"{file.split} ({len(rows)} questions)"
            for file, rows in zip(pairing.files, pairing.rows, strict=True)
        )
        lines += [
            f"{answers.name}: {answers.format}",
            f"  answers {asked} of {audit.release}; paired by {pairing.how}",
        ]
    for labels in audit.labels:
        lines += ["", *_table_lines(audit, labels)]
    return [*lines, "", *remarks(audit), headline(audit)]


def _table_lines(audit: Audit, labels: str) -> list[str]:
    """Return F1 against one label set as aligned lines."""
    splits, table = f1_table(audit, labels)
    words = "; ".join(f"{name}: {text}" for name, text in aggregate_words(audit, labels).items())
    names = [*splits, "script's own", "unparsed"]
    width = max(len(name) for name in table)
    lines = [
        f"F1 against {label_words(audit, labels)}, {audit.labels[labels]} rows{f' ({words})' if words else ''}:"
    ]
    lines.append("  ".join([" " * width, *(f"{name:>12}" for name in names), "  by a quirk"]))
    for name, rows in table.items():
        cells = [printed(rows[split].rates["f1"], DECIMALS) for split in splits]
        cells += [own_text(name, rows), str(unparsed(rows))]
        line = "  ".join([f"{name:<{width}}", *(f"{cell:>12}" for cell in cells), f"  {quirk_text(rows)}"])
        lines.append(line.rstrip())
    return lines


def remarks(audit: Audit) -> list[str]:
    """Return one sentence for each thing in the tables that does not explain itself."""
    said = []
    _, table = f1_table(audit, next(iter(audit.labels)))
    several = len(real_splits(next(iter(table.values())))) > 1
    scripts = [name for name in table if isinstance(get(name), HarnessReadout)]
    if scripts:
        over = ", the mean of the splits" if several else ""
        said.append(
            f"script's own: F1 as the script computes it{over}; unparsed answers count as wrong in ours, not in all of theirs."
        )
    silent = [name for name in scripts if own_f1(table[name]) is None]
    if silent:
        said.append(
            f"script's own is undefined for {_listed(silent)}: the script ends in a division by zero and prints nothing, "
            f"since no answer{' of some split' if several else ''} is a right yes to it."
        )
    said += _quirk_words(table)
    if any(row.split == DISTINCT and row.counts["n"] is None for row in audit.scores):
        said.append(f"{DISTINCT} is undefined: the splits answer the same question differently.")
    return [*said, ""] if said else []


def _quirk_words(table: Mapping[str, BySplit]) -> list[str]:
    """Return what each quirk is that decided a reading of these answers."""
    said: dict[str, str] = {}
    for name, rows in table.items():
        readout = get(name)
        if isinstance(readout, HarnessReadout):
            counted = {flag for row in real_splits(rows) for flag, count in row.flags.items() if count}
            said |= {flag: f"{flag}, a quirk of {name}: {readout.quirks[flag]}." for flag in sorted(counted)}
    return list(said.values())


def reads_prompt(name: str) -> bool:
    """Tell whether a rule looks for its words in the prompt, too."""
    return getattr(get(name), "column", None) == "full_text"


def headline(audit: Audit) -> str:
    """Return in one sentence how far the readout alone moves the score."""
    splits, table = f1_table(audit, next(iter(audit.labels)))
    split = MACRO if MACRO in splits else splits[0]
    scored = {name: value for name, rows in table.items() if (value := rows[split].rates["f1"]) is not None}
    where = f"the mean over {len(splits) - len(AGGREGATES)} splits" if split == MACRO else split
    if not scored:
        return f"On {where}, F1 is undefined under all {len(table)} rules: none finds a yes or a no in these answers."
    missing = [name for name in table if name not in scored]
    more = (
        f" Under {len(missing)} of {len(table)} rules it is undefined, since they find neither word: {_listed(missing)}."
        if missing
        else ""
    )
    # A rule that reads the prompt as well shows what goes wrong then; as an extreme it would be a straw man.
    fair = {name: value for name, value in scored.items() if not reads_prompt(name)} or scored
    beside = [f"{name} ({printed(scored[name], DECIMALS)})" for name in scored if name not in fair]
    if beside:
        more += f" Left out here, since the prompt is read with the answer: {_listed(beside)}."
    low, high = min(fair, key=lambda name: fair[name]), max(fair, key=lambda name: fair[name])
    if fair[low] == fair[high]:
        who = "every readout gives" if len(fair) == len(table) else f"{len(fair)} of {len(table)} rules give"
        return f"On {where}, {who} these answers an F1 of {printed(fair[low], DECIMALS)}.{more}"
    return (
        f"On {where}, with unparsed answers counted as wrong, the same answers have an F1 of "
        f"{printed(fair[low], DECIMALS)} as read by the rule of {low} and of {printed(fair[high], DECIMALS)} by that of "
        f"{high}: the rule that reads them is the only difference.{_scripts_print(table, (low, high), fair)}"
        f"{_misses(audit, (low, high))}{more}"
    )


def _scripts_print(table: Mapping[str, BySplit], names: Sequence[str], scored: Mapping[str, Fraction]) -> str:
    """Return what the scripts of these rules print themselves, where that is another figure than ours."""
    said = ""
    for name in names:
        own = own_f1(table[name])
        if own is not None and printed(own, DECIMALS) != printed(scored[name], DECIMALS):
            said += f" The script of {name} itself would print {printed(own, DECIMALS)}."
    return said


def _misses(audit: Audit, names: Sequence[str]) -> str:
    """Return which of these rules compare tokens that the model does not write, where a record file tells."""
    said = ""
    for answers in audit.answers:
        if answers.records is None:
            continue
        tokens = first_tokens(answers.records.filter(pa.array(valid_rows(answers.records))))
        written = sum(token.count for token in tokens if token.says != UNPARSED)
        for name in (name for name in names if get(name).kind == "logit"):
            missed = sum(token.count for token in cover(get(name), answers.meta, tokens).excluded)
            if missed:
                which = "any" if missed == written else f"{missed}"
                said += (
                    f" {name} does not look at {which} of the {written} first tokens yes and no that the model wrote: "
                    f"readout-audit diagnose {answers.name} says which."
                )
    return said


def _listed(names: Sequence[str]) -> str:
    """Return "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
