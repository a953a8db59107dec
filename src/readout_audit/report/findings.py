"""What the run found beside its scores, each finding in sentences with the table that shows it."""

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from readout_audit.contracts import YES
from readout_audit.exact import printed
from readout_audit.gap.algebra import RATES
from readout_audit.gap.relabel import OTHER, OWN_ALL
from readout_audit.report import releases
from readout_audit.report.coverage import missed, missed_sentence, missed_table, on_purpose
from readout_audit.report.grid import Column, Grid, grid, numbers, texts
from readout_audit.report.inputs import About, CellKey, GapKey, RunData, short_names
from readout_audit.report.relabelled import fraction_of, relabelled_gaps
from readout_audit.report.scripts import scripts_table
from readout_audit.report.summary import label_words
from readout_audit.report.text import listed, of, percent, plural, points
from readout_audit.scores.self_agreement import DIFFERENT, WORDINGS

MOST_OBJECTS = 12
MOST_EXAMPLES = 20


class Finding(NamedTuple):
    """One finding about one cell.

    Attributes:
        title: what it is about.
        cell: which cell.
        sentences: what was found.
        tables: the numbers behind it.
    """

    title: str
    cell: str
    sentences: tuple[str, ...]
    tables: tuple[Grid, ...]


class Topic(NamedTuple):
    """All findings of one kind; none where the run has no file for it, and then `absent` says what it takes."""

    title: str
    question: str
    findings: tuple[Finding, ...]
    absent: str = ""


ABSENT = {
    "What the gap is made of": "It takes answers that both readouts of gap_pair have read.",
    "Corrected labels": "It takes a second label set: name one under labels in the run file (docs/data.md).",
    "What carries the flips": "It takes answers, question by question, of both readouts of gap_pair.",
    "Do the splits agree with themselves?": "It takes two splits that share questions.",
    "Another release of the same questions": (
        "It takes a second release of the same questions: name both under datasets in the run file (docs/data.md)."
    ),
    "Answers without a clear reading": "It takes scores.",
    "What scoring scripts would print": (
        "It takes the readout of a scoring script, such as pope_official or lmms_eval, among readouts in the run file."
    ),
    "Emitted tokens that a readout misses": (
        "It takes logits and first tokens, which the source of these answers does not hold."
    ),
}
"""Topic -> what a run needs to have it."""


def topics(data: RunData) -> list[Topic]:
    """Return every kind of finding, those without an input as empty topics."""
    names = short_names(data.cells)
    made: list[tuple[str, str, Callable[[RunData, Mapping[CellKey, str]], list[Finding]]]] = [
        ("What the gap is made of", "Which answers does the second readout read otherwise?", gap_parts),
        ("Corrected labels", "Does the gap stay when wrong labels are corrected?", corrected_labels),
        ("What carries the flips", "Are they spread out, or do a few objects carry them?", flip_carriers),
        (
            "Do the splits agree with themselves?",
            "The splits share questions; does the run answer a shared question alike in each?",
            self_agreement,
        ),
        (
            "Another release of the same questions",
            "What do other spellings change: which answers, and how much of the score?",
            other_release,
        ),
        (
            "Answers without a clear reading",
            "How many were ties, unparsed, invalid or decided by a quirk?",
            unclear,
        ),
        (
            "What scoring scripts would print",
            "What does each script in use report of these answers, by its own arithmetic?",
            scripts,
        ),
        (
            "Emitted tokens that a readout misses",
            "Does each readout compare the tokens that the decoder selected?",
            excluded,
        ),
    ]
    return [Topic(title, question, tuple(find(data, names)), ABSENT[title]) for title, question, find in made]


def _name(names: Mapping[CellKey, str], cell: CellKey) -> str:
    """Return a cell's short name; its full one where the scores do not know it."""
    return names.get(cell) or ", ".join(cell)


# What the gap is made of

PART_WORDS = {
    "rho_n": ("correct no", "read as yes", "new false alarms"),
    "phi": ("wrong no", "read as yes", "mended misses"),
    "yes_to_no_pos": ("correct yes", "read as no", "new misses"),
    "yes_to_no_neg": ("wrong yes", "read as no", "mended false alarms"),
}
"""Rate -> answers of the first readout, what the second makes of them, and what these are."""


def gap_parts(data: RunData, names: Mapping[CellKey, str]) -> list[Finding]:
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
        notes = (
            "A positive part lowers F1 under the second readout, a negative part raises it; the four parts sum to "
            "the gap exactly (each rate's effect, averaged over all orders of switching the four on).",
        )
        if any("between" in row[4] for row in rows):
            notes = ("The source gives each readout's counts alone: only bounds of the flips are known.",)
        table = grid(columns, rows, f"From {data.pair[0]} to {data.pair[1]}", notes)
        findings.append(Finding("", _name(names, cell), _part_sentences(data, keys[-1]), (table,)))
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


