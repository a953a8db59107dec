"""Table 9: attention of right and wrong answers, and the logit gap by outcome (paper, Appendix F.3)."""

from readout_audit.exact import printed
from readout_audit.probe.answers import ATTENTION_WINDOW
from readout_audit.tables.base import NOT_AVAILABLE, Cell, Column, Table, n_text, text_column
from readout_audit.tables.inputs import RunTables
from readout_audit.tables.measured import LEADING, blocks, number

TITLES = {
    "attention_window": "attention, fixed positions",
    "attention_image": "attention, image positions",
    "gap": "|logit gap|",
    "clip_l": "CLIP-L similarity",
    "yes_logit": "largest yes logit",
    "no_logit": "largest no logit",
}
"""Signals of the probe, as tables and figures call them."""

SHOWN = {
    "attention_window": ("correct", "wrong"),
    "attention_image": ("correct", "wrong"),
    "gap": ("tp", "tn", "fp", "fn"),
    "clip_l": ("tp", "fp"),
    "yes_logit": ("all",),
    "no_logit": ("all",),
}
"""The groups of each signal; the paper's rows are the first and the third signal's."""

DECIMALS = {"gap": 3, "yes_logit": 2, "no_logit": 2}
"""As the paper prints them; four for the others."""


def signal_title(signal: str, window: tuple[int, int] | None) -> str:
    """Return a signal's name, that of the fixed positions with the positions themselves.

    Args:
        signal: a key of `TITLES`.
        window: the cell's fixed positions, end exclusive, where they are known.
    """
    if signal != ATTENTION_WINDOW or window is None:
        return TITLES[signal]
    return f"attention, positions {window[0]} to {window[1] - 1}"


def group_title(group: str) -> str:
    """Return a group's name as it is printed: TP, or correct."""
    return group.upper() if len(group) == 2 else group


def build(inputs: RunTables) -> Table:
    """Return n, mean and sample SD of each signal in each of its groups, on every split."""
    rows: list[tuple[Cell, ...]] = []
    sizes: list[int] = []
    for block in blocks(inputs, "probe_groups"):
        found = {(row["signal"], row["group"]): row for row in block.rows}
        sizes.append(int(found["gap", "all"]["n"]))
        for signal, groups in SHOWN.items():
            for group in groups:
                row = found[signal, group]
                decimals = DECIMALS.get(signal, 4)
                texts = [_text(row[name], decimals) for name in ("mean", "sd", "mean_low", "mean_high")]
                interval = NOT_AVAILABLE if NOT_AVAILABLE in texts[2:] else f"{texts[2]} to {texts[3]}"
                about = (signal_title(signal, inputs.window(block.cell)), group_title(group), int(row["n"]))
                rows.append((*block.leading, *about, texts[0], texts[1], interval))
    return Table(
        number=9,
        name="table_09_group_means",
        title="Means of attention, logit gap and similarity by outcome",
        columns=(
            *LEADING,
            text_column("signal"),
            text_column("group"),
            Column("n"),
            Column("mean"),
            Column("SD"),
            Column("95% of the mean"),
        ),
        rows=tuple(rows),
        n=n_text(sizes, "answers per split"),
        notes=(
            "Attention: from the last prompt token, summed over the positions, mean over heads and over the "
            "chosen layers. The paper's numbers rest on fixed positions, 1 to 576, wherever the image stands: with "
            "LLaVA-1.5 four prompt tokens are counted and the image's last four are not.",
            "SD: of the sample. Interval: images resampled.",
        ),
    )


def _text(value: object, decimals: int) -> str:
    """Return a float rounded half-up, or that it is not there."""
    exact = number(value)
    return NOT_AVAILABLE if exact is None else printed(exact, decimals)
