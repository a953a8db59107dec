"""Pair every answer with the question it answers, or refuse in one sentence.

An answer is paired by what was asked: the image and the question's text. Where a file names no image, its
rows are paired only if their texts settle it: as a whole sequence that is exactly that of a split, or by id
and text together. Ids alone are trusted only if their release is named, and line numbers never.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

from readout_audit.errors import AuditError
from readout_audit.score_file.answers import Answers
from readout_audit.score_file.load import shown
from readout_audit.score_file.prompts import Wrapping, strip_prompts
from readout_audit.score_file.questions import Asked, Key, SplitFile, release_name

RowOf = dict[int, int]
"""Question row -> answer row."""


class Pairing(NamedTuple):
    """Which answer belongs to which question.

    Attributes:
        files: the split files that are answered.
        rows: for each of them, question row -> answer row.
        how: how they were paired, in one sentence.
        wrapping: what stands around the questions in the prompts; None where no prompt is written.
    """

    files: list[SplitFile]
    rows: list[RowOf]
    how: str
    wrapping: Wrapping | None

    @property
    def releases(self) -> frozenset[str]:
        """The releases that all answered files belong to."""
        return frozenset.intersection(*(file.releases for file in self.files))


def pair(answers: Answers, asked: Asked, *, partial: bool = False, ids_of: str | None = None) -> Pairing:
    """Pair the answers of one file.

    Args:
        answers: the answer file.
        asked: the question files; of several releases, the one that fits is found.
        partial: allow a file that answers a part of a split.
        ids_of: the release whose ids the file uses, for a file that has nothing but ids.

    Raises:
        AuditError: the answers cannot be paired without a guess.
    """
    answers = _with_splits(answers, asked)
    if answers.prompt is None:
        pairing = _by_ids(answers, asked.files, ids_of, partial)
    else:
        questions, wrapping = strip_prompts(answers, asked.files)
        images = _images(answers, asked, questions)
        pairing = (
            _by_sequence(questions, images, asked.files)
            or _by_distinct_sequence(answers, questions, images, asked.files)
            or _by_key(answers, _keys(answers, questions, images, asked.files), asked.files, partial)
        )
        pairing = pairing._replace(wrapping=wrapping)
    _check_one_release(answers, pairing)
    _check_labels(answers, pairing)
    return pairing


def _with_splits(answers: Answers, asked: Asked) -> Answers:
    """Return the answers with the splits that the file or a key file names, if they are splits that were asked.

    A category that is no split (such as "existence") says nothing here.
    """
    named = answers.split
    if named is None and asked.ids and answers.question_id is not None:
        of_ids = [asked.ids.get(question_id, ("", "", None))[2] for question_id in answers.question_id]
        named = [(split.lower(),) for split in of_ids if split] if all(of_ids) else None
    splits = {file.split.lower() for file in asked.files}
    if named is not None and not any(split in splits for row in named for split in row):
        named = None
    return replace(answers, split=named)


def _images(answers: Answers, asked: Asked, questions: Sequence[str]) -> list[str] | None:
    """Return the image of each row as the question files spell it; None where the file names none."""
    if answers.image is not None:
        return _spelt_as_asked(answers, asked.files)
    if answers.question_id is None or not asked.ids:
        return None
    images = []
    for row, (question_id, question) in enumerate(zip(answers.question_id, questions, strict=True)):
        image, text, _ = asked.ids.get(question_id, ("", "", None))
        if question not in text:
            raise AuditError(
                f"{answers.where(row)}: question_id {question_id} is another question in the key file "
                f"({shown(text)}, not {shown(question)}); give the key file these answers were made with."
            )
        images.append(image)
    return images


def _spelt_as_asked(answers: Answers, files: Sequence[SplitFile]) -> list[str]:
    """Return image names as the question files spell them; an ending that the answers left out is put back."""
    names = {image for file in files for image, _ in file.keys}
    by_stem = defaultdict(set)
    for name in names:
        by_stem[name.rsplit(".", 1)[0]].add(name)
    spelt = []
    for image in answers.image or ():
        stems = by_stem.get(image, set())
        spelt.append(image if image in names or len(stems) != 1 else next(iter(stems)))
    unknown = [row for row, image in enumerate(spelt) if image not in names]
    if unknown:
        raise AuditError(
            f"{answers.where(unknown[0])}: the image {shown(spelt[unknown[0]])} is in none of the question files "
            f"({len(unknown)} of the {len(spelt)} rows); give the release that was asked."
        )
    return spelt


def _by_sequence(
    questions: Sequence[str], images: Sequence[str] | None, files: Sequence[SplitFile]
) -> Pairing | None:
    """Pair a file that is, row for row, one or several whole splits in turn; None where it is not."""
    used: list[SplitFile] = []
    rows: list[RowOf] = []
    start = 0
    while start < len(questions):
        fitting = [f for f in files if f not in used and _is_at(f, start, questions, images)]
        if len(fitting) > 1:
            raise AuditError(
                f"the answers fit {_named(fitting)} alike; give the question file of one of them."
            )
        if not fitting:
            return None
        used.append(fitting[0])
        rows.append({row: start + row for row in range(len(fitting[0].rows))})
        start += len(fitting[0].rows)
    what = "image and question" if images is not None else "question"
    return Pairing(used, rows, f"the {what} of every row, in the order of {_named(used)}", None)


def _is_at(file: SplitFile, start: int, questions: Sequence[str], images: Sequence[str] | None) -> bool:
    """Tell whether the rows from `start` on are exactly this split's."""
    stop = start + len(file.keys)
    if stop > len(questions) or questions[start] != file.keys[0][1]:
        return False
    return list(questions[start:stop]) == [question for _, question in file.keys] and (
        images is None or list(images[start:stop]) == [image for image, _ in file.keys]
    )


