"""Stage: one figure of a run, as PDF and PNG."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from readout_audit.figures import registry, style
from readout_audit.logs import LOGGER, stage_main
from readout_audit.tables.arguments import parse
from readout_audit.tables.inputs import Options, RunTables, Sources


def run(name: str, sources: Sources, options: Options, outputs: Mapping[str, Path]) -> None:
    """Draw the figure `name` and write it.

    Args:
        name: a key of `figures.registry.FIGURES`.
        sources: the run's files; those of the kinds the registry says the figure needs.
        options: what of the run it shows.
        outputs: suffix (`pdf`, `png`) -> file.

    Raises:
        AuditError: there is no such figure, or a file cannot be read.
    """
    with style.house_style():
        figure = registry.get(name)(RunTables(sources, options))
        for suffix, path in outputs.items():
            style.save(figure, path, suffix)
    LOGGER.info("%s: drawn", name)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the stage from the command line."""
    run(*parse(argv, ("pdf", "png"), "figure"))
    return 0


if __name__ == "__main__":
    raise SystemExit(stage_main(main))
