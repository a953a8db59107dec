"""What a reader of the abstract wants to know first: one set of answers, two readouts, two scores."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from readout_audit.exact import printed
from readout_audit.report.charts import Chart, Pair, dumbbells
from readout_audit.report.emitted import compared_spellings, first_tokens
from readout_audit.report.grid import Column, Grid, grid, numbers, texts
from readout_audit.report.inputs import CellKey, GapKey, GapValue, RunData, short_names
from readout_audit.report.manifests import asked, records_by_settings
from readout_audit.report.relabelled import relabelled_gaps
from readout_audit.report.statement import statements
from readout_audit.report.text import listed, of, plural, points
from readout_audit.report.trust import advice
from readout_audit.report.words import NOT_ASKED, OWN_MEANS, SOURCES, in_words, label_name, label_words
from readout_audit.scores.blocks import ALL
from readout_audit.scores.confusion import Confusion
from readout_audit.scores.labels import OWN

DECIMALS = 4


class Compared(NamedTuple):
    """Two readouts of the same answers on one split under one label set.

    Attributes:
        gap: F1(before) - F1(after), exact; None where one is undefined.
        interval: 95% interval of the gap over images; None where it was not computed.
        left_out: resamples in which the gap is undefined, which the interval leaves out, of all; None for none.
        changed: rows that the two read differently, of rows that both read; None where they are not paired.
    """

    labels: str
    split: str
    before: Confusion
    after: Confusion
    gap: Fraction | None
    interval: tuple[Fraction, Fraction] | None
    left_out: tuple[int, int] | None
    changed: tuple[int, int] | None


class Headline(NamedTuple):
    """The result of one cell in sentences, a table and a picture.

    Attributes:
        asked: who was asked what.
        result: what a reader needs first: both scores, and which of them to trust.
        lines: the readout statements to print beside a score.
        warns: neither readout of the pair can be trusted.
        relabelled: the gap under five choices of labels and rows, by further label set.
    """

    name: str
    asked: str
    result: tuple[str, ...]
    lines: tuple[str, ...]
    warns: bool
    sentences: tuple[str, ...] = ()
    table: Grid | None = None
    chart: Chart | None = None
    relabelled: tuple[Grid, ...] = ()


class Notice(NamedTuple):
    """Something about the whole run, its first words apart."""

    title: str
    text: str


def headlines(data: RunData) -> list[Headline]:
    """Return the result of every cell, in the order of the score table."""
    names, records = short_names(data.cells), records_by_settings(data)
    return [headline(data, cell, names[cell], records) for cell in data.cells]


def notices(data: RunData) -> list[Notice]:
    """Return what has to be known before any number of the run is read."""
    found = [
        Notice("This is a demonstration.", demo_notice(data)),
        Notice("No model was asked.", not_asked_notice(data)),
    ]
    return [one for one in found if one.text]


def headline_lines(data: RunData) -> list[str]:
    """Return what the page says first, for a terminal: the notices, and the result of every cell on one line."""
    said = [f"{title} {text}" for title, text in notices(data)]
    return [*said, *(f"{one.name}: {' '.join(one.result)}" for one in headlines(data))]


def overview(data: RunData) -> Grid | None:
    """Return F1 of every cell under every readout on the hardest split; None for a run of one cell.

    What there is more of, cells or readouts, goes down the page: few columns fit on a screen.
    """
    if len(data.cells) < 2 or not data.splits:
        return None
    names, split, labels = short_names(data.cells), data.splits[-1], data.labels[0]
    readouts = list(dict.fromkeys(row.readout for row in data.scores))
    rows = []
    for cell in data.cells:
        found = [data.score_index.get((cell, labels, split, readout)) for readout in readouts]
        shown = [
            "–" if row is None or row.confusion is None else printed(row.confusion.f1, DECIMALS)
            for row in found
        ]
        rows.append((names[cell], *shown))
    notes = ("–: not read, or not known from this source.",) if any("–" in row for row in rows) else ()
    caption = f"F1 of all models on {split}, under each of {plural(len(readouts), 'readout')}"
    if len(readouts) <= len(rows):
        return grid((*texts("model"), *numbers(*readouts)), rows, caption, notes)
    named, *shown_by_readout = zip(*rows, strict=True)
    turned = [(readout, *cells) for readout, cells in zip(readouts, shown_by_readout, strict=True)]
    return grid((*texts("readout"), *numbers(*named)), turned, caption, notes)


DEMO_FOLDER = "resources/demo/models/"
"""Where the models lie whose effect was put there by their training (docs/demo.md)."""


def demo_models(data: RunData) -> list[str]:
    """Return the models of the run that this project trained for its demo."""
    found = (
        cell.model
        for cell, decisions in data.decisions.items()
        if str((decisions.metadata.get("settings") or {}).get("folder") or "").startswith(DEMO_FOLDER)
    )
    return list(dict.fromkeys(found))


def demo_notice(data: RunData) -> str:
    """Say what numbers of the demo's models are worth; empty where the run asked none of them."""
    models = demo_models(data)
    if not models:
        return ""
    are = "is a small model" if len(models) == 1 else "are small models"
    return (
        f"{listed(models)} {are} that this project trained on pictures it drew itself; how much the readouts "
        "disagree was put there by the training. The numbers show the mechanism and are no evidence about real models, "
        "neither about the size nor about the direction of the effect there."
    )


