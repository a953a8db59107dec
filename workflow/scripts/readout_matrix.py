"""Wires the rule `readout_matrix` to `readout_audit.stages.readout_matrix`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import readout_matrix

with script_log(snakemake.log):
    tables = zip(snakemake.params.labels, snakemake.input.labels, strict=True)
    readout_matrix.run(
        decisions=Path(snakemake.input.decisions),
        pairs_output=Path(snakemake.output.pairs),
        listing_output=Path(snakemake.output.listing),
        csv_output=Path(snakemake.output.csv),
        relabel={name: [Path(table)] for name, table in tables},
        resamples=snakemake.params.resamples,
        seed=snakemake.params.seed,
    )
