"""Find the question inside a prompt: one text before it and one after it, the same on every row."""

from collections.abc import Sequence
from typing import NamedTuple

from readout_audit.errors import AuditError
from readout_audit.score_file.answers import Answers
from readout_audit.score_file.load import shown
from readout_audit.score_file.questions import SplitFile

MISSPELT, SPELT = "imange", "image"
"""Some POPE releases misspell the word in their "an …" questions."""


MOST_TRIED = 20
"""Prompts looked at for what stands around; those of another release hold a known question soon or never."""


class Wrapping(NamedTuple):
    """What a prompt has before and after its question."""

    before: str
    after: str


def strip_prompts(answers: Answers, files: Sequence[SplitFile]) -> tuple[list[str], Wrapping]:
    """Return the question of each row and what stands around it.

    The first prompt that holds a known question shows what stands around it (of several, the longest is its
    question). Every other prompt must have the same around a known question.

    Raises:
        AuditError: a prompt holds none of the known questions, or has other words around it.
    """
    prompts = answers.prompt or ()
    known = {question for file in files for _, question in file.keys}
    found = (_wrapping(prompt, known) for prompt in prompts[:MOST_TRIED])
    wrapping = next((one for one in found if one is not None), Wrapping("", ""))
    stripped = [_unwrap(prompt, wrapping) for prompt in prompts]
    unknown = [row for row, question in enumerate(stripped) if question not in known]
    if unknown:
        raise AuditError(_unknown(answers, prompts, stripped, unknown, known, files))
    return [question for question in stripped if question is not None], wrapping


def _wrapping(prompt: str, known: set[str]) -> Wrapping | None:
    """Return what a prompt has around its question; None where it holds none."""
    if prompt in known:
        return Wrapping("", "")
    question = max((question for question in known if question in prompt), key=len, default=None)
    if question is None:
        return None
    before, _, after = prompt.partition(question)
    return Wrapping(before, after)


def _unwrap(prompt: str, wrapping: Wrapping) -> str | None:
    """Return the prompt's question, None where something else stands around it."""
    inner = len(prompt) - len(wrapping.after)
    fits = (
        prompt.startswith(wrapping.before)
        and prompt.endswith(wrapping.after)
        and inner > len(wrapping.before)
    )
    return prompt[len(wrapping.before) : inner] if fits else None


def _unknown(
    answers: Answers,
    prompts: Sequence[str],
    stripped: Sequence[str | None],
    unknown: Sequence[int],
    known: set[str],
    files: Sequence[SplitFile],
) -> str:
    """Return the sentence about prompts that ask something else."""
    row = unknown[0]
    named = ", ".join(dict.fromkeys(file.name for file in files[:3]))
    start = (
        f"{answers.where(row)}: {shown(prompts[row])} is not a question of {named} ({len(unknown)} of the "
        f"{answers.rows} rows)"
    )
    if all(_respelt(stripped[at]) in known for at in unknown):
        return (
            f"{start}; they differ in the spelling {MISSPELT}/{SPELT} alone, so another release was asked: "
            "give its question files."
        )
    return (
        f"{start}; give the question files that were asked, or, if these questions are theirs in other words, put theirs into "
        "the answer file: answers are paired by the exact text."
    )


def _respelt(question: str | None) -> str | None:
    """Return the question with the misspelling put right, or put in."""
    if question is None:
        return None
    if MISSPELT in question:
        return question.replace(MISSPELT, SPELT)
    return question.replace(SPELT, MISSPELT)
