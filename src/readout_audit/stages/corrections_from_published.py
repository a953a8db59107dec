"""Stage: the authors' published answers after a correction -> what each correction does, as a run's own would say."""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from readout_audit.contracts import DECISIONS, LABELS, NO, YES
from readout_audit.corrections.compare import interval
from readout_audit.corrections.rows import known_images
from readout_audit.corrections.schema import CORRECTIONS, FIXED, OK
from readout_audit.corrections.tallies import Rows, observed, resampled, tally
from readout_audit.errors import AuditError
from readout_audit.fileio import sha256_file, write_table
from readout_audit.scores.blocks import ALL, split_blocks
from readout_audit.scores.bootstrap import LEVEL
from readout_audit.scores.confusion import YES as YES_CODE
from readout_audit.scores.decisions import Decisions, read_decisions
from readout_audit.scores.labels import LabelSet, label_sets
from readout_audit.sources.predictions import (
    Prediction,
    check_questions,
    check_summary,
    read_predictions,
    read_summary,
)

LOGGER = logging.getLogger(__name__)

READOUT = "legacy_8tok"
"""What the authors correct."""


class Source(NamedTuple):
    """One published prediction file.

    Attributes:
        name: its name in datasets.yaml.
        split: the split it is about.
        predictions: the file.
        summary: its summary; None where none is published.
        correction: the correction it is the answers of; None for the uncorrected run again.
        strength: of the correction.
    """

    name: str
    split: str
    predictions: Path
    summary: Path | None
    correction: str | None
    strength: float | None

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> "Source":
        """Return the source that a plan describes, its files as text."""
        summary = entry["summary"]
        paths = {"predictions": Path(entry["predictions"]), "summary": Path(summary) if summary else None}
        return cls(**(dict(entry) | paths))


def run(
    sources: Sequence[Source],
    decisions: Path,
    output: Path,
    relabel: Mapping[str, Sequence[Path]] | None = None,
    resamples: int = 0,
    seed: int = 42,
) -> None:
    """Write the published corrections in the form of `corrections.schema.CORRECTIONS`.

    A file that answers only part of its split is no run of a published row: it is described in the metadata alone,
    as is a second run without correction.

    Args:
        sources: the published files.
        decisions: the cell's published decisions; splits, labels, images and the uncorrected answers are theirs.
        output: the corrections file.
        relabel: name of a further label set -> its question tables.
        resamples: bootstrap samples over images; 0 leaves the intervals out.
        seed: of the draw (that of the scores).

    Raises:
        AuditError: a file cannot be used, contradicts its summary, or belongs to another release.
    """
    main = read_decisions(decisions)
    if READOUT not in main.answers:
        raise AuditError(f"{decisions}: no {READOUT} decisions to hold the published corrections against.")
    sets = label_sets(main, relabel)
    rows: list[dict[str, Any]] = []
    described: dict[str, Any] = {}
    whole = []
    for source in sources:
        answers, about = _read(source, main)
        described[source.name] = about
        if source.correction is not None and about["answered"] == about["questions"]:
            whole.append((source, answers))
    for label_set in sets:
        here = [_score(source, answers, main, label_set, resamples, seed) for source, answers in whole]
        rows += [row | {"tried": len(here)} | _intervals(gains, len(here)) for row, gains in here]
    notes = {
        "schema": 1,
        "cell": main.cell,
        "published": described,
        "labels": {label_set.name: label_set.describe() for label_set in sets},
        "bootstrap": {"unit": "image", "resamples": resamples, "seed": seed},
    }
    write_table(output, pa.Table.from_pylist(rows, schema=CORRECTIONS), CORRECTIONS, notes)
    LOGGER.info("%d published corrections from %d files", len(whole), len(sources))


def _read(source: Source, main: Decisions) -> tuple[dict[str, str], dict[str, Any]]:
    """Return question_id -> decision of one file, and what is said of it."""
    rows = read_predictions(source.predictions)
    if source.summary is not None:
        check_summary(rows, read_summary(source.summary), source.predictions)
    if source.split not in main.splits:
        raise AuditError(
            f"{source.predictions}: about split {source.split}, which the decisions do not have; add it to splits."
        )
    there = main.identity.filter(pa.array(main.in_split(source.split)))
    columns = (there[name].to_pylist() for name in ("question_id", "question", "label"))
    asked = {identity: (question, label) for identity, question, label in zip(*columns, strict=True)}
    respelt = check_questions(rows, asked, source.predictions, source.split)
    return {row.question_id: row.decision for row in rows}, _describe(source, rows, main, asked, respelt)