def _by_distinct_sequence(
    answers: Answers, questions: Sequence[str], images: Sequence[str] | None, files: Sequence[SplitFile]
) -> Pairing | None:
    """Pair a file that asks each distinct question of a release once, in the order of its first occurrence.

    VLMEvalKit's POPE file is of this kind: no image names, but the splits of every question.
    """
    if images is not None or answers.split is None:
        return None
    for release in sorted({release for file in files for release in file.releases}):
        own = [file for file in files if release in file.releases]
        for order in permutations(own) if len(own) <= len("apr") else ():
            distinct = list(dict.fromkeys(key for file in order for key in file.keys))
            if [question for _, question in distinct] == list(questions):
                asks = {file.split.lower(): frozenset(file.keys) for file in order}
                splits = [{split for split, asked in asks.items() if key in asked} for key in distinct]
                if splits == [set(row) for row in answers.split]:
                    at = {key: row for row, key in enumerate(distinct)}
                    rows = [{row: at[key] for row, key in enumerate(f.keys)} for f in order]
                    how = f"question and splits of every row, in the order of the distinct questions of {release}"
                    return Pairing(list(order), rows, how, None)
    return None


def _keys(
    answers: Answers, questions: Sequence[str], images: Sequence[str] | None, files: Sequence[SplitFile]
) -> list[Key]:
    """Return (image, question) of each row; from id and text where no image is named.

    Raises:
        AuditError: a row has neither, its id and text are not together in any file, or they are twice, about
            different images.
    """
    if images is not None:
        return list(zip(images, questions, strict=True))
    if answers.question_id is None:
        raise AuditError(
            f"{answers.name}: the rows name no image, and {answers.rows} questions in this order are not "
            f"{_choices(files)}; answers without images can only be paired whole and in order: give all of them, or add a "
            "column image with the picture's file name (and --partial for a part of a split)."
        )
    found: dict[tuple[str, str], set[Key]] = defaultdict(set)
    for file in files:
        for asked, key in zip(file.rows, file.keys, strict=True):
            found[asked.question_id, asked.question].add(key)
    pairs = list(zip(answers.question_id, questions, strict=True))
    missing = [row for row, pair in enumerate(pairs) if pair not in found]
    if missing:
        row = missing[0]
        raise AuditError(
            f"{answers.where(row)}: question_id {pairs[row][0]} is not {shown(pairs[row][1])} in {_choices(files)}, and "
            f"{len(missing)} of {answers.rows} rows do not fit; give the question files that were asked, the file with the "
            "images of these ids (as LLaVA's llava_pope_test.jsonl), or answers that name images."
        )
    double = next((row for row, pair in enumerate(pairs) if len(found[pair]) > 1), None)
    if double is not None:
        raise AuditError(
            f"{answers.where(double)}: question_id {pairs[double][0]} with this question is about different images "
            f"in {_choices(files)}; give the question files of one release and split."
        )
    return [next(iter(found[pair])) for pair in pairs]