def not_asked_notice(data: RunData) -> str:
    """Say what a reproduced number is worth where answers come from the paper itself; empty for other sources."""
    sources = {cell.source for cell in data.cells}
    said = [text for source, text in NOT_ASKED.items() if source in sources]
    return " ".join(said)


def headline(data: RunData, cell: CellKey, name: str, records: Mapping[str, Mapping[str, Any]]) -> Headline:
    """Return the result of one cell; `records` are descriptions of record files by settings id."""
    found = {labels: compare(data, cell, labels) for labels in data.labels}
    rows = [row for compared in found.values() for row in compared]
    trust = advice(data, cell)
    lines = _lines(data, cell, trust.report, records)
    if not rows:
        unread = (_without_pair(data, cell), *trust.sentences)
        return Headline(name, _asked(data, cell), unread, lines, trust.warns)
    own, others = found[data.labels[0]], [found[labels] for labels in data.labels[1:]]
    scored = [_result(own[-1], data.pair), *_constant(own[-1], data.pair)]
    # Scores that cannot be relied on read like any others: the warning comes before them, and those that mean nothing
    # are no result.
    said = [*trust.sentences, *scored] if trust.warns else [*scored, *trust.sentences]
    result = trust.sentences if trust.void else tuple(said)
    sentences = [
        *(scored if trust.void else []),
        *_changes(own[-1]),
        *compared_spellings(data.decisions.get(cell), data.pair),
        *first_tokens(data.decisions.get(cell), data.pair),
        *(sentence for other in others for sentence in _other_labels(own, other)),
    ]
    return Headline(
        *(name, _asked(data, cell), result, lines, trust.warns, tuple(sentences)),
        _table(rows, data.pair),
        _chart(rows, data.pair),
        _relabelled(data, cell),
    )


def _lines(
    data: RunData, cell: CellKey, readouts: Sequence[str], records: Mapping[str, Mapping[str, Any]]
) -> tuple[str, ...]:
    """Return the statements of these readouts, as far as the decisions of the cell were given."""
    one = asked(data, cell, records)
    known = statements(one) if one is not None else {}
    return tuple(known[name] for name in readouts if name in known)


def _relabelled(data: RunData, cell: CellKey) -> tuple[Grid, ...]:
    """Return the gap of a cell under every choice of labels and rows, one table per further label set."""
    rows = [row for about in data.relabelled if about.cell == cell for row in about.rows]
    sets = dict.fromkeys(row["labels"] for row in rows)
    return tuple(
        relabelled_gaps([row for row in rows if row["labels"] == labels], data.splits) for labels in sets
    )


