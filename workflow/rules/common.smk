"""The checked plan of this run, and the names that wildcards may take."""

from readout_audit.config.checks.known import PRECISIONS
from readout_audit.config.onerror import repeat_errors
from readout_audit.config.onstart import check_start
from readout_audit.config.plan import SERVED
from readout_audit.config.preparation import prepare
from readout_audit.digest import code_digest

PLAN = prepare(config, workflow.configfiles, workflow.basedir)
LOCAL_PRECISIONS = "|".join(PRECISIONS)


wildcard_constraints:
    run=PLAN.choice([PLAN.run]),
    dataset=PLAN.choice(PLAN.config["known_datasets"]),
    model=PLAN.choice([*PLAN.config["known_models"], *PLAN.config["known_clips"]]),
    precision=f"{LOCAL_PRECISIONS}|{SERVED}",
    template="[A-Za-z0-9][A-Za-z0-9._-]*",
    shard="[0-9]+",
    shards=str(PLAN.n_shards),
    table=PLAN.choice(PLAN.tables),
    figure=PLAN.choice(PLAN.config["figures"]),
    labels=PLAN.choice(PLAN.config["known_labels"]),
    images=PLAN.choice(PLAN.config["known_images"]),
    path="(pope|repope|published)/.+[.]json",