# Corrected labels


def corrected_labels(data: RunData, names: Mapping[CellKey, str]) -> list[Finding]:
    """Return, by cell and label set, the gap under five choices of labels and rows."""
    findings = []
    for about in data.relabelled:
        for labels in dict.fromkeys(row["labels"] for row in about.rows):
            rows = [row for row in about.rows if row["labels"] == labels]
            tables = (relabelled_gaps(rows, data.splits), _relabelled_f1s(rows, data.splits))
            sentences = (
                *_times(rows, labels, data.splits),
                *_directions(rows, data.splits),
                *_left_out(about, labels),
            )
            findings.append(Finding(labels, _name(names, about.cell), sentences, tables))
    return findings


def _relabelled_f1s(rows: Sequence[Mapping[str, Any]], splits: Sequence[str]) -> Grid:
    """Return n, positives and both F1 under every choice."""
    order = {split: place for place, split in enumerate(splits)}
    chosen = sorted(rows, key=lambda row: order.get(row["split"], len(order)))
    columns = (
        *texts("split"),
        Column("labels and rows", "long"),
        *numbers("questions", "labelled yes"),
        *numbers(rows[0]["readout_from"], rows[0]["readout_to"], group="F1"),
    )
    cells = [
        [
            *(row["split"], row["choice"], f"{row['n']:,}", f"{row['positives']:,}"),
            *(printed(fraction_of(row, name), 4) for name in ("f1_from", "f1_to")),
        ]
        for row in chosen
    ]
    return grid(columns, cells, "The same five choices: questions and F1")


def _times(rows: Sequence[Mapping[str, Any]], labels: str, splits: Sequence[str]) -> list[str]:
    """Say how many times larger the gap is under the other labels."""
    gaps = {(row["choice"], row["split"]): fraction_of(row, "gap") for row in rows}
    known = [
        (split, own, other)
        for split in splits
        if (own := gaps.get((OWN_ALL, split))) is not None and (other := gaps.get((OTHER, split))) is not None
    ]
    if not known or any(own <= 0 for _, own, _ in known):
        return []
    times = listed([f"{printed(other / own, 1)} ({split})" for split, own, other in known])
    return [
        f"Under {label_words(labels)} the gap is {times} times as large. Three things change at once: labels, which "
        "rows are kept, and the share of positives; the rows below take them apart."
    ]


def _directions(rows: Sequence[Mapping[str, Any]], splits: Sequence[str]) -> list[str]:
    """Say for the hardest split where each F1 goes when the labels are exchanged."""
    by_key = {(row["choice"], row["split"]): row for row in rows}
    for split in reversed(splits):
        own, other = by_key.get((OWN_ALL, split)), by_key.get((OTHER, split))
        if own is not None and other is not None:
            moves = [
                f"F1 under {own[f'readout_{side}']} goes from {printed(fraction_of(own, f'f1_{side}'), 4)} "
                f"to {printed(fraction_of(other, f'f1_{side}'), 4)}"
                for side in ("from", "to")
            ]
            return [f"On {split}, {listed(moves)}."]
    return []


def _left_out(about: About, labels: str) -> list[str]:
    """Say how many rows have no label in the other set, and why."""
    reasons = about.metadata.get("labels", {}).get(labels, {}).get("left_out", {})
    return [
        f"Left out, {why}: {listed([f'{count:,} of {split}' for split, count in by_split.items()])}."
        for why, by_split in reasons.items()
    ]


# What carries the flips


def flip_carriers(data: RunData, names: Mapping[CellKey, str]) -> list[Finding]:
    """Return, by cell, the objects with the most flips on the hardest split, and how the images share them."""
    findings = []
    for about in data.carriers:
        own = [row for row in about.rows if row["labels"] == data.labels[0]]
        split = next(
            (split for split in reversed(data.splits) if any(r["split"] == split for r in own)), None
        )
        if split is None:
            continue
        here = [row for row in own if row["split"] == split]
        objects = [row for row in here if row["by"] == "object"]
        images = [row for row in here if row["by"] == "image"]
        total = sum(map(_flips, objects))
        sentences = [s for s in (_object_sentence(objects, split), _image_sentence(images, split)) if s]
        tables = (_carrier_table(objects, total, split),) if total else ()
        findings.append(Finding("", _name(names, about.cell), tuple(sentences), tables))
    return findings


def _flips(row: Mapping[str, Any]) -> int:
    """Return all flips of one object or image."""
    ways = ("no_to_yes_pos", "no_to_yes_neg", "yes_to_no_pos", "yes_to_no_neg")
    return sum(int(row[way]) for way in ways)


