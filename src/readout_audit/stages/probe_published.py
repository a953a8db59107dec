"""Stage: the statistics of Appendix F.3 on the authors' own diagnostic file, question by question."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from readout_audit.contracts import DECISIONS, QUESTIONS
from readout_audit.errors import AuditError
from readout_audit.fileio import read_table
from readout_audit.probe.answers import INSTRUMENTED
from readout_audit.probe.clustered import draw
from readout_audit.probe.comparisons import Resampling, comparison_rows, group_rows
from readout_audit.probe.measure import answer_rows
from readout_audit.probe.published import read_diagnostic
from readout_audit.probe.statistics import RESAMPLES, SEED
from readout_audit.scores.decisions import read_decisions
from readout_audit.stages.probe import Outputs, write

READOUT = "legacy_8tok"
"""The rule whose set maxima the file holds."""


def run(
    diagnostic: Path,
    questions: Path,
    outputs: Outputs,
    cell: Mapping[str, str],
    decisions: Path | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> None:
    """Read the diagnostic file and write the probe's tables; windows and excluded logits are empty there.

    Args:
        diagnostic: the authors' file.
        questions: question table of the release it was made from; images are taken from it by question id.
        outputs: the files to write.
        cell: the fields of `contracts.CELL`.
        decisions: the published decisions of the main run, to tell which questions the two passes answer
            differently; None where they are not at hand.
        resamples: of both bootstraps; 0 leaves the intervals out.
        seed: of both.

    Raises:
        AuditError: the file is damaged or was cut, or it is not about that release.
    """
    found = read_diagnostic(diagnostic)
    found.check_summary(diagnostic)
    asked = read_table(questions, QUESTIONS, "the question table")
    asked = asked.filter(pc.equal(asked["split"], found.split))
    labels = dict(zip(asked["question_id"].to_pylist(), asked["label"].to_pylist(), strict=True))
    image_of = dict(zip(asked["question_id"].to_pylist(), asked["image"].to_pylist(), strict=True))
    answers, images = found.with_images(image_of)
    for question_id, positive in zip(found.question_ids, answers.positive, strict=True):
        if (labels[question_id] == "yes") != positive:
            raise AuditError(
                f"{diagnostic}: question {question_id} has another label than in {questions}; "
                "give the release it was made from."
            )
    weights = draw(answers.images, resamples, seed)
    leading = {**cell, "labels": answers.labels, "split": found.split, "readout": READOUT}
    main = _main_answers(decisions, found.split) if decisions is not None else {}
    single = answer_rows(answers, found.question_ids, images, INSTRUMENTED)
    tables = (
        [row | {"main_answer": main.get(row["question_id"])} for row in single],
        list(group_rows(answers, weights)),
        list(comparison_rows(answers, Resampling(resamples, seed, weights))),
    )
    notes = {
        "schema": 1,
        "cell": dict(cell),
        "published": found.settings,
        "errors": found.errors,
        "attention_window": found.attention_window,
        "bootstrap": {"resamples": resamples, "seed": seed},
    }
    write(outputs, [[*([leading | row for row in table] for table in tables), [], []]], notes)


def _main_answers(decisions: Path, split: str) -> dict[str, str]:
    """Return question id -> answer of the main run on a split; ids join, since both files are of one release."""
    rows = read_decisions(decisions)
    if READOUT not in rows.answers:
        raise AuditError(f"{decisions}: no {READOUT} decisions to compare the diagnostic file with.")
    kept = rows.in_split(split)
    ids = rows.identity["question_id"].filter(pa.array(kept)).to_pylist()
    return dict(zip(ids, (DECISIONS[code] for code in rows.answers[READOUT][kept]), strict=True))
