"""Table 5: the ids of the eight yes and no forms in each model's own vocabulary (paper, Appendix)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from readout_audit import contracts
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, text_column
from readout_audit.tables.first_tokens import FirstTokens, first_tokens
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.vocabulary import FROM_PAPER, FROM_VOCABULARY, in_order
from readout_audit.tokens.surface import surface

NO_PIECE = "not in the vocabulary"


class Form(NamedTuple):
    """One surface form; id and piece are None where the vocabulary has no such piece."""

    answer: str
    form: str
    token: int | None
    piece: str | None


def build(inputs: RunTables) -> Table:
    """Return the ids of the eight forms by model, and how many answers began with each."""
    found = first_tokens(inputs)
    models = dict.fromkeys((*(tokens.cell.model for tokens in found), *inputs.token_maps))
    rows: list[tuple[Cell, ...]] = []
    for model in models:
        cells = [tokens for tokens in found if tokens.cell.model == model]
        token_map = inputs.token_maps.get(model)
        source = FROM_VOCABULARY if token_map else FROM_PAPER
        for form in _looked_up(token_map) if token_map else _published(cells):
            rows.append(
                (
                    model,
                    source,
                    form.answer,
                    f'"{form.form}"',
                    form.piece or NO_PIECE,
                    NO_PIECE if form.token is None else form.token,
                    _generated(cells, form.token),
                )
            )
    total = sum(tokens.total.total() for tokens in found)
    return Table(
        number=5,
        name="table_05_token_ids",
        title="Token ids of the yes and no forms",
        columns=(
            text_column("model", identity=True),
            text_column("source", identity=True),
            text_column("answer"),
            text_column("form"),
            text_column("piece"),
            Column("id"),
            Column("answers that begin with it"),
        ),
        rows=tuple(rows),
        n=f"{total:,} answers with a known first token, over all splits and settings",
        notes=(
            "source vocabulary: looked up in the tokenizer's vocabulary; source paper: as the paper prints "
            "them, no tokenizer was at hand. ▁ and Ġ stand for a leading space.",
            *_pooled(found),
        ),
    )


def _looked_up(token_map: Mapping[str, Any]) -> Iterator[Form]:
    """Yield the eight forms of a token map."""
    for answer in contracts.LABELS:
        for form in in_order(token_map["vocabulary"][answer]):
            token = token_map["vocabulary"][answer][form]
            piece = None if token is None else token_map["pieces"].get(str(token))
            yield Form(answer, form, token, piece)


def _published(cells: list[FirstTokens]) -> Iterator[Form]:
    """Yield the forms whose ids and pieces the first decision file of a model states."""
    for tokens in cells[:1]:
        for token, answer in tokens.sides.items():
            piece = tokens.pieces.get(token)
            if piece is not None:
                yield Form(answer, surface(piece, byte_level=True), token, piece)


def _pooled(found: list[FirstTokens]) -> Iterator[str]:
    """Say of each model that was asked in several settings that its answers are counted together."""
    for model in dict.fromkeys(tokens.cell.model for tokens in found):
        cells = [tokens for tokens in found if tokens.cell.model == model]
        if len(cells) > 1:
            asked = "; ".join(
                f"{tokens.cell.dataset} {tokens.cell.precision} {tokens.cell.template}, {tokens.total.total():,}"
                for tokens in cells
            )
            yield f"{model}: the answers of its {len(cells)} settings are counted together ({asked})."


def _generated(cells: list[FirstTokens], token: int | None) -> Cell:
    """Return how many answers of a model began with an id, over all its cells and splits."""
    if not any(tokens.counts for tokens in cells):
        return NOT_AVAILABLE
    return sum((tokens.total for tokens in cells), Counter())[token] if token is not None else 0