def _object_sentence(objects: Sequence[Mapping[str, Any]], split: str) -> str:
    """Say how few objects carry half of the flips (the rows come with the most flips first)."""
    total, carried = sum(map(_flips, objects)), 0
    for place, row in enumerate(objects, start=1):
        carried += _flips(row)
        if total and 2 * carried >= total:
            share = percent(Fraction(carried, total))
            return (
                f"On {split}, {place:,} of {len(objects):,} objects carry {carried:,} of the {total:,} "
                f"flips ({share})."
            )
    return f"On {split} no answer flips." if objects else ""


def _image_sentence(images: Sequence[Mapping[str, Any]], split: str) -> str:
    """Say how many pictures have a flip."""
    flipped = sum(1 for row in images if _flips(row))
    return f"{of(flipped, len(images))} pictures of {split} have at least one." if flipped else ""


def _carrier_table(objects: Sequence[Mapping[str, Any]], total: int, split: str) -> Grid:
    """Return the objects with the most flips."""
    columns = (
        *texts("object"),
        *numbers("questions", "flips", "share of its questions", "share of all flips"),
        *numbers("label no", "label yes", group="no → yes"),
        *numbers("label no", "label yes", group="yes → no"),
    )
    cells = [
        [
            row["name"] or "not known",
            *(f"{row['n']:,}", f"{_flips(row):,}"),
            *(f"{printed(Fraction(100 * _flips(row), whole), 1)}%" for whole in (row["n"], total)),
            *(f"{row[f'{way}_{sign}']:,}" for way in ("no_to_yes", "yes_to_no") for sign in ("neg", "pos")),
        ]
        for row in objects[:MOST_OBJECTS]
    ]
    caption = f"Objects with the most flips, {split}: {len(cells)} of {len(objects)}"
    return grid(columns, cells, caption)


# Do the splits agree with themselves?


def self_agreement(data: RunData, names: Mapping[CellKey, str]) -> list[Finding]:
    """Return, by cell, how often two splits answer a shared question differently, with examples."""
    examples = {about.cell: about.rows for about in data.disagreements}
    findings = []
    for about in data.agreement:
        verdicts = (
            *_agreement_sentences([str(line) for line in about.metadata.get("verdicts", ())]),
            *_true_positives(about.rows, data.pair[0]),
        )
        differing = [row for row in about.rows if row["differing"]]
        tables = [_agreement_table(differing, len(about.rows) - len(differing))] if differing else []
        if examples.get(about.cell):
            tables.append(_example_table(examples[about.cell]))
        findings.append(Finding("", _name(names, about.cell), verdicts, tuple(tables)))
    return findings


def _agreement_sentences(verdicts: Sequence[str]) -> tuple[str, ...]:
    """Return the verdicts that tell of differences, and one sentence for all that tell of none."""
    differing = [line for line in verdicts if "cannot have given both" in line]
    alike = sum("would give" in line for line in verdicts)
    if not alike:
        return tuple(differing)
    summary = (
        f"In {alike} of {len(verdicts)} comparisons (two splits, one readout) no shared question of the same text is "
        f"answered differently: what one deterministic setup would give."
    )
    return (*differing, summary)


def _true_positives(rows: Sequence[Mapping[str, Any]], readout: str) -> list[str]:
    """Say what differing answers to shared label-yes questions do to the count of true positives."""
    said = []
    shared = [row for row in rows if (row["readout"], row["label"]) == (readout, YES) and row["shared"]]
    for first, second in dict.fromkeys((row["first"], row["second"]) for row in shared):
        here = [row for row in shared if (row["first"], row["second"]) == (first, second)]
        asked, differing, to_no, to_yes = (
            sum(row[name] for row in here) for name in ("shared", "differing", "yes_to_no", "no_to_yes")
        )
        if differing:
            said.append(
                f"Of the {asked:,} questions labelled yes that {first} and {second} share, however they are spelt, "
                f"{readout} answers {differing:,} differently: {to_yes:,} are yes in {second} alone, {to_no:,} in "
                f"{first} alone, a difference of {abs(to_yes - to_no):,} true positives."
            )
    return said


def _agreement_table(rows: Sequence[Mapping[str, Any]], alike: int) -> Grid:
    """Return the counts of shared and differently answered questions.

    Args:
        rows: those with a question that was answered differently.
        alike: how many rows have none; they are counted, not shown.
    """
    columns = (
        *texts("splits", "readout", "label"),
        Column("wording", "long"),
        *numbers("shared", "answered differently"),
        *numbers("yes → no", "no → yes", group="first → second"),
    )
    cells = [
        [
            *(f"{row['first']}, {row['second']}", row["readout"], row["label"], WORDINGS[row["wording"]]),
            f"{row['shared']:,}",
            f"{row['differing']:,} ({percent(Fraction(row['differing'], row['shared']))})",
            *(f"{row[name]:,}" for name in ("yes_to_no", "no_to_yes")),
        ]
        for row in rows
    ]
    left_out = f"{plural(alike, 'more row')} without such a question left out. " if alike else ""
    notes = (
        f"{left_out}Identical questions answered differently show that the splits were not asked by one deterministic setup; "
        "they do not show why. Where the wording differs, different answers are no contradiction.",
    )
    return grid(columns, cells, "Shared questions that two splits answer differently", notes)


