"""The published numbers of Appendix F.3, read off the probe's tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from readout_audit.probe.answers import ATTENTION_WINDOW, CLIP_L, GAP, NO_LOGIT, OUTCOMES, YES_LOGIT

Row = Mapping[str, Any]

SIGNALS = {"attention": ATTENTION_WINDOW, "clip": CLIP_L, "logit_gap": GAP}
"""Names of the published numbers -> signals of the probe."""

PAIRS = {
    "correct_vs_wrong": ("correct", "wrong"),
    "fp_vs_tp": ("tp", "fp"),
    "fn_vs_tn": ("tn", "fn"),
    "tp_vs_fn": ("tp", "fn"),
    "tn_vs_fp": ("tn", "fp"),
}
_OWN_PAIR = {"attention": "correct_vs_wrong", "clip": "fp_vs_tp"}
"""The comparison meant where a published number names none."""


def claimed(
    answers: Sequence[Row], groups: Sequence[Row], comparisons: Sequence[Row]
) -> dict[str, str | None]:
    """Return quantity of a published probe number -> value as text; a null one is undefined.

    Args:
        answers: rows of `schema.PROBE` of one split under the release's own labels.
        groups: rows of `schema.GROUPS` of the same.
        comparisons: rows of `schema.COMPARISONS` of the same.
    """
    return _counts(answers) | _means(groups) | _tests(comparisons)


def _counts(answers: Sequence[Row]) -> dict[str, str | None]:
    """Return the matrix, the ties, the questions answered otherwise, and the near-tied ones."""
    found: dict[str, str | None] = {
        f"confusion.{name}": str(sum(row["outcome"] == name for row in answers)) for name in OUTCOMES
    }
    found["ties"] = str(sum(bool(row["tie"]) for row in answers))
    if all(row["main_answer"] is not None for row in answers):
        differing = [row["question_id"] for row in answers if row["answer"] != row["main_answer"]]
        found["differs.count"] = str(len(differing))
        found["differs.ids"] = ", ".join(differing) or "none"
    for row in answers:
        found[f"near_tie.{row['question_id']}.yes"] = repr(row["yes_logit"])
        found[f"near_tie.{row['question_id']}.no"] = repr(row["no_logit"])
        found[f"near_tie.{row['question_id']}.margin"] = repr(abs(row["yes_logit"] - row["no_logit"]))
    return found


def _means(groups: Sequence[Row]) -> dict[str, str | None]:
    """Return n, mean and SD of every group."""
    by_key = {(row["signal"], row["group"]): row for row in groups}
    found: dict[str, str | None] = {}
    for name, signal in SIGNALS.items():
        for (one, group), row in by_key.items():
            if one == signal:
                found |= {f"{name}.{group}.{what}": _text(row[what]) for what in ("n", "mean", "sd")}
    for name, signal in (("yes", YES_LOGIT), ("no", NO_LOGIT)):
        if (signal, "all") in by_key:
            found[f"mean_maximum.{name}"] = _text(by_key[signal, "all"]["mean"])
    return found


def _tests(comparisons: Sequence[Row]) -> dict[str, str | None]:
    """Return U, p, d and interval of every comparison that was made."""
    made = {
        (row["signal"], row["group_a"], row["group_b"]): row for row in comparisons if row["status"] == "ok"
    }
    found: dict[str, str | None] = {}
    for name, signal in SIGNALS.items():
        for pair, groups in PAIRS.items():
            row = made.get((signal, *groups))
            if row is None:
                continue
            values = {
                "u": row["u"],
                "p": row["p"],
                "d": row["d"],
                "ci.low": row["difference_low"],
                "ci.high": row["difference_high"],
            }
            texts = {what: _text(value) for what, value in values.items()}
            found |= {f"{name}.{pair}.{what}": text for what, text in texts.items()}
            if _OWN_PAIR.get(name) == pair:
                found |= {f"{name}.{what}": text for what, text in texts.items()}
    return found


def _text(value: float | None) -> str | None:
    """Return a number exactly as text, None where it is null."""
    return None if value is None else repr(value)
