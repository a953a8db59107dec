"""Several questions about one image in one row: who may look at whom.

A row of the decoder's cache holds the shared prefix, then the suffixes of all questions one after another,
then one new token of each unfinished question, step by step. Every column has an owner. A position may look
at the prefix and at its own question's columns up to itself, and at nothing else, so each question reads
exactly what it would read alone, without a copy of the prefix per question.
"""

from dataclasses import dataclass

import torch

PREFIX, PADDING = -1, -2
"""Owners of columns that belong to no single question."""


@dataclass(frozen=True)
class Packed:
    """Pieces of several questions laid out in rows.

    Attributes:
        ids: (rows, n) int64, 0 at padding.
        positions: (axes, rows, n) int64, 0 at padding.
        is_image: (rows, n) bool: placeholders.
        owners: (rows, n) int64: index of the question in its row, or `PADDING`.
        last: (rows, questions) int64: column of each question's last position, in the order of the pieces.
    """

    ids: torch.Tensor
    positions: torch.Tensor
    is_image: torch.Tensor
    owners: torch.Tensor
    last: list[list[int]]


@dataclass(frozen=True)
class Piece:
    """Consecutive positions of one question.

    Attributes:
        owner: index of the question in its row.
        ids: (n,) int64.
        positions: (axes, n) int64.
        is_image: (n,) bool, which ids are placeholders; a model may emit that id too, as plain text.
        visual: (k, width), the vectors of the k placeholders.
    """

    owner: int
    ids: torch.Tensor
    positions: torch.Tensor
    is_image: torch.Tensor
    visual: torch.Tensor


def pack(rows: list[list[Piece]]) -> Packed:
    """Lay the pieces of each row end to end and pad the rows to one length."""
    width = max(sum(len(piece.ids) for piece in row) for row in rows)
    axes = next(piece.positions.shape[0] for row in rows for piece in row)
    ids = torch.zeros((len(rows), width), dtype=torch.int64)
    positions = torch.zeros((axes, len(rows), width), dtype=torch.int64)
    is_image = torch.zeros((len(rows), width), dtype=torch.bool)
    owners = torch.full((len(rows), width), PADDING, dtype=torch.int64)
    last: list[list[int]] = []
    for number, row in enumerate(rows):
        start, ends = 0, []
        for piece in row:
            stop = start + len(piece.ids)
            ids[number, start:stop] = piece.ids
            positions[:, number, start:stop] = piece.positions
            is_image[number, start:stop] = piece.is_image
            owners[number, start:stop] = piece.owner
            ends.append(stop - 1)
            start = stop
        last.append(ends)
    return Packed(ids, positions, is_image, owners, last)


def allowed_columns(owners: torch.Tensor, new: int) -> torch.Tensor:
    """Return which columns each of the `new` last columns may look at.

    Args:
        owners: (rows, columns) owners of everything in the cache, the new columns included.
        new: how many of the columns are new.

    Returns:
        (rows, new, columns) bool. A column may always look at itself, padding too: a row of a softmax
        with nothing to look at would be NaN.
    """
    columns = owners.shape[1]
    asking = owners[:, columns - new :, None]
    looked_at = owners[:, None, :]
    places = torch.arange(columns, device=owners.device)
    not_later = places[None, :] <= places[columns - new :, None]
    return ((looked_at == PREFIX) | (looked_at == asking)) & not_later[None]


def common_prefix(prompts: list[torch.Tensor]) -> int:
    """Return how many ids all prompts share at their start, leaving each at least one of its own."""
    length = min(len(prompt) for prompt in prompts) - 1
    if length <= 0:
        return 0
    heads = torch.stack([prompt[:length] for prompt in prompts])
    same = (heads == heads[:1]).all(dim=0)
    return int(same.to(torch.int64).cumprod(dim=0).sum())
