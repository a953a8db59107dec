"""How the run was made: models and settings, what each readout read, files and versions."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

from readout_audit.exact import printed
from readout_audit.fileio import read_json
from readout_audit.report.grid import Column, Grid, grid, numbers, texts
from readout_audit.report.inputs import CellKey, RunData, ScoreRow, short_names
from readout_audit.report.statement import (
    NOT_RECORDED,
    Asked,
    model_words,
    precision_words,
    prompt_words,
    read_words,
    record_description,
    release_words,
)
from readout_audit.report.text import flat, key_text
from readout_audit.report.words import OWN_MEANS, label_name

DECIMALS = 4

RATES = {
    "f1": "f1",
    "precision": "precision_rate",
    "recall": "recall",
    "accuracy": "accuracy",
    "yes_rate": "yes_rate",
}
"""Rates of a matrix -> their columns in the score table."""

LONGEST = 300
"""Characters of one value; the rest is counted, not shown."""

RECORD_SUFFIX = ".parquet"


KINDS = {"questions": "Questions", "labels": "Labels", "tokens": "Tokenizers", "records": "Records"}
"""Folder of a run -> what the manifests in it are about."""

OTHERS = "Other files"

MOST_COLUMNS = 5
"""More things of one kind than this are told one below the other."""


class Manifest(NamedTuple):
    """What says how something was made: a cell's settings, or one file.

    Attributes:
        name: the cell, or the file's place in the run.
        tables: its values, those that belong together in one table.
    """

    name: str
    tables: tuple[Grid, ...]


class Manifests(NamedTuple):
    """The manifests of one kind."""

    kind: str
    files: tuple[Manifest, ...]


def asked(data: RunData, cell: CellKey, records: Mapping[str, Mapping[str, Any]]) -> Asked | None:
    """Return what was asked in a cell; None where the run gave no decisions of it."""
    decisions = data.decisions.get(cell)
    if decisions is None:
        return None
    counts = {split: int(decisions.in_split(split).sum()) for split in decisions.splits}
    record = (
        records.get(settings_id) if (settings_id := decisions.metadata.get("record_settings_id")) else None
    )
    return Asked(decisions.cell, counts, decisions.metadata, record or {})


def records_by_settings(data: RunData) -> dict[str, dict[str, Any]]:
    """Return the metadata of the record files among the manifests, by their settings id."""
    described = (record_description(path) for path in data.files.manifests if path.suffix == RECORD_SUFFIX)
    return {str(one["settings_id"]): one for one in described if one.get("settings_id")}


def settings_tables(data: RunData) -> list[Manifest]:
    """Return, for each cell whose decisions were given, how it was asked."""
    names, records = short_names(data.cells), records_by_settings(data)
    there = [(names[cell], one) for cell in data.cells if (one := asked(data, cell, records)) is not None]
    columns = (Column("setting"), Column("value", "long"))
    return [Manifest(name, (grid(columns, list(_facts(one).items())),)) for name, one in there]


def _facts(one: Asked) -> dict[str, str]:
    """Return what a reader needs to ask the same questions again."""
    known = {
        "source": one.cell["source"],
        "questions": release_words(one),
        "model": model_words(one),
        "prompt": prompt_words(one),
        "precision": precision_words(one),
    }
    settings = one.settings
    rest = {
        key: settings[key]
        for key in ("image_mode", "attention", "engine", "max_new_tokens")
        if key in settings
    }
    names = ("settings_id", "adapter", "parameter_dtypes", "first_input_ids", "decoding", "versions")
    rest |= {key: one.record[key] for key in names if key in one.record}
    if "files" in one.described:
        rest["files"] = one.described["files"]
    return known | flat(rest)


def readouts_table(data: RunData) -> Grid | None:
    """Return what every readout of every cell read; None where the run gave no decisions."""
    names, rows = short_names(data.cells), []
    for cell in data.cells:
        decisions = data.decisions.get(cell)
        described = decisions.metadata.get("readouts", {}) if decisions is not None else {}
        rows += [[names[cell], name, *_readout_cells(readout)] for name, readout in described.items()]
    if not rows:
        return None
    columns = (
        *texts("cell", "readout", "looks at"),
        *(Column(n, "long") for n in ("reads", "rule", "source of the rule")),
    )
    if len({row[0] for row in rows}) == 1:
        return grid(columns[1:], [row[1:] for row in rows])
    return grid(columns, rows)


def _readout_cells(readout: Mapping[str, Any]) -> list[str]:
    """Return kind, ids or words, rule and source of one readout."""
    if not readout.get("available", True):
        return [str(readout.get("kind")), f"not available: {readout.get('why_not')}", "–", "–"]
    return [
        {"logit": "logits", "string": "text"}.get(str(readout.get("kind")), str(readout.get("kind"))),
        read_words(readout),
        str(readout.get("rule") or NOT_RECORDED),
        str(readout.get("source") or NOT_RECORDED),
    ]


def manifests(data: RunData) -> list[Manifests]:
    """Return every manifest by kind, the kinds in the order of `KINDS`.

    Raises:
        AuditError: a file cannot be read.
    """
    by_kind: dict[str, list[Manifest]] = {kind: [] for kind in (*KINDS.values(), OTHERS)}
    for path in data.files.manifests:
        by_kind[_kind(path)].append(_manifest(path))
    return [Manifests(kind, tuple(files)) for kind, files in by_kind.items() if files]


def _kind(path: Path) -> str:
    """Return what a manifest is about, by the folder it lies in."""
    return next((KINDS[part] for part in reversed(path.parts[:-1]) if part in KINDS), OTHERS)


def _manifest(path: Path) -> Manifest:
    """Return one manifest."""
    content = record_description(path) if path.suffix == RECORD_SUFFIX else read_json(path, "the manifest")
    return Manifest(_place(path), grouped_values(content))


def grouped_values(content: object) -> tuple[Grid, ...]:
    """Return JSON values as tables: single values first, then one table for each named group of values.

    A group of a few like things (the splits of a release) has one column for each of them.
    """
    if not isinstance(content, Mapping):
        return (_values({"value": content}, ""),)
    groups = {str(name): value for name, value in content.items() if isinstance(value, Mapping) and value}
    alone = {str(name): value for name, value in content.items() if str(name) not in groups}
    tables = [_values(alone, "")] if alone else []
    return (*tables, *(_group(key_text(name), value) for name, value in groups.items()))


def _group(name: str, value: Mapping[str, Any]) -> Grid:
    """Return one group of values."""
    members = list(value.values())
    alike = 1 < len(members) <= MOST_COLUMNS and all(isinstance(one, Mapping) and one for one in members)
    if not alike:
        return _values(value, name)
    flats = [flat(one) for one in members]
    keys = dict.fromkeys(key for one in flats for key in one)
    columns = (Column("name"), *(Column(key_text(member), "long") for member in value))
    return grid(columns, [[key, *(_shortened(one.get(key, "–")) for one in flats)] for key in keys], name)


def _values(values: Mapping[str, object], caption: str) -> Grid:
    """Return names and values, one row each."""
    rows = [[name or "value", _shortened(text)] for name, text in flat(values).items()]
    return grid((Column("name"), Column("value", "long")), rows, caption)


def _place(path: Path) -> str:
    """Return a file's place inside the run; what lies above it is the machine's."""
    parts = path.parts
    for root in ("results", "resources"):
        if root in parts:
            return "/".join(parts[parts.index(root) :])
    return path.name


def _shortened(text: str) -> str:
    """Return a value, or its beginning and how long it is."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text):,} characters)"


