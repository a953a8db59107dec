"""What the rules ask the plan: the files, arguments and digests that belong to a job's wildcards.

Every method takes Snakemake's wildcards (any object with the names as attributes), so a rule can name it
as an input or parameter function. Nothing here imports Snakemake.
"""

from readout_audit.config.wiring.fetching import Fetching
from readout_audit.config.wiring.report import Report


class Wiring(Report, Fetching):
    """A checked plan with all the questions that rules ask of it."""
