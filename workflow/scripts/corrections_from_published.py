"""Wires the rule `corrections_from_published` to `readout_audit.stages.corrections_from_published`."""

import json
from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import corrections_from_published
from readout_audit.stages.corrections_from_published import Source

with script_log(snakemake.log):
    tables = zip(snakemake.params.labels, snakemake.input.labels, strict=True)
    corrections_from_published.run(
        sources=[Source.from_json(entry) for entry in json.loads(snakemake.params.sources)],
        decisions=Path(snakemake.input.decisions),
        output=Path(snakemake.output[0]),
        relabel={name: [Path(table)] for name, table in tables},
        resamples=snakemake.params.resamples,
        seed=snakemake.params.seed,
    )
