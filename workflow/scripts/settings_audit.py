"""Wires the rule `settings_audit` to `readout_audit.stages.settings_audit`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import settings_audit

with script_log(snakemake.log):
    tables = zip(snakemake.params.labels, snakemake.input.labels, strict=True)
    settings_audit.run(
        decisions=[Path(path) for path in snakemake.input.decisions],
        output=Path(snakemake.output[0]),
        records=[Path(path) for path in snakemake.input.records],
        gap_pair=tuple(snakemake.params.pair),
        relabel={name: [Path(table)] for name, table in tables},
        resamples=snakemake.params.resamples,
        seed=snakemake.params.seed,
    )
