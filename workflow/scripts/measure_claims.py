"""Wires the rule `measure_claims` to `readout_audit.stages.measure_claims`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import measure_claims

with script_log(snakemake.log):
    measure_claims.run(
        numbers=Path(snakemake.input.numbers),
        output=Path(snakemake.output[0]),
        corrections=[Path(file) for file in snakemake.input.corrections],
        probe=[Path(file) for file in snakemake.input.probe],
        groups=[Path(file) for file in snakemake.input.groups],
        comparisons=[Path(file) for file in snakemake.input.comparisons],
        dryruns=dict(zip(snakemake.params.tokenizers, map(Path, snakemake.input.dryruns), strict=True)),
    )
