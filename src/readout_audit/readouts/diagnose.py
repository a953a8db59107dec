"""Algorithm 1 on recorded answers: which tokens does the model write first, and who reads them?

A readout whose sets lack an emitted yes or no compares candidates that the decoder did not select, and
nothing in its output shows it. Here it shows.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from readout_audit.contracts import NO, UNPARSED, YES
from readout_audit.errors import AuditError
from readout_audit.readouts.base import (
    Metadata,
    NotAvailableError,
    Readout,
    candidate_logits,
    named_sets,
    valid_rows,
)
from readout_audit.readouts.first_token import read_piece

ANSWERS = (YES, NO)


@dataclass(frozen=True)
class Token:
    """One first token: `says` is yes, no or unparsed (anything else), by the surface of its piece."""

    id: int
    piece: str | None
    count: int
    says: str


class Coverage(NamedTuple):
    """What one logit readout compares, against what was emitted.

    Attributes:
        readout: its name.
        ids: by answer, the ids it reads with their pieces in this model (None where not recorded).
        excluded: emitted tokens that say yes or no and are not among its ids, or stand on the wrong side.
        foreign: ids it reads whose piece says neither yes nor no.
        unread: rows whose first token is not among its ids, of whatever kind.
        why_not: why it cannot be applied here, else None.
    """

    readout: str
    ids: dict[str, dict[int, str | None]]
    excluded: tuple[Token, ...]
    foreign: dict[int, str | None]
    unread: int
    why_not: str | None = None


class Diagnosis(NamedTuple):
    """Algorithm 1's outcome for one model and template.

    Attributes:
        model: name in the record file.
        template: name of the prompt template, where the settings have one.
        rows: rows looked at, invalid ones included.
        invalid: rows without logits.
        top_tokens_generated: every first token, most frequent first, then by id.
        mass: smallest, median and largest share of probability on all yes and no pieces together.
        coverage: one entry per readout asked about.
        use_instead: by answer, ids and pieces of the one-token forms, the ids after this prompt, and all that
            was emitted.
    """

    model: str
    template: str | None
    rows: int
    invalid: int
    top_tokens_generated: tuple[Token, ...]
    mass: dict[str, float] | None
    coverage: tuple[Coverage, ...]
    use_instead: dict[str, dict[int, str | None]]

    @property
    def excluding(self) -> list[str]:
        """Names of the readouts that would read excluded candidates."""
        return [entry.readout for entry in self.coverage if entry.excluded]


def diagnose(
    records: pa.Table,
    meta: Metadata,
    readouts: Sequence[Readout],
    questions: int | None = None,
    seed: int = 42,
) -> Diagnosis:
    """Compare the first tokens of recorded answers with what each readout reads.

    Args:
        records: rows under `contracts.RECORDS`.
        meta: their metadata.
        readouts: logit readouts to look at.
        questions: how many rows to draw without replacement; None takes all.
        seed: of the draw.

    Raises:
        AuditError: there are no rows with logits, or fewer rows than asked for.
    """
    rows = _draw(records, questions, seed)
    valid = rows.filter(pa.array(valid_rows(rows)))
    if not valid.num_rows:
        raise AuditError(f"{meta.get('model')}: none of the {rows.num_rows} rows has logits to look at.")
    tokens = first_tokens(valid)
    settings = meta.get("settings") or {}
    template = settings.get("template")
    return Diagnosis(
        model=str(meta.get("model")),
        template=template if isinstance(template, str) else (template or {}).get("name"),
        rows=rows.num_rows,
        invalid=rows.num_rows - valid.num_rows,
        top_tokens_generated=tokens,
        mass=yes_no_mass(valid, meta),
        coverage=tuple(cover(readout, meta, tokens) for readout in readouts),
        use_instead=recommended(meta, tokens),
    )


def _draw(records: pa.Table, questions: int | None, seed: int) -> pa.Table:
    """Return `questions` rows, in file order; all where it is None."""
    if questions is None:
        return records
    if not 0 < questions <= records.num_rows:
        raise AuditError(f"{questions} questions were asked for; the file has {records.num_rows}.")
    chosen = np.random.default_rng(seed).choice(records.num_rows, size=questions, replace=False)
    return records.take(pa.array(np.sort(chosen)))


def first_tokens(valid: pa.Table) -> tuple[Token, ...]:
    """Count the first tokens of valid rows, most frequent first, then by id."""
    emitted = Counter(zip(valid["argmax_id"].to_pylist(), valid["argmax_text"].to_pylist(), strict=True))
    ranked = sorted(emitted.items(), key=lambda item: (-item[1], item[0][0]))
    return tuple(Token(token, piece, count, read_piece(piece)) for (token, piece), count in ranked)


def yes_no_mass(valid: pa.Table, meta: Metadata) -> dict[str, float] | None:
    """Return smallest, median and largest probability of all yes and no pieces; None without a scan."""
    try:
        sets = named_sets(meta, "scan", "diagnose")
        logits = candidate_logits(valid, meta, [*sets.yes, *sets.no], "diagnose")
    except AuditError:
        return None
    log_z = valid["log_z"].to_numpy().astype(np.float64)
    mass = np.exp(logits.astype(np.float64) - log_z[:, None]).sum(axis=1)
    return {"min": float(mass.min()), "median": float(np.median(mass)), "max": float(mass.max())}


def cover(readout: Readout, meta: Metadata, tokens: Sequence[Token]) -> Coverage:
    """Compare one readout's ids with the emitted tokens."""
    try:
        sets = readout.ids(meta)
    except NotAvailableError as error:
        return Coverage(readout.name, {YES: {}, NO: {}}, (), {}, 0, str(error))
    if sets is None:
        raise AuditError(f"{readout.name} reads text, not logits; there is nothing to diagnose about it.")
    pieces = known_pieces(meta, tokens)
    side = {token: answer for answer, ids in zip(ANSWERS, sets, strict=True) for token in ids}
    return Coverage(
        readout=readout.name,
        ids={
            answer: {token: pieces.get(token) for token in ids}
            for answer, ids in zip(ANSWERS, sets, strict=True)
        },
        excluded=tuple(t for t in tokens if t.says != UNPARSED and side.get(t.id) != t.says),
        foreign={
            token: pieces[token]
            for token in side
            if token in pieces and read_piece(pieces[token]) == UNPARSED
        },
        unread=sum(t.count for t in tokens if t.id not in side),
    )