def _example_table(rows: Sequence[Mapping[str, Any]]) -> Grid:
    """Return the first questions of the same text that were answered differently."""
    same = [row for row in rows if row["wording"] != DIFFERENT]
    columns = (
        *texts("splits", "readout", "label", "picture"),
        Column("question", "long"),
        *texts("first", "second"),
    )
    cells = [
        [
            f"{row['first']}, {row['second']}",
            *(row[name] for name in ("readout", "label", "image", "question_first")),
            *(row[name] for name in ("answer_first", "answer_second")),
        ]
        for row in same[:MOST_EXAMPLES]
    ]
    return grid(columns, cells, f"The first {len(cells):,} of {len(same):,} such answers")


# Another release


def other_release(data: RunData, names: Mapping[CellKey, str]) -> list[Finding]:
    """Return, by cell and pair of releases, what the second one changes."""
    findings = []
    for pair, rows in releases.pairs(data.releases).items():
        listed_rows = releases.examples(data.release_changes, pair, data.pair)
        tables = (releases.counts(rows), *([listed_rows] if listed_rows is not None else []))
        findings.append(Finding("", releases.name(pair), releases.sentences(rows, data.pair), tables))
    return findings


# Answers without a clear reading


def unclear(data: RunData, names: Mapping[CellKey, str]) -> list[Finding]:
    """Return, by cell, ties, unparsed and invalid answers, and answers that a quirk of a rule decided."""
    findings = []
    for cell in data.cells:
        rows = [row for split in data.splits for row in _unclear_rows(data, cell, split)]
        quirks = _quirk_rows(data, cell)
        tables = []
        if rows:
            columns = (*texts("split", "readout"), *numbers("questions", "ties", "unparsed", "invalid"))
            notes = ("A tie is read as no; unparsed counts as wrong; invalid answers are in no rate.",)
            tables.append(grid(columns, rows, "", notes))
        if quirks:
            columns = (*texts("readout", "quirk", "split"), *numbers("answers"))
            tables.append(grid(columns, quirks, "Answers that a quirk of the rule decided"))
        said = () if rows else ("No answer was unparsed or invalid, and no tie is known.",)
        findings.append(Finding("", _name(names, cell), said, tuple(tables)))
    return findings


def _unclear_rows(data: RunData, cell: CellKey, split: str) -> list[list[str]]:
    """Return the readouts of one split that have such answers."""
    rows = []
    for (where, labels, of_split, readout), row in data.score_index.items():
        if (where, labels, of_split) != (cell, data.labels[0], split) or row.confusion is None:
            continue
        matrix, ties = row.confusion, row.values["ties"]
        unparsed = matrix.unparsed_pos + matrix.unparsed_neg
        invalid = matrix.invalid_pos + matrix.invalid_neg
        if ties or unparsed or invalid:
            tied = "no logits" if ties is None else f"{ties:,}"
            rows.append([split, readout, f"{matrix.n:,}", tied, f"{unparsed:,}", f"{invalid:,}"])
    return rows


def _quirk_rows(data: RunData, cell: CellKey) -> list[list[str]]:
    """Return the flags of a decision file that marked any answer."""
    decisions = data.decisions.get(cell)
    readouts = decisions.metadata.get("readouts", {}) if decisions is not None else {}
    return [
        [readout, flag, split, f"{count:,}"]
        for readout, described in readouts.items()
        for flag, by_split in (described.get("flags") or {}).items()
        for split, count in by_split.items()
        if count
    ]


# What scoring scripts would print


def scripts(data: RunData, names: Mapping[CellKey, str]) -> list[Finding]:
    """Return, by cell, the own figures of every script whose rule the run applied."""
    tables = {cell: scripts_table(data, cell) for cell in data.cells}
    return [
        Finding("", _name(names, cell), (), (table,)) for cell, table in tables.items() if table is not None
    ]


# Emitted tokens that a readout misses


def excluded(data: RunData, names: Mapping[CellKey, str]) -> list[Finding]:
    """Return, by cell, the readouts of logits whose sets lack an emitted yes or no."""
    findings = []
    for cell in data.cells:
        found = missed(data, cell)
        if found is not None:
            said = missed_sentence(found, expected=on_purpose(data, cell))
            tables = (missed_table(found),) if found else ()
            findings.append(Finding("", _name(names, cell), (said,), tables))
    return findings
