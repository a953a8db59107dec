"""Small decision files of several cells."""

from pathlib import Path
from typing import Any

from scores.decision_files import CELL, row, write_decisions

LABELS = ("yes", "yes", "no", "no")


def write_cell(folder: Path, answers: dict[str, str], **cell: str) -> Path:
    """Write one cell's decisions on four questions about two images.

    Args:
        folder: where to.
        answers: readout -> one letter per question: y, n, u(nparsed), i(nvalid).
        cell: what differs from the test cell; `readouts` of the metadata may be given too.
    """
    words = {"y": "yes", "n": "no", "u": "unparsed", "i": "invalid"}
    rows: list[dict[str, Any]] = [
        row(
            "random",
            number,
            label,
            image=f"{number % 2}.jpg",
            **{name: words[letters[number]] for name, letters in answers.items()},
        )
        for number, label in enumerate(LABELS)
    ]
    about = CELL | cell
    path = folder / ("-".join(about.values()) + ".parquet")
    return write_decisions(path, [one | {"dataset": about["dataset"]} for one in rows], cell=about)
