"""Where the files of a finished run lie."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from readout_audit.errors import AuditError

SUFFIX = ".parquet"


@dataclass(frozen=True)
class RunFolder:
    """One run's results.

    Attributes:
        name: the run's name, or the last part of the folder it was given as.
        results: the folder that holds decisions/, records/, scores.parquet and so on.
    """

    name: str
    results: Path

    def cells(self, kind: str = "decisions") -> dict[str, Path]:
        """Return every file of a kind by its cell, "dataset/model/precision/template", sorted."""
        folder = self.results / kind
        return {
            path.relative_to(folder).as_posix().removesuffix(SUFFIX): path
            for path in sorted(folder.rglob(f"*{SUFFIX}"))
            if not path.name.startswith(".")
        }

    def file(self, kind: str, cell: str) -> Path | None:
        """Return the file of one cell, None where the run has none."""
        # Not with_suffix: a template's name may hold a dot.
        path = self.results / kind / f"{cell}{SUFFIX}"
        return path if path.is_file() else None


def find_run(run: str, root: Path) -> RunFolder:
    """Return the folder of a run that holds decisions.

    Args:
        run: a run's name, or the path of its results folder.
        root: the folder that holds results/.

    Raises:
        AuditError: there is no such run, or it has no decisions.
    """
    for folder in _places(run, root):
        if folder.is_dir():
            found = RunFolder(folder.resolve().name, folder)
            if not found.cells():
                raise AuditError(f"{folder}: this run has no decisions; make them with snakemake all.")
            return found
    known = sorted(path.name for path in (root / "results").glob("*") if (path / "decisions").is_dir())
    raise AuditError(
        f"{run}: neither a run under {root / 'results'} nor a results folder; "
        f"{'the runs there are ' + ', '.join(known) if known else 'there are no finished runs there'}."
    )


def _places(run: str, root: Path) -> Iterator[Path]:
    """Yield where a run may lie: under its name first, then as a path."""
    if "/" not in run and run not in ("", ".", ".."):
        yield root / "results" / run
    yield Path(run)
