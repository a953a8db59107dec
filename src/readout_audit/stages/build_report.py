"""Stage: one self-contained HTML page for people about one run, and its first sentences for a terminal."""

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from readout_audit.errors import AuditError
from readout_audit.fileio import write_text
from readout_audit.logs import stage_main
from readout_audit.report.inputs import PAIR, Files, RunData
from readout_audit.report.page import build_page
from readout_audit.report.summary import headline_lines
from readout_audit.report.text import visible

LOGGER = logging.getLogger(__name__)

SEVERAL = {
    "decisions": "decision files",
    "gap": "gap tables",
    "self_agreement": "agreement between splits (stage compare_splits)",
    "disagreements": "questions that splits answer differently (stage compare_splits)",
    "relabel": "gaps under other labels (stage relabel)",
    "carriers": "flips by object and image (stage relabel)",
    "verified": "reports of stage verify_engine (JSON)",
    "releases": "what a second release changes (stage compare_releases)",
    "release_changes": "answers that change with the release (stage compare_releases)",
    "manifests": "JSON manifests, question reports, token maps; record files for their description",
}
"""Optional inputs of any number; a section without its input says that it is not part of the run."""


def run(
    name: str, files: Files, output: Path, pair: tuple[str, str] = PAIR, headline: Path | None = None
) -> None:
    """Write the page of one run, and what it says first as lines for a terminal.

    Args:
        name: the run's name.
        files: its files.
        output: the HTML file.
        pair: the readouts whose gap is the headline, from and to.
        headline: the text file of those lines; None leaves it out.

    Raises:
        AuditError: a file is missing or cannot be read.
    """
    data = RunData(files, pair)
    page = build_page(name, data)
    write_text(output, page)
    if headline is not None:
        write_text(headline, "".join(f"{visible(line)}\n" for line in headline_lines(data)))
    LOGGER.info("%s: %d bytes", output, len(page.encode()))


def main(argv: Sequence[str] | None = None) -> int:
    """Build the page from the command line."""
    parser = argparse.ArgumentParser(prog="build_report", description=__doc__, allow_abbrev=False)
    parser.add_argument("--run", required=True, help="the run's name")
    parser.add_argument("--scores", type=Path, required=True, help="scores of all cells")
    parser.add_argument("--tables", type=Path, nargs="*", default=[], help="folder or files of tables (.md)")
    parser.add_argument(
        "--figures", type=Path, nargs="*", default=[], help="folder or files of figures (.png)"
    )
    parser.add_argument("--claims", type=Path, help="claims table (CSV)")
    parser.add_argument(
        "--pair", nargs=2, default=list(PAIR), metavar=("FROM", "TO"), help="readouts of the gap"
    )
    for option, what in SEVERAL.items():
        flag = f"--{option.replace('_', '-')}"
        parser.add_argument(flag, dest=option, type=Path, nargs="*", default=[], metavar="FILE", help=what)
    parser.add_argument("--headline", type=Path, help="the page's first sentences as lines of text")
    parser.add_argument("--output", type=Path, required=True, help="the page")
    arguments = vars(parser.parse_args(argv))
    files = Files(
        scores=arguments["scores"],
        tables=expand(arguments["tables"], ".md"),
        figures=expand(arguments["figures"], ".png"),
        claims=arguments["claims"],
        **{option: tuple(arguments[option]) for option in SEVERAL},
    )
    pair = (arguments["pair"][0], arguments["pair"][1])
    run(arguments["run"], files, arguments["output"], pair, arguments["headline"])
    return 0


def expand(paths: Sequence[Path], suffix: str) -> tuple[Path, ...]:
    """Return files as given, and of each folder its files of one kind, sorted.

    Raises:
        AuditError: a path is neither.
    """
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(file for file in path.glob(f"*{suffix}") if not file.name.startswith("."))
        elif path.is_file():
            found.append(path)
        else:
            raise AuditError(f"{path}: neither a file nor a folder; give what the run made, or leave it out.")
    return tuple(found)


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
