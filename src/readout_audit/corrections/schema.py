"""The columns of what corrections do: their scores, the sweep over their strength, what signals know."""

import pyarrow as pa

from readout_audit.contracts import CELL

OK, NOT_AVAILABLE = "ok", "not_available"

GAP = "gap"
"""The signal every other is measured beside: |largest yes logit − largest no logit|."""

ANSWERS = ("all", "yes", "no")
"""Which answers right and wrong ones are told apart among."""

FIXED, HINDSIGHT, CROSS_FITTED = "fixed", "hindsight", "cross_fitted"
"""How the strength was chosen: given; the best on these very questions; the best on the other folds' images."""

_ROWS = (
    pa.field("labels", pa.string(), nullable=False),
    pa.field("split", pa.string(), nullable=False),
    pa.field("readout", pa.string(), nullable=False),  # whose yes and no logits are corrected
)

CORRECTIONS = pa.schema(
    [
        *CELL,
        *_ROWS,
        pa.field("method", pa.string(), nullable=False),
        pa.field("choice", pa.string(), nullable=False),  # fixed | hindsight | cross_fitted
        pa.field("strength", pa.float64()),  # null where there is none to set, and where folds have their own
        pa.field("fold_strengths", pa.list_(pa.float64())),  # cross_fitted alone
        pa.field("status", pa.string(), nullable=False),  # ok | not_available
        pa.field("reason", pa.string()),
        pa.field("n", pa.int64()),  # valid, labelled rows that have the signal: all counts are of these
        pa.field("n_without_signal", pa.int64()),  # valid, labelled rows left out on both sides
        pa.field("tp", pa.int64()),
        pa.field("fp", pa.int64()),
        pa.field("tn", pa.int64()),
        pa.field("fn", pa.int64()),
        pa.field("baseline_tp", pa.int64()),
        pa.field("baseline_fp", pa.int64()),
        pa.field("yes_to_no", pa.int64()),  # answers the correction turns
        pa.field("no_to_yes", pa.int64()),
        pa.field("delta_f1", pa.float64()),  # corrected minus baseline
        pa.field("delta_f1_low", pa.float64()),  # 95%, images resampled
        pa.field("delta_f1_high", pa.float64()),
        pa.field("tried", pa.int64()),  # corrections compared under the same choice
        pa.field("delta_f1_low_corrected", pa.float64()),  # the same at 1 - 0.05 / tried (Bonferroni)
        pa.field("delta_f1_high_corrected", pa.float64()),
    ]
)
"""One row per (labels, split, readout, method, choice, strength); undefined and not available are null."""

SWEEPS = pa.schema(
    [
        *CELL,
        *_ROWS,
        pa.field("method", pa.string(), nullable=False),
        pa.field("strength", pa.float64(), nullable=False),
        pa.field("tp", pa.int64(), nullable=False),
        pa.field("fp", pa.int64(), nullable=False),
        pa.field("tn", pa.int64(), nullable=False),
        pa.field("fn", pa.int64(), nullable=False),
    ]
)
"""The matrix at every strength of the sweep, for the methods that have one."""

CORRECTNESS = pa.schema(
    [
        *CELL,
        *_ROWS,
        pa.field("answers", pa.string(), nullable=False),  # all | yes | no: which answers are told apart
        pa.field("signal", pa.string(), nullable=False),  # |gap| is `gap`
        pa.field("status", pa.string(), nullable=False),
        pa.field("reason", pa.string()),
        pa.field("n", pa.int64()),
        pa.field("wrong", pa.int64()),
        pa.field("auc", pa.float64()),  # P(larger where the answer is wrong), ties one half
        pa.field("auc_low", pa.float64()),  # 95%, clustered by image
        pa.field("auc_high", pa.float64()),
        pa.field("auc_p", pa.float64()),  # two-sided, of an AUC of one half
        pa.field("auc_gap", pa.float64()),  # of a cross-validated logistic model of |gap|
        pa.field("auc_gap_and_signal", pa.float64()),  # of |gap| and the signal, same folds
        pa.field("gain", pa.float64()),  # the second minus the first
        pa.field("gain_low", pa.float64()),
        pa.field("gain_high", pa.float64()),
        pa.field("p", pa.float64()),  # two-sided, of no gain
        pa.field("tried", pa.int64()),  # signals compared on the same answers
        pa.field("p_corrected", pa.float64()),  # Bonferroni
    ]
)
"""Whether a signal tells wrong answers from right ones, alone and beyond the logit gap."""
