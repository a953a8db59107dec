"""Wires the rule `concatenate_scores` to `readout_audit.stages.concatenate_scores`."""

from pathlib import Path

from readout_audit.logs import script_log
from readout_audit.stages import concatenate_scores

with script_log(snakemake.log):
    concatenate_scores.run([Path(file) for file in snakemake.input], Path(snakemake.output[0]))