def _describe(
    source: Source, rows: Sequence[Prediction], main: Decisions, asked: Mapping[str, Any], respelt: int
) -> dict[str, Any]:
    """Say what a file holds, and on how many of its rows it answers otherwise than the main run."""
    mask = main.in_split(source.split)
    ids = main.identity["question_id"].filter(pa.array(mask)).to_pylist()
    answers = dict(zip(ids, main.answers[READOUT][mask], strict=True))
    otherwise = [row.question_id for row in rows if DECISIONS[answers[row.question_id]] != row.decision]
    hits = {
        (label, word): sum((row.label, row.decision) == (label, word) for row in rows)
        for label in LABELS
        for word in (YES, NO)
    }
    return {
        "file": source.predictions.name,
        "sha256": sha256_file(source.predictions),
        "split": source.split,
        "correction": source.correction,
        "strength": source.strength,
        "questions": len(asked),
        "answered": sum(row.decision in (YES, NO) for row in rows),
        "tp": hits[YES, YES],
        "fp": hits[NO, YES],
        "tn": hits[NO, NO],
        "fn": hits[YES, NO],
        "spelt_otherwise": respelt,
        "otherwise_than_main_run": len(otherwise),
    }


def _score(
    source: Source,
    answers: Mapping[str, str],
    main: Decisions,
    label_set: LabelSet,
    resamples: int,
    seed: int,
) -> tuple[dict[str, Any], npt.NDArray[np.float64] | None]:
    """Return one row without its intervals, and the gain in each resample."""
    block = next(
        one for one in split_blocks(main, label_set) if (one.split, one.subset) == (source.split, ALL)
    )
    ids = main.identity["question_id"].take(pa.array(block.rows)).to_pylist()
    words = np.array([answers[identity] for identity in ids], dtype=object)
    before = main.answers[READOUT][block.rows]
    kept = np.isin(words, (YES, NO)) & (before < len(LABELS)) & (before >= 0)
    images = known_images(main)
    at = block.rows[kept]
    rows = Rows(np.flatnonzero(kept), images.codes[at], label_set.codes[at] == YES_CODE, images)
    yes, baseline = words[kept] == YES, before[kept] == YES_CODE
    tallies = tally(rows, yes[:, None], baseline)
    fold = np.zeros(images.n, dtype=np.int64)
    one = observed(tallies, fold, 1)
    chosen = one.at(0)
    gain = float(one.gain(chosen)[0])
    tp, fp = int(chosen.tp[0]), int(chosen.fp[0])
    row = {
        **main.cell,
        "labels": label_set.name,
        "split": source.split,
        "readout": READOUT,
        "method": source.correction,
        "choice": FIXED,
        "strength": source.strength,
        "status": OK,
        "n": len(yes),
        "n_without_signal": int((~kept).sum()),
        "tp": tp,
        "fp": fp,
        "tn": len(yes) - rows.positives - fp,
        "fn": rows.positives - tp,
        "baseline_tp": int(one.baseline[0, 0]),
        "baseline_fp": int(one.baseline[0, 1]),
        "yes_to_no": int((baseline & ~yes).sum()),
        "no_to_yes": int((~baseline & yes).sum()),
        "delta_f1": None if np.isnan(gain) else gain,
    }
    if not resamples:
        return row, None
    samples = resampled(tallies, fold, 1, resamples, seed)
    return row, samples.gain(samples.at(0))


def _intervals(gains: npt.NDArray[np.float64] | None, tried: int) -> dict[str, float | None]:
    """Return both intervals of a gain: at 95%, and corrected for the number of corrections."""
    low, high = interval(gains, 1 - LEVEL)
    corrected_low, corrected_high = interval(gains, (1 - LEVEL) / tried)
    return {
        "delta_f1_low": low,
        "delta_f1_high": high,
        "delta_f1_low_corrected": corrected_low,
        "delta_f1_high_corrected": corrected_high,
    }
