"""Figure 10: from surface forms to token ids, one vocabulary beside another (paper, Appendix)."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from readout_audit.figures import style
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.table_10_encodings import printed_encodings, printed_vocabulary
from readout_audit.tables.vocabulary import FORMS, FROM_PAPER, FROM_VOCABULARY

CAPTION = (
    "Solid: the form is one token. Dashed: several tokens. Heavy frame: the one-token rule keeps the id."
)
LOOKED_UP_CAPTION = "Looked up as pieces: ids of the vocabulary's own pieces. Encoding a text may give others; none is framed."
LOOKED_UP = f"{FROM_PAPER}, looked up as pieces"
"""Table 5 names each piece's id in the vocabulary, which is not what encoding its text gives."""


class Encoding(NamedTuple):
    """What one vocabulary makes of the forms: form -> ids, and id -> piece where known."""

    model: str
    source: str
    ids: Mapping[str, Sequence[int]]
    pieces: Mapping[int, str]


def draw(inputs: RunTables) -> Figure:
    """Draw one panel per vocabulary, two side by side; capitals, which a token map holds too, are in Table 10."""
    found = _encodings(inputs)
    if not found:
        figure = style.new_figure(style.WIDTH, 1.0)
        return style.say_nothing_to_show(figure, "No tokenizer was at hand, and no map of one is printed.")
    rows = math.ceil(len(found) / 2)
    figure = style.new_figure(style.WIDTH, 0.4 + 3.3 * rows)
    spec = figure.add_gridspec(rows, 4)
    for index, encoding in enumerate(found):
        # Two to a row; one left over stands in the middle of its row.
        start = 1 if index == len(found) - 1 and index % 2 == 0 else 2 * (index % 2)
        axes = figure.add_subplot(spec[index // 2, start : start + 2])
        _draw_panel(axes, encoding)
        axes.set_axis_off()
    said = [CAPTION]
    if any(encoding.pieces for encoding in found):
        said.append(style.PIECES)
    if any(encoding.source == LOOKED_UP for encoding in found):
        said.append(LOOKED_UP_CAPTION)
    figure.supxlabel("\n".join(said), fontsize=7, color=style.GREY)
    return figure


def _encodings(inputs: RunTables) -> list[Encoding]:
    """Return the maps of the run's tokenizers, then printed ones of other models: Table 5 first, then Table 10."""
    found = [
        Encoding(
            model,
            FROM_VOCABULARY,
            {form: token_map["encode"][form] for form in FORMS if form in token_map["encode"]},
            {int(token): piece for token, piece in token_map["pieces"].items()},
        )
        for model, token_map in inputs.token_maps.items()
    ]
    claims = inputs.sources.claims
    for source, maps in ((LOOKED_UP, printed_vocabulary(claims)), (FROM_PAPER, printed_encodings(claims))):
        printed: dict[str, dict[str, list[int]]] = {}
        for model, form, ids in maps:
            if model not in inputs.token_maps and form in FORMS:
                printed.setdefault(model, {})[form] = ids
        found += [Encoding(model, source, ids, {}) for model, ids in printed.items()]
    return found


def _draw_panel(axes: Axes, encoding: Encoding) -> None:
    """Draw forms on the left, ids on the right, a line for each use of an id."""
    tokens = list(dict.fromkeys(token for ids in encoding.ids.values() for token in ids))
    looked_up = encoding.source == LOOKED_UP
    kept = {ids[0] for ids in encoding.ids.values() if len(ids) == 1 and not looked_up}
    forms = list(encoding.ids)
    left = {form: _height(index, len(forms)) for index, form in enumerate(forms)}
    right = {token: _height(index, len(tokens)) for index, token in enumerate(tokens)}
    for form, ids in encoding.ids.items():
        for token in ids:
            axes.plot(
                [0.22, 0.6],
                [left[form], right[token]],
                color=style.mark(0).colour if len(ids) == 1 else style.mark(1).colour,
                linestyle="-" if len(ids) == 1 else (0, (4, 2)),
                linewidth=1.1,
            )
        axes.text(0.2, left[form], f'"{form}"', ha="right", va="center", family="DejaVu Sans Mono")
    for token, height in right.items():
        piece = encoding.pieces.get(token)
        axes.text(
            0.62,
            height,
            f"{token}  {piece}" if piece else str(token),
            va="center",
            bbox={
                "boxstyle": "round,pad=0.25",
                "facecolor": "white",
                "edgecolor": style.INK if token in kept else style.GREY,
                "linewidth": 1.5 if token in kept else 0.6,
            },
        )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_title(f"{encoding.model} ({encoding.source})\n{len(forms)} forms, {len(tokens)} ids")


def _height(index: int, count: int) -> float:
    """Return the height of the index-th of several rows, from top to bottom."""
    return 0.95 - 0.9 * index / max(1, count - 1) if count > 1 else 0.5
