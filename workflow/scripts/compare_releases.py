"""Wires the rule `compare_releases` to `readout_audit.stages.compare_releases`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import compare_releases

with script_log(snakemake.log):
    firsts, seconds = (
        [Path(file) for file in files] for files in (snakemake.input.first, snakemake.input.second)
    )
    records = snakemake.params.records
    compare_releases.run(
        pairs=list(zip(firsts, seconds, strict=True)),
        output=Path(snakemake.output.counts),
        changed_output=Path(snakemake.output.changed),
        csv_output=Path(snakemake.output.csv),
        records={Path(decisions): Path(file) for decisions, file in records.items()},
    )
