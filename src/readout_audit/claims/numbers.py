"""The published numbers as data: one row per number or statement (resources/paper/numbers.csv)."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path

from readout_audit.errors import AuditError

ORIGINS = ("paper", "repository", "derived")
"""Printed in the paper; printed in the authors' public repository; follows from printed integers."""


@dataclass(frozen=True, slots=True)
class Number:
    """One published number.

    Attributes:
        id: stable name, unique ("t2.adversarial.legacy_2tok.f1").
        section: where it is printed ("Table 2").
        claim: what it says, in words.
        printed: as printed, trailing zeros kept; a text for statements in words.
        decimals: digits after the point of `printed` on its own scale; None for statements.
        origin: one of `ORIGINS`.
        model, split, readout, template: what it is about; empty where that does not apply.
        kind, quantity: how it is reproduced; see `readout_audit.claims.registry`.
        group: numbers that must hold together; empty where it stands alone.
    """

    id: str
    section: str
    claim: str
    printed: str
    decimals: int | None
    origin: str
    model: str
    split: str
    readout: str
    template: str
    kind: str
    quantity: str
    group: str

    @property
    def as_count(self) -> int:
        """The number as a count.

        Raises:
            AuditError: it is not a whole number.
        """
        if not self.printed.isascii() or not self.printed.isdigit():
            raise AuditError(f"published number {self.id}: {self.printed!r} is not a count.")
        return int(self.printed)


COLUMNS = tuple(field.name for field in fields(Number))


def read_numbers(path: Path) -> list[Number]:
    """Read the published numbers.

    Raises:
        AuditError: the file cannot be read, has other columns, a repeated id, an unknown origin, or decimals
            that are not those of the printed text.
    """
    try:
        with Path(path).open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            rows = list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise AuditError(f"{path}: the published numbers cannot be read ({error}).") from error
    if tuple(reader.fieldnames or ()) != COLUMNS:
        raise AuditError(f"{path}: the columns must be {', '.join(COLUMNS)}.")
    numbers = [_number(row, f"{path}, row {line}") for line, row in enumerate(rows, start=2)]
    seen: set[str] = set()
    for number in numbers:
        if number.id in seen:
            raise AuditError(f"{path}: the id {number.id} stands twice.")
        seen.add(number.id)
    return numbers


def _number(row: dict[str, str], where: str) -> Number:
    """Check one row."""
    if None in row or None in row.values():
        raise AuditError(f"{where}: the number of cells is not {len(COLUMNS)}.")
    if row["origin"] not in ORIGINS:
        raise AuditError(f"{where}: origin must be one of {', '.join(ORIGINS)}, not {row['origin']!r}.")
    if row["decimals"] and not row["decimals"].isdigit():
        raise AuditError(f"{where}: decimals must be a whole number or empty, not {row['decimals']!r}.")
    decimals = int(row["decimals"]) if row["decimals"] else None
    if decimals is not None and len(row["printed"].rstrip("%").partition(".")[2]) != decimals:
        raise AuditError(f"{where}: {row['printed']!r} does not have {decimals} decimals.")
    return Number(**{**row, "decimals": decimals})  # type: ignore[arg-type]


def select(numbers: Iterable[Number], **wanted: str) -> list[Number]:
    """Return the numbers whose fields have the given values, in order."""
    return [
        number for number in numbers if all(getattr(number, key) == value for key, value in wanted.items())
    ]
