"""A table as CSV, Markdown and LaTeX text. Whatever stands in a cell is data: it is escaped, never markup."""

import itertools
import re
import unicodedata

from readout_audit.tables.base import Column, Table, fold_constant_columns

_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "−": r"$-$",
    "→": r"$\to$",
    "×": r"$\times$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    "ρ": r"$\rho$",
    "φ": r"$\varphi$",
    "Δ": r"$\Delta$",
    "β": r"$\beta$",
    "ŷ": r"$\hat{y}$",
    "ℓ": r"$\ell$",
    "∈": r"$\in$",
    "∪": r"$\cup$",
    "₂": r"$_2$",
    "₈": r"$_8$",
    "ᵥ": r"$_v$",
    "▁": r"\textvisiblespace{}",  # a piece's leading space (SentencePiece)
    "Ġ": r"\.{G}",  # the same in byte-level vocabularies
    "–": r"\textendash{}",
    "…": r"\dots{}",
    "’": "'",
}
_SYMBOLS = {"ρ_N": r"$\rho_N$", "G_tot": r"$G_\mathrm{tot}$", "ℓ_v": r"$\ell_v$"}
_SAID = {("labels", "pope"): "of the questions themselves"}
"""What the name of a label set means, where the questions need not be POPE's."""
_SYMBOL = re.compile("|".join(_SYMBOLS) + "|.")
_CSV_SPECIAL = re.compile(r'[",\r\n]')
_MARKDOWN = re.compile(r"([\\`*\[\]|~])")
_NEGATIVE = re.compile(r"-[0-9]")
_EDGE_UNDERSCORE = re.compile(r"(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")


def to_csv(table: Table) -> str:
    """Return RFC 4180 CSV with LF line ends: one line of headings, one per row, nothing else."""
    lines = [[column.heading for column in table.columns], *table.texts()]
    return "".join(",".join(map(csv_field, line)) + "\n" for line in lines)


def csv_field(text: str) -> str:
    """Return `text` as a CSV field, quoted where RFC 4180 asks for it.

    The csv module leaves a lone carriage return bare when lines end in LF, and readers then break the row.
    """
    return '"' + text.replace('"', '""') + '"' if _CSV_SPECIAL.search(text) else text


def to_markdown(table: Table) -> str:
    """Return a GitHub-flavoured Markdown table with title, n and notes."""
    columns, rows, constant = fold_constant_columns(table)
    cells = [[markdown_text(column.heading) for column in columns]]
    cells += [[markdown_text(text) for text in row] for row in rows]
    widths = [max(3, *(len(row[index]) for row in cells)) for index in range(len(columns))]
    rule = [
        "-" * (width - 1) + ":" if column.align == "right" else "-" * width
        for column, width in zip(columns, widths, strict=True)
    ]
    lines = [_markdown_line(row, columns, widths) for row in cells]
    lines.insert(1, "| " + " | ".join(rule) + " |")
    paragraphs = [
        f"**{_numbered(table)}** {markdown_text(table.title)}",
        "\n".join(lines),
        *([markdown_text(_stated(constant))] if constant else []),
        markdown_text(f"n: {table.n}."),
        *(markdown_text(note) for note in table.all_notes()),
    ]
    return "\n\n".join(paragraphs) + "\n"


def _numbered(table: Table) -> str:
    """Return what a table is called before its title: by the paper's number, or as one beyond the paper."""
    return f"Table {table.number}." if table.number is not None else "Beyond the paper."


def _markdown_line(row: list[str], columns: tuple[Column, ...], widths: list[int]) -> str:
    """Return one padded line of a Markdown table."""
    padded = [
        text.rjust(width) if column.align == "right" else text.ljust(width)
        for text, column, width in zip(row, columns, widths, strict=True)
    ]
    return "| " + " | ".join(padded) + " |"


