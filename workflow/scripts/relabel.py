"""Wires the rule `relabel` to `readout_audit.stages.relabel`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import relabel

with script_log(snakemake.log):
    tables = zip(snakemake.params.labels, snakemake.input.labels, strict=True)
    relabel.run(
        decisions=Path(snakemake.input.decisions),
        gaps_output=Path(snakemake.output.gaps),
        carriers_output=Path(snakemake.output.carriers),
        relabel={name: [Path(table)] for name, table in tables},
        pair=tuple(snakemake.params.pair),
    )
