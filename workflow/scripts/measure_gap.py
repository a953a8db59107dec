"""Wires the rule `measure_gap` to `readout_audit.stages.measure_gap`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import measure_gap

with script_log(snakemake.log):
    tables = zip(snakemake.params.labels, snakemake.input.labels, strict=True)
    measure_gap.run(
        decisions=Path(snakemake.input.decisions),
        transitions_output=Path(snakemake.output.transitions),
        gap_output=Path(snakemake.output.gap),
        relabel={name: [Path(table)] for name, table in tables},
        resamples=snakemake.params.resamples,
        seed=snakemake.params.seed,
    )
