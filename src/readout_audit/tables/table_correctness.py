"""Does any signal know which answers are wrong, beyond the logit gap?"""

from collections.abc import Mapping
from typing import Any

from readout_audit.corrections.registry import value
from readout_audit.corrections.schema import ANSWERS, GAP, OK
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.measured import LEADING, blocks, ends, known, p_value
from readout_audit.tables.table_08_corrections import REFERENCE

GROUPS = {"all": "all answers", "yes": "answers yes", "no": "answers no"}


def build(inputs: RunTables) -> Table:
    """Return the AUC of every signal for a wrong answer, alone and added to |gap|, on every split."""
    rows: list[tuple[Cell, ...]] = []
    sizes: list[int] = []
    for block in blocks(inputs, "correctness"):
        found = {(row["signal"], row["answers"]): row for row in block.rows}
        for signal in dict.fromkeys(row["signal"] for row in block.rows):
            by_answers = [found[signal, answers] for answers in ANSWERS]
            sizes += [int(by_answers[0]["n"])] if by_answers[0]["status"] == OK else []
            title = "|logit gap|" if signal == GAP else value(signal).title
            cells = [cell for row in by_answers for cell in _cells(row)]
            rows.append((*block.leading, title, *cells))
    return Table(
        number=None,
        name="table_correctness",
        title="What each signal knows about wrong answers, alone and beyond the logit gap",
        columns=(
            *LEADING,
            text_column("signal"),
            *(one for group in GROUPS.values() for one in _columns(group)),
        ),
        rows=tuple(rows),
        n=n_text(sizes, "answers per split"),
        notes=(
            "AUC: the chance that the signal is larger on a wrong answer than on a right one; one half is "
            "chance, below it the signal is smaller on wrong answers. Interval clustered by image (Obuchowski).",
            "gain: AUC of a logistic model of |gap| and the signal minus that of |gap| alone, predicted out of "
            "fold, folds of images. p: of no gain, corrected for the number of signals (Bonferroni).",
        ),
    )


def _columns(group: str) -> tuple[Column, ...]:
    """Return the columns of one kind of answer."""
    return (
        Column("wrong", group=group),
        Column("AUC", decimals=3, group=group),
        Column("95%", decimals=3, group=group),
        Column("gain", decimals=4, group=group),
        Column("95% of gain", decimals=4, group=group),
        Column("p", group=group),
    )


def _cells(row: Mapping[Any, Any]) -> tuple[Cell, ...]:
    """Return the cells of one signal among one kind of answer."""
    if row["status"] != OK:
        return (NOT_AVAILABLE,) * 6
    alone = (int(row["wrong"]), known(row["auc"]), ends(row, "auc"))
    if row["signal"] == GAP:
        return (*alone, *(REFERENCE,) * 3)
    return (*alone, known(row["gain"]), ends(row, "gain"), p_value(row["p_corrected"]))
