"""The files of a small made run with corrections and probe, for tables and figures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from corrections.made import CELL, world, write_decisions, write_records, write_signals
from readout_audit.corrections.schema import CORRECTIONS, CORRECTNESS, SWEEPS
from readout_audit.fileio import write_table
from readout_audit.probe import schema
from readout_audit.stages import correct, probe
from readout_audit.tables.inputs import Options, RunTables, Sources

KINDS = {
    "corrections": CORRECTIONS,
    "sweeps": SWEEPS,
    "correctness": CORRECTNESS,
    "probe": schema.PROBE,
    "probe_groups": schema.GROUPS,
    "probe_comparisons": schema.COMPARISONS,
    "probe_windows": schema.WINDOWS,
    "probe_excluded": schema.EXCLUDED,
}
OPTIONS = Options(splits=("random", "adversarial"))


def make_run(
    folder: Path,
    seed: int = 0,
    images: int = 20,
    cell: dict[str, str] | None = None,
    window: Sequence[int] = (1, 577),
    **more: Any,
) -> Sources:
    """Write a made world's records and signals and everything right of them."""
    signal_settings = {"entropy_layers": [1, 3], "authors_window": list(window)}
    records, signals, decisions = world(seed, images)
    paths = (
        write_records(folder / "r.parquet", records),
        write_signals(folder / "s.parquet", signals, settings=signal_settings),
        write_decisions(folder / "d.parquet", decisions, cell=cell or CELL),
    )
    files = {kind: folder / f"{kind}.parquet" for kind in KINDS}
    settings = {"resamples": 40} | more
    correct.run(*paths, *(files[kind] for kind in ("corrections", "sweeps", "correctness")), **settings)
    probe.run(*paths, probe.Outputs(*list(files.values())[3:]), **settings)
    return Sources(**{kind: (path,) for kind, path in files.items()})


def run_tables(sources: Sources, options: Options = OPTIONS) -> RunTables:
    """Return the run as tables and figures read it."""
    return RunTables(sources, options)


def empty_run(folder: Path) -> RunTables:
    """Return a run whose files hold no rows, as of a model without the readout's ids."""
    for kind, columns in KINDS.items():
        write_table(
            folder / f"{kind}.parquet", pa.Table.from_pylist([], schema=columns), columns, {"cell": CELL}
        )
    return RunTables(Sources(**{kind: (folder / f"{kind}.parquet",) for kind in KINDS}), OPTIONS)
