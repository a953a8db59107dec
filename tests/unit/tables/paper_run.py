"""The files of a small run, written from printed integers: what the table and figure tests read.

TRANSITIONS are the cells of the paper's Table 7: label -> (8y2y, 8y2n, 8n2y, 8n2n).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from readout_audit import contracts, fileio
from readout_audit.tables.inputs import CellKey, Options, RunTables, Sources

TWO, EIGHT = "legacy_2tok", "legacy_8tok"
SPLITS = ("adversarial", "popular", "random")
LLAVA = CellKey("coco-2023-10", "llava-1.5-7b", "nf4", "authors", "counts")
OPTIONS = Options(splits=SPLITS, models=("llava-1.5-7b",), reference_model="llava-1.5-7b")

TRANSITIONS: dict[str, dict[str, tuple[int, int, int, int]]] = {
    "adversarial": {"yes": (1174, 0, 264, 62), "no": (182, 0, 660, 658)},
    "popular": {"yes": (1191, 0, 250, 59), "no": (112, 0, 567, 821)},
    "random": {"yes": (1191, 0, 250, 59), "no": (43, 0, 448, 1009)},
}
MOVES = (("yes", "yes"), ("yes", "no"), ("no", "yes"), ("no", "no"))

LLAMA_IDS = {
    "yes": {"yes": 3582, "Yes": 8241, " yes": 4874, " Yes": 3869},
    "no": {"no": 1217, "No": 3782, " no": 694, " No": 1939},
}
LLAMA_PIECES = {
    3582: "yes",
    8241: "Yes",
    4874: "▁yes",
    3869: "▁Yes",
    1217: "no",
    3782: "No",
    694: "▁no",
    1939: "▁No",
}
READOUTS_READ = {
    TWO: {"available": True, "ids": {"yes": [3582], "no": [1217]}, "kind": "logit"},
    EIGHT: {
        "available": True,
        "ids": {"yes": [3582, 3869, 4874, 8241], "no": [694, 1217, 1939, 3782]},
        "pieces": {str(token): piece for token, piece in LLAMA_PIECES.items()},
        "kind": "logit",
    },
}

Cells = Mapping[str, tuple[int, int, int, int]]


def confusion_counts(cells: Cells, readout: str) -> dict[str, int]:
    """Count one readout's matrix from a split's transitions."""
    (yy, yn, ny, nn), (no_yy, no_yn, no_ny, no_nn) = cells["yes"], cells["no"]
    if readout == EIGHT:
        return {"tp": yy + yn, "fn": ny + nn, "fp": no_yy + no_yn, "tn": no_ny + no_nn}
    return {"tp": yy + ny, "fn": yn + nn, "fp": no_yy + no_ny, "tn": no_yn + no_nn}


def score_row(cell: CellKey, labels: str, split: str, readout: str, **counts: int | None) -> dict[str, Any]:
    """Return one row of a score table: the counts given, zeros elsewhere, no rates."""
    row: dict[str, Any] = dict.fromkeys(contracts.SCORES.names)
    row |= cell._asdict() | {"labels": labels, "split": split, "readout": readout, "subset": "all"}
    names = ("tp", "fp", "tn", "fn", "unparsed_pos", "unparsed_neg", "invalid_pos", "invalid_neg")
    row |= dict.fromkeys(names, 0) | counts
    row["n"] = None if row["tp"] is None else sum(row[name] for name in names)
    return row


def paper_scores(cell: CellKey = LLAVA, splits: Iterable[str] = SPLITS) -> list[dict[str, Any]]:
    """Return the scores that Table 7's integers give."""
    return [
        score_row(cell, "pope", split, readout, **confusion_counts(TRANSITIONS[split], readout))
        for split in splits
        for readout in (TWO, EIGHT)
    ]


def write_scores(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a score table."""
    path = folder / "scores.parquet"
    fileio.write_table(path, pa.Table.from_pylist(rows, contracts.SCORES), contracts.SCORES)
    return path


def transition_rows(cell: CellKey, split: str, cells: Cells) -> list[dict[str, Any]]:
    """Return a split's rows of a transition table, eight-token to two-token."""
    about = cell._asdict() | {"labels": "pope", "split": split, "readout_from": EIGHT, "readout_to": TWO}
    return [
        about | {"label": label, "decision_from": before, "decision_to": after, "n": count}
        for label, counts in cells.items()
        for (before, after), count in zip(MOVES, counts, strict=True)
    ]


def write_transitions(folder: Path, rows: list[dict[str, Any]], name: str = "transitions.parquet") -> Path:
    """Write a transition table."""
    path = folder / name
    fileio.write_table(path, pa.Table.from_pylist(rows, contracts.TRANSITIONS), contracts.TRANSITIONS)
    return path


def write_gap(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a gap table; columns a row lacks are null."""
    path = folder / "gap.parquet"
    complete = [dict.fromkeys(contracts.GAP.names) | row for row in rows]
    fileio.write_table(path, pa.Table.from_pylist(complete, contracts.GAP), contracts.GAP)
    return path


def paper_transitions(folder: Path) -> Path:
    """Write the paper's Table 7 as a transition table."""
    rows = [row for split, cells in TRANSITIONS.items() for row in transition_rows(LLAVA, split, cells)]
    return write_transitions(folder, rows)


def decision_rows(
    cell: CellKey, cells: Mapping[str, Cells], *, tokens: tuple[int, int] | None, order_known: bool
) -> list[dict[str, Any]]:
    """Return rows that realise the transitions, yes and no labels alternating while both last.

    Args:
        tokens: first-token ids of an eight-token yes and no; None where the source does not know them.
    """
    rows = []
    for split, by_label in cells.items():
        answers = {
            label: [move for move, count in zip(MOVES, counts, strict=True) for _ in range(count)]
            for label, counts in by_label.items()
        }
        pairs = [(label, answer, index) for label in answers for index, answer in enumerate(answers[label])]
        for number, (label, (eight, two), _) in enumerate(sorted(pairs, key=lambda pair: pair[2])):
            row: dict[str, Any] = dict.fromkeys(contracts.decisions_schema([TWO, EIGHT]).names)
            row |= {"dataset": cell.dataset, "split": split, "question_id": str(number + 1), "label": label}
            row |= {"order_known": order_known, TWO: two, EIGHT: eight}
            if tokens is not None:
                row["first_token_id"] = tokens[0] if eight == "yes" else tokens[1]
            rows.append(row)
    return rows


def write_decisions(
    folder: Path,
    rows: list[dict[str, Any]],
    cell: CellKey = LLAVA,
    readouts: Mapping[str, Any] = READOUTS_READ,
    name: str = "decisions.parquet",
) -> Path:
    """Write a decision file."""
    schema = contracts.decisions_schema(list(readouts))
    complete = [dict.fromkeys(schema.names) | row for row in rows]
    path = folder / name
    metadata = {"cell": cell._asdict(), "readouts": dict(readouts)}
    fileio.write_table(path, pa.Table.from_pylist(complete, schema), schema, metadata)
    return path


def run_of(options: Options = OPTIONS, **sources: Any) -> RunTables:
    """Return the tables of a run with these files."""
    return RunTables(Sources(**sources), options)
