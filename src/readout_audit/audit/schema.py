"""The files of the settings audit and of the variance components."""

import pyarrow as pa

from readout_audit.contracts import CELL

GAP = "gap"
"""Stands in the readout's place where the value is F1(from) − F1(to) of the run's pair."""

REFERENCE = "reference"
MODEL = "model"
_COUNT = pa.int64()
COMPARISONS = pa.schema(
    [
        *CELL,
        pa.field("reference_dataset", pa.string(), nullable=False),
        pa.field("reference_model", pa.string(), nullable=False),
        pa.field("reference_precision", pa.string(), nullable=False),
        pa.field("reference_template", pa.string(), nullable=False),
        pa.field("varied", pa.string(), nullable=False),  # reference | model | what differs, joined by " + "
        pa.field("labels", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("readout", pa.string(), nullable=False),  # or gap
        pa.field(
            "n", _COUNT
        ),  # questions that both were asked; null where answers cannot be paired, and for gap
        pa.field("changed", _COUNT),  # of these, decided differently
        pa.field("no_to_yes", _COUNT),  # no in the reference, yes here
        pa.field("yes_to_no", _COUNT),
        pa.field("near_ties", _COUNT),  # near-tied here; null without logits
        pa.field("changed_near_ties", _COUNT),  # changed questions that are near-tied in either cell
        pa.field("value", pa.float64()),  # F1 here (gap: the gap); null where undefined
        pa.field("reference_value", pa.float64()),
        pa.field("delta", pa.float64()),  # value − reference_value
        pa.field("delta_low", pa.float64()),  # paired, over images; null where the images are not the same
        pa.field("delta_high", pa.float64()),
        pa.field(
            "delta_undefined", _COUNT
        ),  # resamples left out of it as 0/0; null where there are none at all
    ]
)
"""One row per (pair of cells, labels, split, readout that both have), then one for the gap."""

ALL_MODELS = "all models"
"""Scope of the grid in which the model is a factor too."""

TIMES = " × "

VARIANCE = pa.schema(
    [
        pa.field("labels", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("scope", pa.string(), nullable=False),  # a model, or all models
        pa.field("factor", pa.string(), nullable=False),  # or factors that act together, joined by ×
        pa.field("order", pa.int64(), nullable=False),  # number of factors
        pa.field("degrees_of_freedom", pa.int64(), nullable=False),
        pa.field("cells", pa.int64(), nullable=False),  # values in the grid
        pa.field("n", pa.int64(), nullable=False),  # questions behind each value, at most
        pa.field("sum_of_squares", pa.float64(), nullable=False),
        pa.field("share", pa.float64()),  # η²; null where nothing varies
        pa.field("share_low", pa.float64()),  # over images; null where the images are not the same
        pa.field("share_high", pa.float64()),
        pa.field(
            "mean_reach", pa.float64()
        ),  # largest − smallest F1 along the factor, averaged; null for several
        pa.field("largest_reach", pa.float64()),
        pa.field("largest_at", pa.string()),  # where, from which level to which
    ]
)
"""One row per (labels, split, scope, set of factors)."""
