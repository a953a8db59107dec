"""What a second release of the same questions changes, in sentences with the table that shows it."""

from collections.abc import Mapping, Sequence
from typing import Any

from readout_audit.compare.pairing import REWORDED
from readout_audit.compare.releases import confusion
from readout_audit.exact import printed
from readout_audit.report.grid import Column, Grid, grid, numbers, texts
from readout_audit.report.text import of, points

MOST_EXAMPLES = 20

Row = Mapping[str, Any]


def pairs(rows: Sequence[Row]) -> dict[tuple[str, ...], list[Row]]:
    """Return rows by cell and pair of releases, in their order."""
    names = ("model", "precision", "template", "release_a", "release_b")
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def name(pair: tuple[str, ...]) -> str:
    """Return a cell and its two releases in one phrase."""
    model, precision, template, first, second = pair
    return f"{model} ({precision}, {template}): {first} and {second}"


def sentences(rows: Sequence[Row], readouts: Sequence[str]) -> tuple[str, ...]:
    """Say for every split what differs, and under each of the readouts what that does to answers and F1."""
    said = []
    for split in dict.fromkeys(row["split"] for row in rows):
        here = {row["readout"]: row for row in rows if row["split"] == split}
        one = next(iter(here.values()))
        if not one["reworded"]:
            said.append(f"On {split} all {one['same']:,} shared questions are asked in the same words.")
            continue
        said.append(
            f"On {split}, {of(one['reworded'], one['n_a'])} questions are asked in other words: {one['misspelt_a']:,} "
            f"are misspelt in {one['release_a']}, {one['misspelt_b']:,} in {one['release_b']}."
        )
        said += [_change(here[readout]) for readout in readouts if readout in here]
    return (*said, *_alike(rows))


def _change(row: Row) -> str:
    """Say what becomes of the reworded questions and of F1 under one readout."""
    before, after = (confusion(dict(row), side).f1 for side in "ab")
    difference = None if before is None or after is None else after - before
    return (
        f"Under {row['readout']} {of(row['reworded_changed'], row['reworded'])} of these are answered otherwise; F1 on "
        f"{row['split']} goes from {printed(before, 4)} to {printed(after, 4)} ({points(difference)} points)."
    )


def _alike(rows: Sequence[Row]) -> tuple[str, ...]:
    """Say whether questions in the same words are answered alike, as one deterministic setup would."""
    changed = sum(row["same_changed"] for row in rows)
    if changed:
        return (
            f"Questions in the same words are answered otherwise {changed:,} times over all splits and readouts: the "
            "two releases were not asked by one deterministic setup.",
        )
    return ("Questions in the same words are answered alike, under every readout and on every split.",)


def counts(rows: Sequence[Row]) -> Grid:
    """Return the counts and scores of one pair."""
    columns = (
        *texts("split", "readout"),
        *numbers("asked", "changed", group="same words"),
        *numbers("asked", "changed", "yes → no", "no → yes", group="other words"),
        *numbers("A", "B", "points", group="F1"),
    )
    names = (
        "same",
        "same_changed",
        "reworded",
        "reworded_changed",
        "reworded_yes_to_no",
        "reworded_no_to_yes",
    )
    cells = []
    for row in rows:
        before, after = (confusion(dict(row), side).f1 for side in "ab")
        difference = None if before is None or after is None else after - before
        shown = (printed(before, 4), printed(after, 4), points(difference))
        cells.append([row["split"], row["readout"], *(f"{row[name]:,}" for name in names), *shown])
    caption = f"A = {rows[0]['release_a']}, B = {rows[0]['release_b']}"
    notes = ("Joined by picture and exact question, else by picture and object; never by question id.",)
    return grid(columns, cells, caption, notes)


def examples(changes: Sequence[Row], pair: tuple[str, ...], readouts: Sequence[str]) -> Grid | None:
    """Return the first questions whose answer changes with their wording; None where there is none."""
    of_pair = pairs(changes).get(pair, [])
    reworded = [row for row in of_pair if row["group"] == REWORDED and row["readout"] in readouts]
    if not reworded:
        return None
    columns = (
        *texts("split", "readout", "label", "picture"),
        Column("question in A", "long"),
        Column("question in B", "long"),
        *texts("A", "B"),
    )
    names = ("split", "readout", "label_a", "image", "question_a", "question_b", "answer_a", "answer_b")
    cells = [[str(row[name]) for name in names] for row in reworded[:MOST_EXAMPLES]]
    return grid(
        columns, cells, f"The first {len(cells):,} of {len(reworded):,} answers that change with the words"
    )