def known_pieces(meta: Metadata, tokens: Sequence[Token]) -> dict[int, str | None]:
    """Return id -> piece of this model, from its token map and from what was emitted."""
    # What this vocabulary has at the candidates' ids, a reference model's among them, where a run recorded it.
    recorded: Mapping[str, str | None] = meta.get("candidate_pieces") or {}
    mapped: Mapping[str, str | None] = (meta.get("token_map") or {}).get("pieces") or {}
    return {int(token): piece for token, piece in {**recorded, **mapped}.items()} | {
        t.id: t.piece for t in tokens
    }


def recommended(meta: Metadata, tokens: Sequence[Token]) -> dict[str, dict[int, str | None]]:
    """Return, by answer, the ids to read here: one-token forms, ids after this prompt, and what was emitted."""
    pieces = known_pieces(meta, tokens)
    chosen: dict[str, dict[int, str | None]] = {}
    for answer in ANSWERS:
        sets = [(meta.get("token_sets") or {}).get(name) or {} for name in ("single", "in_context")]
        ids = {token for one in sets for token in one.get(answer, [])}
        ids |= {t.id for t in tokens if t.says == answer}
        chosen[answer] = {token: pieces.get(token) for token in sorted(ids)}
    return chosen


def as_json(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the diagnosis as plain JSON values."""
    named = {answer: _named(ids) for answer, ids in diagnosis.use_instead.items()}
    return {
        "model": diagnosis.model,
        "template": diagnosis.template,
        "rows": diagnosis.rows,
        "invalid": diagnosis.invalid,
        "top_tokens_generated": [asdict(token) for token in diagnosis.top_tokens_generated],
        "yes_no_mass": diagnosis.mass,
        "readouts": {
            entry.readout: {
                "available": entry.why_not is None,
                "why_not": entry.why_not,
                "ids": {answer: _named(ids) for answer, ids in entry.ids.items()},
                "excluded": [asdict(token) for token in entry.excluded],
                "foreign": _named(entry.foreign),
                "rows_outside_its_sets": entry.unread,
            }
            for entry in diagnosis.coverage
        },
        "reads_excluded_candidates": diagnosis.excluding,
        "use_instead": named,
    }


def _named(ids: Mapping[int, str | None]) -> dict[str, str | None]:
    """Return id -> piece with the ids as text, for JSON."""
    return {str(token): piece for token, piece in ids.items()}


def as_lines(diagnosis: Diagnosis) -> list[str]:
    """Return the diagnosis as lines for a terminal."""
    n = diagnosis.rows - diagnosis.invalid
    lines = [
        f"{diagnosis.model}, template {diagnosis.template or 'not recorded'}: first tokens of {n} questions"
        + (f", {diagnosis.invalid} more are invalid" if diagnosis.invalid else "")
    ]
    lines += [f"  {token_text(token)}  {token.count}" for token in diagnosis.top_tokens_generated[:12]]
    if len(diagnosis.top_tokens_generated) > 12:
        lines.append(f"  … and {len(diagnosis.top_tokens_generated) - 12} more")
    if diagnosis.mass:
        lines.append(
            "probability of all yes and no pieces together: median {median:.4f}, smallest {min:.4f}".format(
                **diagnosis.mass
            )
        )
    lines += [_coverage_line(entry, n) for entry in diagnosis.coverage]
    if diagnosis.excluding:
        lines.append("sets to use instead:")
        lines += [f"  {answer}: {_listed(ids)}" for answer, ids in diagnosis.use_instead.items()]
    return lines


def token_text(token: Token) -> str:
    """Return id and piece of a token, printable whatever the piece holds."""
    return f"{token.id} {token.piece!r}"


def _coverage_line(entry: Coverage, n: int) -> str:
    """Return one readout's line."""
    if entry.why_not is not None:
        why = entry.why_not.removeprefix(f"{entry.readout}: ")
        return f"{entry.readout}: not available ({why})"
    if not entry.excluded:
        return f"{entry.readout}: reads every yes and no that was emitted; {entry.unread} of {n} rows outside its sets"
    lost = ", ".join(f"{token_text(token)} ({token.count} times)" for token in entry.excluded)
    foreign = f"; it reads {_listed(entry.foreign)} instead" if entry.foreign else ""
    return f"{entry.readout}: EXCLUDES {lost}{foreign}"


def exclusion(entry: Coverage, n: int, *, expected: bool) -> str:
    """Return one sentence about a readout that would read excluded candidates."""
    lost = sum(token.count for token in entry.excluded)
    pieces = ", ".join(f"{token_text(token)} ({token.count} times)" for token in entry.excluded[:4])
    more = f" and {len(entry.excluded) - 4} more" if len(entry.excluded) > 4 else ""
    remedy = (
        "the run names it on purpose"
        if expected
        else "read dynamic_single or in_context instead, or say expect_excluded: true if this is on purpose"
    )
    return (
        f"{entry.readout} compares candidates that the decoder did not select on {lost} of {n} questions: "
        f"it does not read {pieces}{more}; {remedy}."
    )


def _listed(ids: Mapping[int, str | None]) -> str:
    """Return ids with their pieces in one line."""
    return ", ".join(f"{token} {piece!r}" for token, piece in ids.items())