def compare(data: RunData, cell: CellKey, labels: str) -> list[Compared]:
    """Return the pair's scores on every split that has both readouts, hardest split last."""
    found = []
    for split in data.splits:
        rows = [data.score_index.get((cell, labels, split, readout)) for readout in data.pair]
        before, after = (row.confusion if row else None for row in rows)
        if before is None or after is None:
            continue
        gap = None if before.f1 is None or after.f1 is None else before.f1 - after.f1
        quantities = data.gap.get(GapKey(cell, labels, split, *data.pair), {})
        interval = _interval(quantities.get("delta_f1_ci_low"), quantities.get("delta_f1_ci_high"))
        found.append(
            Compared(
                *(labels, split, before, after, gap, interval),
                _counts(quantities.get("delta_f1_ci_undefined")),
                _changed(quantities.get("agreement")),
            )
        )
    return found


def _interval(low: GapValue | None, high: GapValue | None) -> tuple[Fraction, Fraction] | None:
    """Return both ends of an interval, or None."""
    ends = (low.exact if low else None, high.exact if high else None)
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def _counts(share: GapValue | None) -> tuple[int, int] | None:
    """Return a share as counted."""
    if share is None or share.numerator is None or share.denominator is None:
        return None
    return share.numerator, share.denominator


def _changed(agreement: GapValue | None) -> tuple[int, int] | None:
    """Return (rows read differently, rows read by both) from the share read alike."""
    counts = _counts(agreement)
    return None if counts is None else (counts[1] - counts[0], counts[1])


def _asked(data: RunData, cell: CellKey) -> str:
    """Say who was asked what."""
    counts = {
        row.split: row.confusion.n
        for row in data.scores
        if row.cell == cell
        and row.labels == data.labels[0]
        and row.split in data.splits
        and row.confusion is not None
        and row.subset == ALL
    }
    splits = listed([f"{counts[split]:,} {split}" for split in data.splits if split in counts])
    total = f"{sum(counts.values()):,} yes/no questions about pictures" if counts else "questions"
    return (
        f"{cell.model} ({cell.precision}, prompt '{cell.template}') was asked {total} of {cell.dataset}: "
        f"{splits}. It was {SOURCES.get(cell.source, cell.source)}."
    )


def _without_pair(data: RunData, cell: CellKey) -> str:
    """Say why a cell has no gap."""
    decisions = data.decisions.get(cell)
    reasons = [
        f"{name}: {decisions.unavailable[name].removeprefix(f'{name}: ').rstrip('.')}"
        for name in data.pair
        if decisions is not None and name in decisions.unavailable
    ]
    why = f" ({'; '.join(reasons)})" if reasons else ""
    return f"The pair {data.pair[0]} and {data.pair[1]} was not read from it{why}."


def _result(hardest: Compared, pair: tuple[str, str]) -> str:
    """Say what the readout moves on the hardest split."""
    before, after = (printed(confusion.f1, DECIMALS) for confusion in (hardest.before, hardest.after))
    first, second = (in_words(name) for name in pair)
    found = (
        f"On the {hardest.split} questions its F1 is {before} if the answers are read by {first}, and {after} "
        f"if they are read by {second}"
    )
    if hardest.gap is None:
        return f"{found}. The gap between them is undefined."
    ends = ""
    if hardest.interval is not None:
        low, high = (points(end) for end in hardest.interval)
        left_out = (
            f"; it leaves out {of(*hardest.left_out)} resamples without a gap" if hardest.left_out else ""
        )
        ends = f" (95% interval over pictures: {low} to {high}{left_out})"
    return f"{found}: a difference of {points(hardest.gap)} points{ends}."


