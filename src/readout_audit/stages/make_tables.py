"""Stage: one table of a run, as CSV, Markdown and LaTeX."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from readout_audit import fileio
from readout_audit.logs import LOGGER, stage_main
from readout_audit.tables import registry
from readout_audit.tables.arguments import parse
from readout_audit.tables.inputs import Options, RunTables, Sources
from readout_audit.tables.render import to_csv, to_latex, to_markdown

RENDERERS = {"csv": to_csv, "md": to_markdown, "tex": to_latex}


def run(name: str, sources: Sources, options: Options, outputs: Mapping[str, Path]) -> None:
    """Build the table `name` and write it.

    Args:
        name: a key of `tables.registry.TABLES`.
        sources: the run's files; those of the kinds the registry says the table needs.
        options: what of the run it shows.
        outputs: suffix (`csv`, `md`, `tex`) -> file.

    Raises:
        AuditError: there is no such table, or a file cannot be read.
    """
    table = registry.get(name)(RunTables(sources, options))
    for suffix, path in outputs.items():
        fileio.write_text(path, RENDERERS[suffix](table))
    LOGGER.info("%s: %d rows, n: %s", name, len(table.rows), table.n)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the stage from the command line."""
    run(*parse(argv, tuple(RENDERERS), "table"))
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
