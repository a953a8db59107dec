"""Table 10: what `encode` makes of each yes and no form, and which ids the one-token rule keeps (Appendix)."""

from pathlib import Path

from readout_audit.claims.numbers import read_numbers, select
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.vocabulary import FORMS, FROM_PAPER, FROM_VOCABULARY, in_order


def build(inputs: RunTables) -> Table:
    """Return the ids of every form by model; a printed map stands in for a model without a tokenizer."""
    rows: list[tuple[Cell, ...]] = []
    for model, token_map in inputs.token_maps.items():
        pieces = token_map["pieces"]
        for form in in_order(token_map["encode"]):
            ids = token_map["encode"][form]
            shown = " ".join(str(pieces.get(str(token))) for token in ids)
            rows.append(_row(model, FROM_VOCABULARY, form, ids, shown))
    for model, form, ids in printed_encodings(inputs.sources.claims):
        if model not in inputs.token_maps:
            rows.append(_row(model, FROM_PAPER, form, ids, NOT_AVAILABLE))
    return Table(
        number=10,
        name="table_10_encodings",
        title="Token ids of each surface form",
        columns=(
            text_column("model", identity=True),
            text_column("source", identity=True),
            text_column("form"),
            text_column("ids"),
            text_column("pieces"),
            Column("tokens"),
            text_column("kept by the one-token rule"),
        ),
        rows=tuple(rows),
        n=f"{len(rows):,} forms",
        notes=(
            "Ids are those of encode(form) without special tokens. The one-token rule keeps those of the first eight "
            "forms that are a single token. source vocabulary: from the tokenizer; "
            "source paper: as printed. A form that starts with a space may come out as a lone ▁ and a second "
            "piece: that is how the text before it is cut, and does not mean that the vocabulary lacks a piece "
            "with a leading space.",
        ),
    )


def _row(model: str, source: str, form: str, ids: list[int], pieces: str) -> tuple[Cell, ...]:
    """Return the row of one form."""
    kept = "yes" if form in FORMS and len(ids) == 1 else "no"
    return model, source, f'"{form}"', " ".join(map(str, ids)) or "none", pieces or "none", len(ids), kept


def printed_encodings(claims: Path | None) -> list[tuple[str, str, list[int]]]:
    """Return (model, form, ids) of the printed maps; empty where there are no published numbers."""
    if claims is None:
        return []
    return [
        (number.model, number.quantity.partition(":")[2], [int(token) for token in number.printed.split(",")])
        for number in select(read_numbers(claims), kind="encode")
    ]


def printed_vocabulary(claims: Path | None) -> list[tuple[str, str, list[int]]]:
    """Return (model, form, ids) of the printed look-up of pieces (Table 5); empty without published numbers."""
    if claims is None:
        return []
    return [
        (number.model, number.quantity.partition(":")[2], [number.as_count])
        for number in select(read_numbers(claims), kind="vocabulary")
    ]