def to_latex(table: Table) -> str:
    r"""Return a LaTeX `table` in booktabs style; the document needs booktabs, graphicx and T1 fonts.

    A tabular wider than the line is scaled down to it, and rows about another model or dataset stand apart.
    """
    columns, rows, constant = fold_constant_columns(table)
    notes = [*([_stated(constant)] if constant else []), f"n: {table.n}.", *table.all_notes()]
    alignment = "".join("r" if column.align == "right" else "l" for column in columns)
    lines = [
        "% needs \\usepackage[T1]{fontenc}, \\usepackage{booktabs} and \\usepackage{graphicx}",
        "\\begin{table}[htbp]",
        "\\centering\\small",
        f"\\caption{{{latex_text(table.title)}}}",
        f"\\label{{tab:{re.sub('[^0-9a-z]+', '-', table.name.lower())}}}",
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%",
        f"\\begin{{tabular}}{{{alignment}}}",
        "\\toprule",
        *_latex_head(columns),
        "\\midrule",
        *_latex_body(columns, rows),
        "\\bottomrule",
        "\\end{tabular}}",
        "\\par\\smallskip",
        "\\begin{minipage}{\\linewidth}\\footnotesize",
        "\\par\n".join(latex_text(note) for note in notes),
        "\\end{minipage}",
        "\\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _latex_head(columns: tuple[Column, ...]) -> list[str]:
    """Return the heading lines: groups with rules under them where there are any, then names."""
    names = " & ".join(latex_text(column.name) for column in columns) + r" \\"
    if not any(column.group for column in columns):
        return [names]
    spans, rules, start = [], [], 1
    for group, members in itertools.groupby(columns, key=lambda column: column.group):
        width = len(list(members))
        spans.append(f"\\multicolumn{{{width}}}{{c}}{{{latex_text(group)}}}")
        if group:
            rules.append(f"\\cmidrule(lr){{{start}-{start + width - 1}}}")
        start += width
    return [" & ".join(spans) + r" \\", "".join(rules), names]


def _latex_body(columns: tuple[Column, ...], rows: list[list[str]]) -> list[str]:
    """Return one line per row, with space where the identity columns change."""
    identity = [index for index, column in enumerate(columns) if column.identity]
    lines: list[str] = []
    before: list[str] | None = None
    for row in rows:
        block = [row[index] for index in identity]
        if before is not None and block != before:
            lines.append("\\addlinespace")
        # A bracket at the start of a row would be read as an argument of the line break before it.
        lines.append("{}" + " & ".join(latex_text(text) for text in row) + r" \\")
        before = block
    return lines


def _stated(constant: tuple[tuple[str, str], ...]) -> str:
    """Return what holds of every row, as one sentence."""
    said = (f"{name} {_SAID.get((name, value), value)}" for name, value in constant)
    return f"In all rows: {', '.join(said)}."


def markdown_text(text: str) -> str:
    """Return `text` as Markdown that shows exactly it, in one line; HTML in it is shown, not run."""
    escaped = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _EDGE_UNDERSCORE.sub(r"\\_", _MARKDOWN.sub(r"\\\1", escaped))


def latex_text(text: str) -> str:
    """Return `text` as LaTeX that shows exactly it, in one line.

    Characters that T1 fonts may lack are shown by number ("U+4E2D"), so that a name cannot stop the document.
    """
    shown = one_line(text)
    if _NEGATIVE.match(shown):
        shown = "−" + shown[1:]
    # TeX sets "--" as a dash; an empty group between them keeps two hyphens.
    parts = (_SYMBOLS.get(part) or _latex_character(part) for part in _SYMBOL.findall(shown))
    return "".join(parts).replace("--", "-{}-")


def _latex_character(character: str) -> str:
    """Return one character as LaTeX."""
    if character in _LATEX:
        return _LATEX[character]
    if character.isascii() or (0xC0 <= ord(character) <= 0xFF and character.isalpha()):
        return character
    return f"U+{ord(character):04X}"


def one_line(text: str) -> str:
    """Return `text` with line ends, tabs and other control characters as single spaces."""
    shown = "".join(" " if unicodedata.category(char)[0] == "C" else char for char in text)
    return " ".join(shown.split())
