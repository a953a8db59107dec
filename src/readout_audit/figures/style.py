"""How every figure looks and is written: readable in grey and to colour-blind eyes, the same bytes each time.

Nothing relies on colour alone: lines differ in dash and marker, bars in hatch, and the colours (after Okabe
and Ito) differ in lightness too. Text is never read as mathematics, so a `$` in a model's name is shown.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from readout_audit import fileio

INK = "#1A1A1A"
GREY = "#6E6E6E"
PALE = "#D9D9D9"

PNG_DPI = 200
WIDTH = 6.8
"""Inches: the text width of a two-column page."""


class Mark(NamedTuple):
    """How one of several things is told apart: each of the four attributes suffices alone."""

    colour: str
    dash: Any
    marker: str
    hatch: str


MARKS: tuple[Mark, ...] = (
    Mark("#0A3D62", "-", "o", ""),
    Mark("#E1812C", (0, (5, 2)), "s", "////"),
    Mark("#9CD0EC", (0, (1, 1.3)), "^", "...."),
    Mark("#5B2A6B", (0, (6, 2, 1, 2)), "D", "xxxx"),
    Mark("#C8C04A", (0, (3, 1, 1, 1, 1, 1)), "v", "\\\\\\\\"),
)
"""Dark blue, orange, light blue, purple, olive: neighbours contrast by at least 1.5 in grey."""

_RC: dict[str, Any] = {
    "text.parse_math": False,
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same glyphs on every machine
    "font.size": 8.5,
    "figure.titlesize": 9.5,
    "axes.titlesize": 9,
    "axes.labelsize": 8.5,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "hatch.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,  # TrueType outlines: text stays selectable
    "savefig.facecolor": "white",
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save in the project's style; whatever the user's matplotlib says is set aside meanwhile."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_RC)  # type: ignore[arg-type]
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of the given inches, laid out so that nothing overlaps.

    It is not registered with pyplot: no display, no global state.
    """
    return Figure(figsize=(width, height), layout="constrained")


def mark(index: int) -> Mark:
    """Return the mark of the index-th thing; they repeat after five."""
    return MARKS[index % len(MARKS)]


def save(figure: Figure, path: Path, suffix: str) -> None:
    """Write a figure as `pdf` (vector) or `png` (200 dpi), whole and without a date or a program's name."""
    metadata: dict[str, None] = {
        "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
        "png": {"Software": None},
    }[suffix]
    with fileio.replacing(path) as temporary:
        figure.savefig(
            temporary, format=suffix, dpi=PNG_DPI, metadata=metadata, bbox_inches="tight", pad_inches=0.05
        )


def say_nothing_to_show(figure: Figure, why: str) -> Figure:
    """Put one sentence where the data would be, so that an empty figure explains itself."""
    figure.text(0.5, 0.5, why, ha="center", va="center", wrap=True, color=INK)
    return figure


def tint(share: float) -> tuple[float, float, float]:
    """Return the colour of a share from 0 to 1: from nearly white to mid blue, lightness falling evenly.

    It ends where ink still stands at 7 to 1 on it (WCAG AAA), so no text on a tint is hard to read.
    """
    light, dark = to_rgb("#F5F8FB"), to_rgb("#86AFD0")
    red, green, blue = (a + (b - a) * share for a, b in zip(light, dark, strict=True))
    return red, green, blue


def ink_on(colour: tuple[float, float, float]) -> str:
    """Return the text colour, white or ink, of the higher contrast on a colour."""
    return "white" if contrast(colour, (1, 1, 1)) > contrast(colour, to_rgb(INK)) else INK


def luminance(colour: tuple[float, float, float]) -> float:
    """Return the relative luminance of an sRGB colour (WCAG 2), from 0 for black to 1 for white."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: tuple[float, float, float], other: tuple[float, float, float]) -> float:
    """Return the contrast ratio of two colours (WCAG 2), from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


PIECES = "▁ and Ġ in a token's piece stand for a space before it."
"""What the marks of vocabularies mean, for figures that show pieces."""


def thousands(value: float) -> str:
    """Return a count with separators."""
    return f"{value:,.0f}"


def grid(axes: Axes, axis: str = "y") -> None:
    """Draw pale grid lines behind the data."""
    axes.grid(visible=True, axis=axis, color=PALE, linewidth=0.6)  # type: ignore[arg-type]


def describe(parts: Sequence[str], width: int = 60) -> str:
    """Join what a panel is about into a title of lines no longer than `width`, broken between parts."""
    lines: list[str] = []
    for part in parts:
        if lines and len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return "\n".join(lines)


def spread(values: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return positions near `values`, in their order of size, at least `gap` apart and within the ends.

    Where they do not all fit, they are spaced evenly from `low` to `high`.
    """
    order = sorted(range(len(values)), key=lambda index: values[index])
    if gap * (len(values) - 1) > high - low:
        gap = (high - low) / (len(values) - 1)
    placed: list[float] = []
    for rank, index in enumerate(order):
        floor = placed[-1] + gap if placed else low
        ceiling = high - gap * (len(order) - 1 - rank)
        placed.append(min(max(values[index], floor), ceiling))
    result = [0.0] * len(values)
    for index, place in zip(order, placed, strict=True):
        result[index] = place
    return result