def scores_table(data: RunData) -> Grid:
    """Return every score of the run: counts, rates and intervals, one row per labels, split and readout."""
    names = short_names(data.cells)
    columns = (
        *texts("cell", "labels", "split", "rows", "readout"),
        *numbers("n", "TP", "FP", "TN", "FN", "unparsed", "invalid", "ties", "F1", "95% interval"),
        *numbers("precision", "recall", "accuracy", "yes-rate"),
    )
    rows = [
        [names[row.cell], label_name(row.labels), row.split, row.subset, row.readout, *_score_cells(row)]
        for row in data.scores
    ]
    return grid(columns, rows, "", (OWN_MEANS,))


def _score_cells(row: ScoreRow) -> list[str]:
    """Return counts and rates of one score row; what is undefined is said to be."""

    def counted(*columns: str) -> str:
        known = [row.values[column] for column in columns]
        return "–" if None in known else f"{sum(known):,}"

    ends = [_float(row.values[name]) for name in ("f1_low", "f1_high")]
    interval = "–" if None in ends else " to ".join(printed(end, DECIMALS) for end in ends)
    rates = [printed(_rate(row, name), DECIMALS) for name in RATES]
    return [
        *(counted(name) for name in ("n", "tp", "fp", "tn", "fn")),
        *(counted(f"{name}_pos", f"{name}_neg") for name in ("unparsed", "invalid")),
        counted("ties"),
        *(rates[0], interval, *rates[1:]),
    ]


def _rate(row: ScoreRow, name: str) -> Fraction | None:
    """Return a rate exactly from the matrix; of a row without one, as it stands in the table."""
    if row.confusion is None:
        return _float(row.values[RATES[name]])
    rate: Fraction | None = getattr(row.confusion, name)
    return rate


def _float(value: float | None) -> Fraction | None:
    """Return the exact value of a float."""
    return None if value is None else Fraction(value)
