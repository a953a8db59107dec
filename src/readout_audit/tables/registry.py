"""Every table by name: where it is built and which files of a run it reads."""

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from readout_audit.errors import AuditError

if TYPE_CHECKING:
    from readout_audit.tables.base import Table
    from readout_audit.tables.inputs import RunTables


class Entry(NamedTuple):
    """One table.

    Attributes:
        module: the module whose `build(RunTables) -> Table` makes it.
        needs: the kinds of file it reads, out of `tables.inputs.SOURCES`, and `ORDER`.
    """

    module: str
    needs: tuple[str, ...]


TABLES: dict[str, Entry] = {
    "table_01_first_tokens": Entry("readout_audit.tables.table_01_first_tokens", ("decisions", "claims")),
    "table_02_protocols": Entry("readout_audit.tables.table_02_protocols", ("scores",)),
    "table_04_readouts": Entry("readout_audit.tables.table_04_readouts", ("scores", "decisions", "claims")),
    "table_05_token_ids": Entry("readout_audit.tables.table_05_token_ids", ("decisions", "tokens", "claims")),
    "table_07_transitions": Entry("readout_audit.tables.table_07_transitions", ("transitions",)),
    "table_13_confusion": Entry("readout_audit.tables.table_13_confusion", ("scores",)),
}


def entry(name: str) -> Entry:
    """Return the entry of a table.

    Raises:
        AuditError: there is no such table.
    """
    if name not in TABLES:
        raise AuditError(f"There is no table {name!r}; the tables are {', '.join(TABLES)}.")
    return TABLES[name]


def get(name: str) -> "Callable[[RunTables], Table]":
    """Return the function that builds a table; its module is imported now."""
    build: Callable[[RunTables], Table] = importlib.import_module(entry(name).module).build
    return build
