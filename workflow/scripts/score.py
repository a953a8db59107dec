"""Wires the rule `score` to `readout_audit.stages.score`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import score

with script_log(snakemake.log):
    tables = zip(snakemake.params.labels, snakemake.input.labels, strict=True)
    score.run(
        decisions=Path(snakemake.input.decisions),
        output=Path(snakemake.output[0]),
        relabel={name: [Path(table)] for name, table in tables},
        first=list(snakemake.params.first),
        resamples=snakemake.params.resamples,
        seed=snakemake.params.seed,
    )
