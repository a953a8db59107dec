"""Wires the rule `variance_components` to `readout_audit.stages.variance_components`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import variance_components

with script_log(snakemake.log):
    tables = zip(snakemake.params.labels, snakemake.input.labels, strict=True)
    variance_components.run(
        decisions=[Path(path) for path in snakemake.input.decisions],
        output=Path(snakemake.output[0]),
        readouts=list(snakemake.params.readouts),
        relabel={name: [Path(table)] for name, table in tables},
        resamples=snakemake.params.resamples,
        seed=snakemake.params.seed,
    )