def _constant(hardest: Compared, pair: tuple[str, str]) -> list[str]:
    """Say which readout gives every answer of the hardest split the same word, whatever the picture shows."""
    counted = [
        (name, {"yes": one.tp + one.fp, "no": one.tn + one.fn}, one.valid)
        for name, one in zip(pair, (hardest.before, hardest.after), strict=True)
    ]
    constant = {word: [name for name, n, of_all in counted if n[word] == of_all] for word in ("yes", "no")}
    return [
        f"{listed(names)} {'takes' if len(names) == 1 else 'take'} every one of these answers for a {word}."
        for word, names in constant.items()
        if names
    ]


def _changes(hardest: Compared) -> list[str]:
    """Say how many answers of the hardest split the two ways read differently; nothing where they are not paired."""
    if hardest.changed is None:
        return []
    return [
        "Model, pictures, questions and outputs are the same; only the way of reading differs. "
        f"The two ways disagree on {of(*hardest.changed)} of these answers."
    ]


def _other_labels(own: Sequence[Compared], other: Sequence[Compared]) -> list[str]:
    """Say what the gap is against another label set, and how many times that is the one against the own."""
    own_gaps = {row.split: row.gap for row in own}
    pairs = [(row, own_gaps.get(row.split)) for row in other]
    known = [(row, row.gap, gap) for row, gap in pairs if row.gap is not None and gap is not None]
    if not known:
        return []
    gaps = listed([points(gap) for _, gap, _ in known])
    splits = listed([row.split for row, _, _ in known])
    sentence = f"Against {label_words(known[0][0].labels)} the gap is {gaps} points ({splits})"
    if all(before > 0 for _, _, before in known):
        times = listed([printed(gap / before, 1) for _, gap, before in known])
        sentence += f": {times} times the gap against the release's own labels"
    return [
        f"{sentence}. Which rows are kept and how many are positive has a part in that: the last table below takes "
        "the steps one by one."
    ]


def _table(rows: Sequence[Compared], pair: tuple[str, str]) -> Grid:
    """Return the scores under both readouts."""
    columns: tuple[Column, ...] = (
        *texts("labels", "split"),
        *numbers("questions"),
        *numbers(*pair, group="F1"),
        *numbers("points", group="gap"),
        Column("95% interval", "number", "gap"),
        *numbers(*pair, group="yes-rate"),
        *numbers("read differently"),
    )
    cells: list[tuple[str, ...]] = [
        (
            *(label_name(row.labels), row.split, f"{row.before.n:,}"),
            *(printed(confusion.f1, DECIMALS) for confusion in (row.before, row.after)),
            points(row.gap),
            "not computed" if row.interval is None else " to ".join(points(end) for end in row.interval),
            *(printed(confusion.yes_rate, 3) for confusion in (row.before, row.after)),
            "not known" if row.changed is None else f"{row.changed[0]:,}",
        )
        for row in rows
    ]
    notes: tuple[str, ...] = (
        "F1 is 2TP / (2TP + FP + misses). The gap is the F1 of the first readout minus that of the second, "
        "exact before it is rounded, times 100 (tables in the paper's form print it without that factor).",
    )
    if all(row.labels == OWN for row in rows):
        columns, cells = columns[1:], [row[1:] for row in cells]
    else:
        notes = (*notes, OWN_MEANS)
    return grid(columns, cells, "F1 and yes-rate under both readouts", notes)


def _chart(rows: Sequence[Compared], pair: tuple[str, str]) -> Chart | None:
    """Return F1 under both readouts as a picture; None where nothing is defined."""
    several = len({row.labels for row in rows}) > 1
    pairs = [
        Pair(
            f"{row.split}, {label_name(row.labels)} labels" if several else row.split,
            row.before.f1,
            row.after.f1,
            points(row.gap) if row.gap is not None else "",
        )
        for row in rows
        if row.before.f1 is not None and row.after.f1 is not None
    ]
    return dumbbells(pairs, pair) if pairs else None
