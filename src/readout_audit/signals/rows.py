"""Rows of the signals table."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from readout_audit.inference.base import Question
from readout_audit.signals.schema import SIGNALS

OK, INVALID = "ok", "invalid"

Row = dict[str, Any]
"""One row of `schema.SIGNALS`."""


def empty_row(question: Question, image_sha256: str | None) -> Row:
    """Return the row of a question before anything is measured: every measured column null."""
    identity = {"uid": question.uid, "image": question.image, "image_sha256": image_sha256, "status": OK}
    return {**dict.fromkeys(SIGNALS.names), **identity}


def invalid_row(question: Question, image_sha256: str | None, reason: str) -> Row:
    """Return the row of a question that could not be measured."""
    return {**empty_row(question, image_sha256), "status": INVALID, "reason": reason}


def table(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table under `schema.SIGNALS`."""
    return pa.Table.from_pylist(list(rows), schema=SIGNALS)
