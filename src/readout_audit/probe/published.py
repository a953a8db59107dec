"""The authors' diagnostic file: attention, similarity and set maxima of 3,000 questions, one by one.

Format: Kesav2k04/ugaa-research, experiments/ugaa_full_adversarial_3000q_diagnostic.json, as written by
src/run_full_diagnostic_3000q.py at acffc21.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from readout_audit.contracts import LABELS, NO, YES
from readout_audit.errors import AuditError
from readout_audit.fileio import read_json
from readout_audit.probe.answers import ATTENTION_WINDOW, CLIP_L, OUTCOMES, Answers
from readout_audit.scores.bootstrap import Images

OWN = "pope"

_NUMBERS = ("yes_raw", "no_raw", "gap_raw")
_COUNTS = ("n_total", "n_valid", "n_errors")
_NULLABLE = ("grounding", "clip_l_max_sim")
"""NaN upstream where no attention came back or the similarity failed."""


@dataclass(frozen=True)
class Diagnostic:
    """The rows of one diagnostic file.

    Attributes:
        split: as its summary says.
        question_ids: m ids, as released.
        answers: the same m rows, without images.
        errors: ids of rows that hold an error instead.
        settings: model, layers and positions, as the file states them.
        stated: counts of its summary by name: n_total, n_valid, n_errors, tp, tn, fp, fn; those it gives.
    """

    split: str
    question_ids: list[str]
    answers: Answers
    errors: list[str]
    settings: dict[str, Any]
    stated: dict[str, Any]

    @property
    def attention_window(self) -> list[int] | None:
        """The [first, end) positions of its attention; None where the rows name none, or several."""
        spans = self.settings["positions"]
        return spans[0] if len(spans) == 1 else None

    def check_summary(self, path: Path) -> None:
        """Refuse a file whose summary its own rows contradict: it was cut, or put together from two runs.

        Raises:
            AuditError: a count of the summary is not that of the rows.
        """
        outcomes = self.answers.outcome
        counted = {name: outcomes.count(name) for name in OUTCOMES}
        errors = len(self.errors)
        counted |= {"n_total": len(outcomes) + errors, "n_valid": len(outcomes), "n_errors": errors}
        for name, value in self.stated.items():
            if value != counted[name]:
                raise AuditError(
                    f"{path}: the summary says {name} {value}, the rows say {counted[name]}; fetch the file again."
                )

    def with_images(self, image_of: dict[str, str]) -> tuple[Answers, list[str]]:
        """Return the answers with the images of their questions, and the images' names by row.

        Raises:
            AuditError: a question is not among those given.
        """
        missing = [one for one in self.question_ids if one not in image_of]
        if missing:
            raise AuditError(
                f"{len(missing)} questions of the diagnostic file, such as {missing[0]}, are not in split "
                f"{self.split} of the question table; give the release it was made from."
            )
        names = [image_of[one] for one in self.question_ids]
        known, codes = np.unique(names, return_inverse=True)
        images = Images(codes.astype(np.int64), len(known))
        kept = self.answers
        answers = Answers(
            kept.labels, kept.split, kept.positive, kept.yes_logit, kept.no_logit, kept.signals, images
        )
        return answers, names


def read_diagnostic(path: Path) -> Diagnostic:
    """Read and check a diagnostic file.

    Raises:
        AuditError: it is not such a file, a row lacks a value, or a row, or the summary, contradicts itself.
    """
    content = read_json(path, "the diagnostic file")
    if not isinstance(content, dict) or not isinstance(content.get("results"), list):
        raise AuditError(
            f"{path}: a diagnostic file is an object with `summary` and `results`; this is none."
        )
    summary = content.get("summary")
    if not isinstance(summary, dict):
        raise AuditError(f"{path}: the summary is missing; the file is damaged.")
    rows: list[dict[str, Any]] = []
    errors: list[str] = []
    for number, row in enumerate(content["results"], start=1):
        where = f"{path}, result {number}"
        if not isinstance(row, dict) or "question_id" not in row:
            raise AuditError(f"{where}: no question_id; the file is damaged.")
        if "error" in row:
            errors.append(str(row["question_id"]))
        else:
            rows.append(_checked(row, where))
    ids = [str(row["question_id"]) for row in rows]
    if len({*ids, *errors}) != len(ids) + len(errors):
        raise AuditError(f"{path}: a question_id stands twice; the file is damaged.")
    split = str(summary.get("split", "adversarial"))
    spans = sorted({tuple(row["visual_span"]) for row in rows if "visual_span" in row})
    return Diagnostic(
        split=split,
        question_ids=ids,
        answers=_answers(rows, split),
        errors=errors,
        settings={
            "model": summary.get("model_path"),
            "layers": summary.get("layers_for_grounding"),
            "positions": [list(span) for span in spans],
        },
        stated={name: summary[name] for name in (*_COUNTS, *OUTCOMES) if name in summary},
    )


def _checked(row: dict[str, Any], where: str) -> dict[str, Any]:
    """Check one row: its label, its numbers, and that gap and answer follow from the two maxima."""
    if row.get("label") not in LABELS:
        raise AuditError(f"{where}: label {row.get('label')!r} is neither yes nor no.")
    for name in (*_NUMBERS, *_NULLABLE):
        value = row.get(name)
        finite = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        absent = name in _NULLABLE and (value is None or (isinstance(value, float) and math.isnan(value)))
        if not finite and not absent:
            raise AuditError(f"{where}: {name} is {value!r}, not a number.")
    span = row.get("visual_span", [0, 1])
    if not (isinstance(span, list) and len(span) == 2 and all(type(end) is int for end in span)):
        raise AuditError(f"{where}: visual_span is {span!r}, not two positions; the file is damaged.")
    if row["yes_raw"] - row["no_raw"] != row["gap_raw"]:
        raise AuditError(f"{where}: gap_raw is not yes_raw minus no_raw; the file is damaged.")
    answer = YES if row["gap_raw"] > 0 else NO
    if row.get("baseline_prediction", answer) != answer:
        raise AuditError(f"{where}: the prediction is not the sign of gap_raw; the file is damaged.")
    return row


def _answers(rows: list[dict[str, Any]], split: str) -> Answers:
    """Return the rows as answers."""

    def column(name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
        return np.array([math.nan if row[name] is None else row[name] for row in rows], dtype=np.float64)

    return Answers(
        labels=OWN,
        split=split,
        positive=np.array([row["label"] == YES for row in rows], dtype=bool),
        yes_logit=column("yes_raw"),
        no_logit=column("no_raw"),
        signals={ATTENTION_WINDOW: column("grounding"), CLIP_L: column("clip_l_max_sim")},
        images=None,
    )