def _by_key(answers: Answers, keys: Sequence[Key], files: Sequence[SplitFile], partial: bool) -> Pairing:
    """Pair by (image, question), and by split where the file names it."""
    at: dict[tuple[Key, str | None], list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        for split in answers.split[row] if answers.split is not None else (None,):
            at[key, split].append(row)

    def answer_rows(file: SplitFile) -> list[list[int]]:
        split = None if answers.split is None else file.split.lower()
        return [at.get((key, split), []) for key in file.keys]

    found = {index: answer_rows(file) for index, file in enumerate(files)}
    whole = _largest([index for index, rows in found.items() if all(rows)], files)
    covered = {row for index in whole for rows in found[index] for row in rows}
    if len(covered) < answers.rows:
        if not partial:
            raise AuditError(_incomplete(answers, files, found, covered))
        whole = _partly(answers, files, found)
    chosen = [files[index] for index in whole]
    _refuse_duplicates(answers, keys, chosen)
    rows = [{q: hits[0] for q, hits in enumerate(found[index]) if hits} for index in whole]
    how = "image and question" if answers.split is None else "image, question and split"
    return Pairing(chosen, rows, f"{how} of every row", None)


def _largest(whole: Sequence[int], files: Sequence[SplitFile]) -> list[int]:
    """Leave out a file that asks only a part of another of the same split (RePOPE's of POPE's)."""
    asks = {index: frozenset(files[index].keys) for index in whole}
    return [
        index
        for index in whole
        if not any(asks[index] < asks[other] and files[index].split == files[other].split for other in whole)
    ]


def _partly(answers: Answers, files: Sequence[SplitFile], found: dict[int, list[list[int]]]) -> list[int]:
    """Return the one file that holds every answered question, or the files of the splits that are named."""
    held = {index: {row for rows in hits for row in rows} for index, hits in found.items()}
    if answers.split is not None:
        some = [index for index in held if held[index]]
        if len(set().union(*(held[index] for index in some))) == answers.rows:
            return some
    all_rows = [index for index in held if len(held[index]) == answers.rows]
    if len(all_rows) != 1:
        which = _named([files[index] for index in all_rows]) if all_rows else "none of the question files"
        raise AuditError(
            f"{answers.name}: its {answers.rows} questions are all in {which}; choose with --split."
        )
    return all_rows


def _incomplete(
    answers: Answers, files: Sequence[SplitFile], found: dict[int, list[list[int]]], covered: set[int]
) -> str:
    """Return the sentence about a file that does not answer whole splits."""
    hits = {index: sum(map(bool, rows)) for index, rows in found.items()}
    best = max(hits, key=lambda index: (hits[index] / len(files[index].rows), -index))
    matched = {row for rows in found.values() for hit in rows for row in hit}
    strange = next((row for row in range(answers.rows) if row not in matched), None)
    if strange is not None:
        return (
            f"{answers.where(strange)}: about no question of {_choices(files)}, like {answers.rows - len(matched)} of "
            f"the {answers.rows} rows; give the question files that were asked."
        )
    file = files[best]
    more = answers.rows - len(covered | {row for hit in found[best] for row in hit})
    return (
        f"{answers.name}: answers {hits[best]} of the {len(file.rows)} questions of {file.name} and leaves "
        f"{len(file.rows) - hits[best]} out"
        + (
            f", and {more} of the {answers.rows} rows belong to other splits that are answered in part"
            if more
            else ""
        )
        + "; add the missing answers, or say --partial to score what is there."
    )


def _refuse_duplicates(answers: Answers, keys: Sequence[Key], files: Sequence[SplitFile]) -> None:
    """Refuse two answers to one question, but for the same answer under each split that asks it."""
    asked = Counter(key for file in files for key in file.keys)
    seen: dict[tuple[Key, tuple[str, ...] | None], list[int]] = defaultdict(list)
    for row, key in enumerate(keys):
        seen[key, answers.split[row] if answers.split is not None else None].append(row)
    for (key, split), rows in seen.items():
        alike = len({_said(answers, row) for row in rows}) == 1
        if len(rows) > (asked[key] if split is None and alike else 1):
            raise AuditError(
                f"{answers.where(rows[0])} and {answers.places[rows[1]]}: two answers to {shown(key[1])} about {key[0]}"
                + ("" if alike else ", and they differ")
                + "; keep one, or name the split of each."
            )


def _said(answers: Answers, row: int) -> object:
    """Return what a row answers, for comparison."""
    return (
        answers.text[row] if answers.text is not None else tuple(d[row] for d in answers.decisions.values())
    )


def _by_ids(answers: Answers, files: Sequence[SplitFile], ids_of: str | None, partial: bool) -> Pairing:
    """Pair a file that has nothing but ids, against the release that the user names."""
    known = sorted({release for file in files for release in file.releases})
    if ids_of is None:
        raise AuditError(
            f"{answers.name}: the rows have ids and neither questions nor images, and ids mean different questions "
            f"in different releases; say whose they are, such as --ids-of {known[0]}."
        )
    if answers.question_id is None:
        raise AuditError(
            f"{answers.name}: the rows have neither a question nor an id; nothing can be paired."
        )
    splits = {split for row in answers.split or () for split in row}
    chosen = [f for f in files if ids_of in f.releases and (not splits or f.split.lower() in splits)]
    if len(chosen) != 1:
        held = _named(chosen) if chosen else "none"
        raise AuditError(
            f"{answers.name}: --ids-of {ids_of} must leave one split's question file, and leaves {held} of "
            f"{', '.join(known)}; choose with --split."
        )
    at = {question_id: row for row, question_id in enumerate(answers.question_id)}
    ids = [row.question_id for row in chosen[0].rows]
    surplus = [row for question_id, row in at.items() if question_id not in set(ids)]
    if len(at) < answers.rows or surplus or (len(at) < len(ids) and not partial):
        raise AuditError(
            f"{answers.name}: {answers.rows} rows with {len(at)} different ids, {len(surplus)} of them unknown to "
            f"the {len(ids)} questions of {chosen[0].name}; give the release that was asked, or --partial."
        )
    rows = {q: at[question_id] for q, question_id in enumerate(ids) if question_id in at}
    how = f"question_id alone, taken on your word as those of {ids_of}; every label agrees"
    return Pairing(chosen, [rows], how, None)


def _check_one_release(answers: Answers, pairing: Pairing) -> None:
    """Refuse splits that are of no one release: what they ask was never one benchmark."""
    if not pairing.releases:
        raise AuditError(
            f"{answers.name}: answers {_named(pairing.files)}, which are not of one release; give the "
            "question files of one."
        )
    splits = [file.split for file in pairing.files]
    if len(set(splits)) < len(splits):
        raise AuditError(
            f"{answers.name}: two question files are the same split ({_named(pairing.files)}); give one."
        )


def _check_labels(answers: Answers, pairing: Pairing) -> None:
    """Refuse answers whose own labels are not the release's."""
    if answers.label is None:
        return
    differing = {
        row: file.rows[question].label
        for file, rows in zip(pairing.files, pairing.rows, strict=True)
        for question, row in rows.items()
        if answers.label[row] != file.rows[question].label
    }
    if differing:
        row, label = next(iter(differing.items()))
        raise AuditError(
            f"{answers.where(row)}: its label is {answers.label[row]}, and that of {release_name(pairing.releases)} is "
            f"{label} ({len(differing)} of the {answers.rows} rows differ); mend the labels or leave them out, or give the "
            "question files of the release that these answers were scored against."
        )


def _named(files: Sequence[SplitFile]) -> str:
    """Name split files in one phrase."""
    return ", ".join(file.name for file in files)


def _choices(files: Sequence[SplitFile]) -> str:
    """Name the question files given, with their row counts."""
    named = [f"{file.name} ({len(file.rows)} rows)" for file in files]
    return " or ".join(named) if len(named) < 4 else f"{', '.join(named[:3])} or {len(named) - 3} more"
