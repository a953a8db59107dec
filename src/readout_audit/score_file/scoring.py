"""Score paired answers under every readout that applies to them, against every label set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from readout_audit.contracts import DECISION_IDENTITY, DECISIONS, LABELS, RECORDS
from readout_audit.errors import AuditError
from readout_audit.readouts.base import Decided, Readout
from readout_audit.readouts.harness.base import Figures, HarnessReadout
from readout_audit.readouts.registry import READOUTS, get
from readout_audit.score_file.answers import Answers
from readout_audit.score_file.pairing import Pairing
from readout_audit.score_file.questions import SplitFile, question_table, release_name
from readout_audit.scores.blocks import MACRO, POOLED
from readout_audit.scores.confusion import ABSENT, Codes, Confusion, total
from readout_audit.scores.decisions import Decisions
from readout_audit.scores.labels import LabelSet
from readout_audit.scores.table import Entry, Rates, count_scores, counts_of, rates_of

OWN, REPOPE = "pope", "repope"


class ScoreRow(NamedTuple):
    """One line of the result.

    Attributes:
        labels: whose labels.
        split: a split, or macro, pooled or distinct.
        readout: how the answers were read.
        counts: as `scores.table.counts_of`.
        rates: exact rates of this project: unparsed counts as wrong, the yes-rate is of the answers.
        flags: rows that a quirk of a script's rule decided, by quirk; empty for aggregates but pooled.
        own: what the script itself would print; None where the rule is no script's.
    """

    labels: str
    split: str
    readout: str
    counts: dict[str, int | None]
    rates: Rates
    flags: dict[str, int]
    own: Figures | None


@dataclass(frozen=True)
class Audit:
    """Everything about the given answers that the outputs show.

    Attributes:
        answers: the answer files.
        pairings: how each was paired.
        release: the release(s) they answer.
        questions: the answered question rows, under `contracts.QUESTIONS`.
        texts: the answer to each; None for decisions without texts.
        decisions: readout -> decision of each row (of label-reading rules, under the release's labels).
        unavailable: readout -> why it could not be applied.
        labels: label set -> rows it holds.
        scores: the result.
    """

    answers: Sequence[Answers]
    pairings: Sequence[Pairing]
    release: str
    questions: pa.Table
    texts: Sequence[str | None] | None
    decisions: Mapping[str, npt.NDArray[np.object_]]
    unavailable: Mapping[str, str]
    labels: Mapping[str, int]
    scores: Sequence[ScoreRow]

    def disagreements(self) -> dict[str, dict[str, int]]:
        """Return "a|b" -> split -> rows on which the two readouts decide differently."""
        splits = np.array(self.questions["split"].to_pylist())
        names = sorted(set(splits))
        return {
            f"{one}|{other}": {
                str(split): int(((self.decisions[one] != self.decisions[other]) & (splits == split)).sum())
                for split in names
            }
            for one, other in combinations(self.decisions, 2)
        }


def audit(pairs: Sequence[tuple[Answers, Pairing]], repope: Sequence[SplitFile]) -> Audit:
    """Score the answers of one model.

    Args:
        pairs: answer files with their pairing; together they answer each split at most once.
        repope: RePOPE's split files, or none.

    Raises:
        AuditError: the files overlap, are of different releases or kinds, or the label set fits none of them.
    """
    files = [file for _, pairing in pairs for file in pairing.files]
    releases = frozenset.intersection(*(pairing.releases for _, pairing in pairs))
    splits = [file.split for file in files]
    if not releases or len(set(splits)) < len(splits):
        raise AuditError(
            f"{', '.join(answers.name for answers, _ in pairs)}: they answer {', '.join(f.name for f in files)}; files "
            "scored together must be one model's answers to different splits of one release."
        )
    chosen = [sorted(rows) for _, pairing in pairs for rows in pairing.rows]
    questions = question_table(files, chosen, release_name(releases))
    records, meta = _records(pairs, questions)
    _check_namespace(files, repope)
    sets = _label_sets(questions, repope)
    decided, unavailable = _decide(pairs, records, meta)
    rows: list[ScoreRow] = []
    answers_of: dict[str, npt.NDArray[np.object_]] = {}
    for label_set in sets:
        here, missing = _decide_by_labels(records, meta, label_set) if decided.readable else ({}, {})
        unavailable |= missing
        everything = {**decided.decided, **here}
        answers_of = answers_of or {name: _objects(one.decision) for name, one in everything.items()}
        rows += _score(questions, everything, label_set)
    return Audit(
        answers=[answers for answers, _ in pairs],
        pairings=[pairing for _, pairing in pairs],
        release=release_name(releases),
        questions=questions,
        texts=records["new_text"].to_pylist() if decided.readable else None,
        decisions=answers_of,
        unavailable=unavailable,
        labels={label_set.name: int((label_set.codes != ABSENT).sum()) for label_set in sets},
        scores=rows,
    )


def _records(
    pairs: Sequence[tuple[Answers, Pairing]], questions: pa.Table
) -> tuple[pa.Table, Mapping[str, Any]]:
    """Return one record row per question row: our own record file's, or the answers' texts alone."""
    if any(answers.records is not None for answers, _ in pairs):
        if len(pairs) > 1:
            raise AuditError("a record file holds all splits of a model; give it alone.")
        answers, pairing = pairs[0]
        rows = [rows[question] for rows in pairing.rows for question in sorted(rows)]
        assert answers.records is not None
        return answers.records.take(pa.array(rows)), answers.meta
    texts: list[str | None] = []
    status: list[str] = []
    for answers, pairing in pairs:
        for row in (rows[question] for rows in pairing.rows for question in sorted(rows)):
            texts.append(answers.text[row] if answers.text is not None else None)
            status.append("invalid" if answers.invalid[row] else "ok")
    n = len(texts)
    columns: dict[str, Any] = {field.name: pa.nulls(n, field.type) for field in RECORDS}
    columns |= {name: questions[name] for name in ("uid", "image", "object", "question")}
    columns |= {"prompt": questions["question"], "new_text": pa.array(texts, pa.string()), "status": status}
    return pa.table(columns, schema=RECORDS), {}


def _label_sets(questions: pa.Table, repope: Sequence[SplitFile]) -> list[LabelSet]:
    """Return the release's own labels, and RePOPE's where its files are given."""
    own = np.array([LABELS.index(label) for label in questions["label"].to_pylist()], dtype=np.int8)
    sets = [LabelSet(OWN, own, {})]
    if repope:
        lookup = _labels_by_object(repope)
        asked = zip(questions["image"].to_pylist(), questions["object"].to_pylist(), strict=True)
        words = [lookup.get(key) for key in asked]
        codes = np.array([ABSENT if word is None else LABELS.index(word) for word in words], dtype=np.int8)
        if (codes == ABSENT).all():
            raise AuditError(
                f"{', '.join(str(file.path) for file in repope)}: none of these labels is about an image and object "
                "that was asked; give the label set of the same images."
            )
        sets.append(LabelSet(REPOPE, codes, {}))
    return sets


def _check_namespace(files: Sequence[SplitFile], repope: Sequence[SplitFile]) -> None:
    """Refuse labels of another name space: POPE over A-OKVQA asks about COCO's pictures under labels of its own."""
    asked, labelled = ({one.namespace for one in some} - {None} for some in (files, repope))
    if asked and labelled and not asked & labelled:
        raise AuditError(
            f"{repope[0].path}: these labels are of questions about {_one(labelled)}, and the answers are to questions "
            f"about {_one(asked)}; leave --repope out."
        )


def _one(names: set[str | None]) -> str:
    """Return names in one phrase."""
    return " and ".join(sorted(name for name in names if name))


def _labels_by_object(files: Sequence[SplitFile]) -> dict[tuple[str, str | None], str]:
    """Return (image, object) -> label; ids and spellings differ between releases and join nothing.

    Raises:
        AuditError: one object of one image has both labels.
    """
    found: dict[tuple[str, str | None], str] = {}
    for file in files:
        for row in file.rows:
            if row.object is not None and found.setdefault((row.image, row.object), row.label) != row.label:
                raise AuditError(
                    f"{file.path}: question_id {row.question_id} labels {row.object!r} in {row.image} otherwise than "
                    "another row of this label set; mend it."
                )
    return found


class _Readings(NamedTuple):
    """Decisions that do not depend on labels, and whether there are texts or records to read."""

    decided: dict[str, Decided]
    readable: bool


def _decide(
    pairs: Sequence[tuple[Answers, Pairing]], records: pa.Table, meta: Mapping[str, Any]
) -> tuple[_Readings, dict[str, str]]:
    """Apply every readout that does not look at labels; take over decisions that a file holds."""
    readable = [answers.text is not None for answers, _ in pairs]
    held = [set(answers.decisions) for answers, _ in pairs]
    if len(set(readable)) > 1 or any(names != held[0] for names in held):
        raise AuditError(
            "the answer files are of different kinds (texts and decisions); score them one by one."
        )
    decided = {name: Decided(pa.array(_held(pairs, name), pa.string())) for name in sorted(held[0])}
    unavailable: dict[str, str] = {}
    for readout in _applicable(bool(meta)) if readable[0] else ():
        if not readout.needs_labels:
            _try(readout, records, meta, None, decided, unavailable)
    return _Readings(decided, readable[0]), unavailable


def _held(pairs: Sequence[tuple[Answers, Pairing]], name: str) -> list[str]:
    """Return the decisions that the files hold under one readout, by question row; error rows are invalid."""
    return [
        "invalid" if answers.invalid[rows[question]] else answers.decisions[name][rows[question]]
        for answers, pairing in pairs
        for rows in pairing.rows
        for question in sorted(rows)
    ]


def _applicable(has_logits: bool) -> list[Readout]:
    """Return the readouts for records; for texts alone, those that read nothing but the new text."""
    readouts = [get(name) for name in READOUTS]
    return [one for one in readouts if has_logits or getattr(one, "column", None) == "new_text"]


def _try(
    readout: Readout,
    records: pa.Table,
    meta: Mapping[str, Any],
    labels: pa.Array | None,
    decided: dict[str, Decided],
    unavailable: dict[str, str],
) -> None:
    """Apply one readout; note why where it cannot be."""
    try:
        readout.ids(meta)
        decided[readout.name] = readout.decide(records, meta, labels)
    except AuditError as error:
        unavailable[readout.name] = str(error)


def _decide_by_labels(
    records: pa.Table, meta: Mapping[str, Any], label_set: LabelSet
) -> tuple[dict[str, Decided], dict[str, str]]:
    """Apply the readouts that look at labels, on the labelled rows; the others become invalid."""
    labelled = np.flatnonzero(label_set.codes != ABSENT)
    words = pa.array(np.array(LABELS, dtype=object)[label_set.codes[labelled]], pa.string())
    some: dict[str, Decided] = {}
    unavailable: dict[str, str] = {}
    for readout in _applicable(bool(meta)):
        if readout.needs_labels:
            _try(readout, records.take(pa.array(labelled)), meta, words, some, unavailable)
    spread = np.full(records.num_rows, -1)
    spread[labelled] = np.arange(len(labelled))
    take = pa.array(spread, mask=spread < 0)
    return {
        name: Decided(
            decision=one.decision.take(take).fill_null("invalid"),
            flags={flag: values.take(take) for flag, values in one.flags.items()},
        )
        for name, one in some.items()
    }, unavailable


def _score(questions: pa.Table, decided: Mapping[str, Decided], label_set: LabelSet) -> list[ScoreRow]:
    """Count every readout against one label set."""
    n = questions.num_rows
    identity = pa.table(
        {
            f.name: questions[f.name] if f.name in questions.column_names else pa.nulls(n, f.type)
            for f in DECISION_IDENTITY
        }
        | {"order_known": pa.array([False] * n)}
    )
    decisions = Decisions(
        cell={},
        metadata={},
        identity=identity,
        labels=label_set.codes,
        answers={name: _codes(one.decision) for name, one in decided.items()},
        ties={
            name: None if one.tie is None else one.tie.fill_null(False).to_numpy(False)
            for name, one in decided.items()
        },
        unavailable={},
    )
    entries = count_scores(decisions, [label_set]).entries
    several = len(decisions.splits) > 1
    shown = [entry for entry in entries if several or entry.split in decisions.splits]
    return [_row(entry, decided[entry.readout], decisions, label_set) for entry in shown]


def _row(entry: Entry, decided: Decided, decisions: Decisions, label_set: LabelSet) -> ScoreRow:
    """Return one line of the result."""
    flags: dict[str, int] = {}
    own: Figures | None = None
    if entry.split in (*decisions.splits, POOLED):
        rows = label_set.codes != ABSENT
        if entry.split != POOLED:
            rows &= decisions.in_split(entry.split)
        flags = {
            name: int(flag.fill_null(False).to_numpy(False)[rows].sum())
            for name, flag in decided.flags.items()
        }
        own = _own_figures(entry)
    rates = rates_of(entry)
    rates["precision"] = rates.pop(
        "precision_rate"
    )  # there it stands beside the number format, here it does not
    return ScoreRow(entry.labels, entry.split, entry.readout, counts_of(entry), rates, flags, own)


def _own_figures(entry: Entry) -> Figures | None:
    """Return what the script of this rule would print for these rows."""
    readout = get(entry.readout)
    if not isinstance(readout, HarnessReadout) or not entry.parts or entry.split == MACRO:
        return None
    confusion: Confusion = total(part.confusion for part in entry.parts)
    return readout.figures(confusion)


def _codes(decision: pa.Array) -> Codes:
    """Return decisions as codes of `contracts.DECISIONS`."""
    code = {word: index for index, word in enumerate(DECISIONS)}
    return np.array([code[word] for word in decision.to_pylist()], dtype=np.int8)


def _objects(decision: pa.Array) -> npt.NDArray[np.object_]:
    """Return decisions as an array of words."""
    return np.array(decision.to_pylist(), dtype=object)
