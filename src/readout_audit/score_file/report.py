"""The outputs of `readout-audit score`: CSV, JSON and one HTML page."""

import csv
import io
from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape
from pathlib import Path
from typing import Any

from readout_audit.datasets.objects import is_misspelt
from readout_audit.exact import printed, round_half_up
from readout_audit.fileio import write_json, write_text
from readout_audit.readouts.harness.base import FIGURES, HarnessReadout
from readout_audit.readouts.registry import get
from readout_audit.report.text import code
from readout_audit.score_file.scoring import OWN, Audit, ScoreRow
from readout_audit.score_file.summary import (
    DECIMALS,
    aggregate_words,
    f1_table,
    headline,
    label_words,
    own_text,
    quirk_text,
    remarks,
    unparsed,
)
from readout_audit.scores.blocks import AGGREGATES

COUNTS = ("n", "tp", "fp", "tn", "fn", "unparsed_pos", "unparsed_neg", "invalid_pos", "invalid_neg")
RATES = ("f1", "precision", "recall", "accuracy", "yes_rate", "f1_parsed_only")
MOST_EXAMPLES = 12
LONGEST_EXAMPLE = 160

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem;color:#1b1b1b;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}h3{font-size:1rem;margin:1rem 0 .3rem}
small{color:#555}li{margin:.2rem 0}p,li,figcaption{max-width:62rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;border-bottom:1px solid #d0d0d0;text-align:right}
th:first-child,td:first-child,td.text{text-align:left}td{white-space:nowrap}
thead th{border-bottom:2px solid #555;vertical-align:bottom}
.upright thead th+th{writing-mode:vertical-rl;transform:rotate(180deg);text-align:left}
.upright td,.upright th{padding:.25rem .4rem}
figure{margin:1rem 0}figcaption{padding:.4rem 0;color:#444}
code{background:#f1f1f1;padding:0 .2rem;overflow-wrap:anywhere}
"""


def write_outputs(audit: Audit, folder: Path) -> dict[str, Path]:
    """Write scores.csv, scores.json and report.html; return their paths by kind."""
    paths = {"table": folder / "scores.csv", "JSON": folder / "scores.json", "page": folder / "report.html"}
    write_text(paths["table"], as_csv(audit))
    write_json(paths["JSON"], as_json(audit))
    write_text(paths["page"], as_html(audit))
    return paths


def as_csv(audit: Audit) -> str:
    """Return one line per label set, split and readout; rates with six decimals, empty where undefined."""
    flags = sorted({flag for row in audit.scores for flag in row.flags})
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    own = [f"own_{name}" for name in FIGURES]
    writer.writerow(["labels", "split", "readout", *COUNTS, *RATES, *flags, *own])
    for row in audit.scores:
        figures = row.own or {}
        writer.writerow(
            [
                *(row.labels, row.split, row.readout),
                *("" if row.counts[name] is None else row.counts[name] for name in COUNTS),
                *(_decimal(row.rates[name]) for name in RATES),
                *(row.flags.get(flag, "") for flag in flags),
                *(_decimal(figures.get(name)) for name in FIGURES),
            ]
        )
    return stream.getvalue()


def _decimal(value: Fraction | None) -> str:
    """Return a rate with six decimals, empty where it is undefined."""
    return "" if value is None else f"{round_half_up(value, 6):f}"


def as_json(audit: Audit) -> dict[str, Any]:
    """Return everything the audit found as JSON values."""
    return {
        "schema": 1,
        "answers": [
            {
                "file": answers.name,
                "format": answers.format,
                "rows": answers.rows,
                "facts": dict(answers.facts),
                "paired_by": pairing.how,
                "prompt": pairing.wrapping._asdict() if pairing.wrapping else None,
            }
            for answers, pairing in zip(audit.answers, audit.pairings, strict=True)
        ],
        "release": audit.release,
        "questions": [_question_file(file) for pairing in audit.pairings for file in pairing.files],
        "labels": dict(audit.labels),
        "aggregates": AGGREGATES,
        "aggregates_are_over": {labels: aggregate_words(audit, labels) for labels in audit.labels},
        "readouts": {name: describe(name) for name in audit.decisions},
        "not_available": dict(audit.unavailable),
        "scores": [_score(row) for row in audit.scores],
        "disagreements": audit.disagreements(),
    }


def _question_file(file: Any) -> dict[str, Any]:
    """Return what a reader should know about one question file."""
    return {
        "file": str(file.path),
        "split": file.split,
        "releases": sorted(file.releases),
        "recognised": file.recognised,
        "rows": len(file.rows),
        "distinct": len(set(file.keys)),
        "misspelt": sum(is_misspelt(question) for _, question in file.keys),
    }


def describe(name: str) -> dict[str, Any]:
    """Return the rule, the source and the quirks of a readout."""
    readout = get(name)
    quirks = dict(readout.quirks) if isinstance(readout, HarnessReadout) else {}
    return {
        "rule": readout.rule,
        "source": readout.source,
        "reads_labels": readout.needs_labels,
        "quirks": quirks,
    }


def _score(row: ScoreRow) -> dict[str, Any]:
    """Return one line of the result; rates as floats, null where undefined."""
    return {
        "labels": row.labels,
        "split": row.split,
        "readout": row.readout,
        **row.counts,
        **{name: _float(value) for name, value in row.rates.items()},
        "flags": row.flags,
        "own_figures": None if row.own is None else {name: _float(value) for name, value in row.own.items()},
    }


def _float(value: Fraction | None) -> float | None:
    """Return a rate as a float."""
    return None if value is None else float(value)


def as_html(audit: Audit) -> str:
    """Return one page without outside files or scripts; every text from a file is escaped."""
    body = [
        "<h1>How these answers score, by the rule that reads them</h1>",
        f"<p><strong>{code(headline(audit))}</strong></p>",
        *(f"<p>{code(line)}</p>" for line in remarks(audit) if line),
        _files_html(audit),
        *(_labels_html(audit, labels, first=labels == next(iter(audit.labels))) for labels in audit.labels),
        _quirks_html(audit),
        _disagreement_html(audit),
        _examples_html(audit),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Readout audit: {escape(audit.release)}</title><style>{STYLE}</style></head><body>\n"
        + "\n".join(part for part in body if part)
        + "\n</body></html>\n"
    )


def _table(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, upright: bool = False
) -> str:
    """Return a table whose cells are escaped here; its caption stands outside the box that scrolls, and so wraps.

    With `upright` the headings run upwards, for a column per readout.
    """
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    lines = [
        "<tr>"
        + f'<th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    ]
    opening = '<table class="upright">' if upright else "<table>"
    return (
        f'<figure><figcaption>{escape(caption)}</figcaption><div class="wide" role="region" tabindex="0" '
        f'aria-label="{escape(caption)}">{opening}<thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div></figure>"
    )


def _files_html(audit: Audit) -> str:
    """Return what was given and how it was paired."""
    parts = ["<h2>What was scored</h2>", f"<p>Release: {escape(audit.release)}.</p>", "<ul>"]
    for answers, pairing in zip(audit.answers, audit.pairings, strict=True):
        facts = "; ".join(
            f"{name}: {value}" for name, value in answers.facts.items() if not isinstance(value, Mapping)
        )
        prompt = ""
        if pairing.wrapping and any(pairing.wrapping):
            before, after = pairing.wrapping
            prompt = f" Around each question stood <code>{escape(repr(before))}</code> and <code>{escape(repr(after))}</code>."
        parts.append(
            f"<li><code>{escape(answers.name)}</code>: {escape(answers.format)}, {answers.rows} answers, paired by "
            f"{escape(pairing.how)}.{prompt} {_making(facts)}</li>"
        )
    parts.append(
        "</ul><p>Decoding, seed, prompt and answer length change a score as well; rows of two such pages compare only "
        "where these are known to agree.</p>"
    )
    questions = [_question_file(file) for pairing in audit.pairings for file in pairing.files]
    rows = [
        [q["split"], " = ".join(q["releases"]), *(str(q[k]) for k in ("rows", "distinct", "misspelt"))]
        for q in questions
    ]
    parts.append(_table("Question files", ["split", "release", "questions", "distinct", "“imange”"], rows))
    return "\n".join(parts)


def _making(facts: str) -> str:
    """Return what the file says about how its answers were made, escaped."""
    if not facts:
        return "The file does not say how the answers were made."
    return f"The file says how the answers were made: {escape(facts)}."


def _labels_html(audit: Audit, labels: str, *, first: bool) -> str:
    """Return F1 and unparsed, then the yes-rate, by split under one label set; the first one says what each rule is."""
    splits, table = f1_table(audit, labels)
    real = [split for split in splits if split not in AGGREGATES]
    f1 = [
        [
            name,
            *(printed(row[split].rates["f1"], DECIMALS) for split in splits),
            own_text(name, row),
            str(unparsed(row)),
            quirk_text(row),
        ]
        for name, row in table.items()
    ]
    yes_rates = [
        [name, *(printed(row[split].rates["yes_rate"], 3) for split in real)] for name, row in table.items()
    ]
    about = [
        f"{audit.labels[labels]} of {audit.questions.num_rows} rows have a label. An unparsed answer counts as wrong.",
        *(f"{name}: {words}." for name, words in aggregate_words(audit, labels).items()),
    ]
    header = ["readout", *splits, "script’s own", "unparsed", "decided by a quirk"]
    return (
        f"<h2>Against {escape(label_words(audit, labels))}</h2><p>{escape(' '.join(about))}</p>"
        + _table("F1", header, f1)
        + (_rules_html(audit) if first else "")
        + _table("Share of yes among the answers", ["readout", *real], yes_rates)
    )


def _quirks_html(audit: Audit) -> str:
    """Return what each scoring script would itself print, and what its quirks decided."""
    rows = [
        [
            row.readout,
            audit.release if row.labels == OWN else row.labels,
            row.split,
            *(_own_figure(row.own, name) for name in FIGURES),
            _quirks(row),
        ]
        for row in audit.scores
        if row.own is not None and row.split not in AGGREGATES
    ]
    if not rows:
        return ""
    caption = (
        "Each script's own figures, computed as it computes them, and its quirks (explained below); a number is of rows "
        "that a quirk decided."
    )
    header = ["script", "labels of", "split", *FIGURES, "quirks"]
    quirks = "".join(
        f"<li><em>{escape(quirk)}</em> of {escape(name)}: {code(text)}.</li>"
        for name in dict.fromkeys(row[0] for row in rows)
        for quirk, text in describe(name)["quirks"].items()
    )
    heading = "<h2>What the scripts themselves would report</h2>"
    return heading + _table(caption, header, rows) + f"<ul>{quirks}</ul>"


def _quirks(row: ScoreRow) -> str:
    """Return the quirks of a script, those that decide single rows with their number."""
    return ", ".join(
        f"{quirk}: {row.flags[quirk]}" if quirk in row.flags else quirk
        for quirk in describe(row.readout)["quirks"]
    )


def _own_figure(own: Mapping[str, Fraction | None], name: str) -> str:
    """Return one figure of a script; a script that prints others but not this one does not report it."""
    if own[name] is None and own["accuracy"] is not None:
        return "not reported"
    return printed(own[name], DECIMALS)


def _disagreement_html(audit: Audit) -> str:
    """Return how often each pair of readouts decides differently."""
    names = list(audit.decisions)
    if len(names) < 2:
        return ""
    counts = {pair: sum(by_split.values()) for pair, by_split in audit.disagreements().items()}
    rows = [
        [
            one,
            *(
                "" if one == other else str(counts.get(f"{one}|{other}", counts.get(f"{other}|{one}", 0)))
                for other in names
            ),
        ]
        for one in names
    ]
    caption = f"Rows on which two readouts decide differently, of {audit.questions.num_rows}."
    return "<h2>Disagreement</h2>" + _table(caption, ["", *names], rows, upright=True)


def _examples_html(audit: Audit) -> str:
    """Return some answers that not all rules read alike, with what each makes of them."""
    if audit.texts is None or len(audit.decisions) < 2:
        return ""
    names = list(audit.decisions)
    seen: dict[str, list[str]] = {}
    for row, text in enumerate(audit.texts):
        read = [str(audit.decisions[name][row]) for name in names]
        if len(set(read)) > 1 and (text or "") not in seen:
            seen[text or ""] = read
            if len(seen) == MOST_EXAMPLES:
                break
    if not seen:
        return "<h2>Answers that are read differently</h2><p>None: all rules read every answer alike.</p>"
    rows = [[repr(_shortened(text)), *read] for text, read in seen.items()]
    caption = f"The first {len(rows)} different answers on which the rules part."
    return "<h2>Answers that are read differently</h2>" + _table(
        caption, ["answer", *names], rows, upright=True
    )


def _shortened(text: str) -> str:
    """Return a text cut to a length that a table bears."""
    return text if len(text) <= LONGEST_EXAMPLE else text[:LONGEST_EXAMPLE] + "…"


def _rules_html(audit: Audit) -> str:
    """Return the rule and source of every readout, and why some are not there."""
    items = []
    for name in audit.decisions:
        about = describe(name)
        items.append(
            f"<li><strong>{escape(name)}</strong>: {code(about['rule'])}. "
            f"<small>Source: {escape(about['source'])}.</small></li>"
        )
    for name, why in audit.unavailable.items():
        items.append(f"<li><strong>{escape(name)}</strong> is not available: {escape(why)}</li>")
    return "<h3>What each rule does</h3><ul>" + "".join(items) + "</ul>"
