"""The columns of what the probe finds: answers one by one, groups, comparisons, layer windows, excluded logits."""

import pyarrow as pa

from readout_audit.contracts import CELL

_SPLIT = (
    pa.field("labels", pa.string(), nullable=False),
    pa.field("split", pa.string(), nullable=False),
    pa.field("readout", pa.string(), nullable=False),  # whose yes and no sets make gap and answer
)
_FLOATS = pa.float64()

PROBE = pa.schema(
    [
        *_SPLIT,
        pa.field("question_id", pa.string(), nullable=False),
        pa.field("image", pa.string()),
        pa.field("label", pa.string(), nullable=False),
        pa.field(
            "pass", pa.string(), nullable=False
        ),  # instrumented | main: which pass the next columns are of
        pa.field("answer", pa.string(), nullable=False),  # yes | no
        pa.field("outcome", pa.string(), nullable=False),  # tp | tn | fp | fn
        pa.field("yes_logit", _FLOATS, nullable=False),  # largest of the yes set
        pa.field("no_logit", _FLOATS, nullable=False),
        pa.field("tie", pa.bool_(), nullable=False),  # the two are equal, which is read as no
        pa.field(
            "attention_window", _FLOATS
        ),  # positions 1 to 576, sum over positions, mean over heads and layers
        pa.field("attention_image", _FLOATS),  # the image's own positions
        pa.field("clip_l", _FLOATS),  # largest cosine of the noun over CLIP-L/14-336 patches
        # The main records, null where the source has none.
        pa.field("main_answer", pa.string()),
        pa.field("main_gap", _FLOATS),
        pa.field("main_tie", pa.bool_()),
        # Excluded ids, of the main records.
        pa.field("excluded_yes", _FLOATS),
        pa.field("excluded_no", _FLOATS),
        pa.field("excluded_yes_rank", _FLOATS),
        pa.field("excluded_no_rank", _FLOATS),
        pa.field("excluded_yes_probability", _FLOATS),
        pa.field("excluded_no_probability", _FLOATS),
    ]
)
"""One row per (labels, split, readout, question) that was answered; the cell stands in the metadata."""

GROUPS = pa.schema(
    [
        *CELL,
        *_SPLIT,
        pa.field("signal", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),  # all | correct | wrong | tp | tn | fp | fn
        pa.field("n", pa.int64(), nullable=False),  # answers of the group that have the signal
        pa.field("mean", _FLOATS),
        pa.field("sd", _FLOATS),  # sample SD, divisor n - 1
        pa.field("median", _FLOATS),
        pa.field("mean_low", _FLOATS),  # 95%, images resampled
        pa.field("mean_high", _FLOATS),
    ]
)

COMPARISONS = pa.schema(
    [
        *CELL,
        *_SPLIT,
        pa.field("signal", pa.string(), nullable=False),
        pa.field("group_a", pa.string(), nullable=False),
        pa.field("group_b", pa.string(), nullable=False),
        pa.field("family", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),  # ok | not_available
        pa.field("reason", pa.string()),
        pa.field("n_a", pa.int64()),
        pa.field("n_b", pa.int64()),
        *[pa.field(name, _FLOATS) for name in ("mean_a", "sd_a", "mean_b", "sd_b", "difference")],
        pa.field("difference_low", _FLOATS),  # 95%, questions resampled as the authors do
        pa.field("difference_high", _FLOATS),
        pa.field("difference_image_low", _FLOATS),  # 95%, images resampled
        pa.field("difference_image_high", _FLOATS),
        pa.field("u", _FLOATS),  # Mann-Whitney: pairs in which a is larger, ties as one half
        pa.field("p", _FLOATS),
        pa.field("family_size", pa.int64()),
        pa.field("p_corrected", _FLOATS),  # Bonferroni
        pa.field("pooled_sd", _FLOATS),
        pa.field("d", _FLOATS),
        pa.field("d_low", _FLOATS),  # 95%, images resampled
        pa.field("d_high", _FLOATS),
        # Within strata of |gap|; null for the gap itself.
        pa.field("matched_strata", pa.int64()),
        pa.field("matched_n_a", pa.int64()),
        pa.field("matched_n_b", pa.int64()),
        *[pa.field(f"matched_{name}", _FLOATS) for name in ("difference", "low", "high", "d")],
        pa.field("gap_difference", _FLOATS),  # mean |gap| of a minus that of b
        pa.field("gap_difference_matched", _FLOATS),  # what is left of it within strata
    ]
)

WINDOWS = pa.schema(
    [
        *CELL,
        *_SPLIT,
        pa.field("signal", pa.string(), nullable=False),  # attention_window | attention_image
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),  # exclusive
        pa.field("chosen", pa.bool_(), nullable=False),  # the window the other numbers use
        pa.field("n_correct", pa.int64(), nullable=False),  # answers that have the attention
        pa.field("n_wrong", pa.int64(), nullable=False),
        pa.field("d", _FLOATS),  # correct against wrong
        pa.field("d_low", _FLOATS),
        pa.field("d_high", _FLOATS),
    ]
)

EXCLUDED = pa.schema(
    [
        *CELL,
        *_SPLIT,
        pa.field("excluded", pa.string(), nullable=False),  # the readout whose ids are measured
        pa.field("outcome", pa.string(), nullable=False),  # all | tp | fp | tn | fn, of the main records
        pa.field("side", pa.string(), nullable=False),  # yes | no | pair (yes minus no; probability of both)
        pa.field("n", pa.int64(), nullable=False),
        *[
            pa.field(name, _FLOATS)
            for name in ("mean", "sd", "min", "p05", "p25", "median", "p75", "p95", "max")
        ],
        pa.field("rank_mean", _FLOATS),
        pa.field("rank_median", _FLOATS),
        pa.field("rank_best", pa.int64()),
        *[pa.field(f"probability_{name}", _FLOATS) for name in ("mean", "median", "max")],
        # Of the pair alone: yes minus no against the emitted gap, the label and the answer.
        *[pa.field(name, _FLOATS) for name in ("pearson", "pearson_low", "pearson_high", "spearman")],
        pa.field("says_yes", pa.int64()),
        pa.field("label_hits", pa.int64()),  # its sign, yes where positive, is the label
        pa.field("answer_hits", pa.int64()),  # ... is the answer
        *[pa.field(name, _FLOATS) for name in ("label_auc", "label_auc_low", "label_auc_high")],
    ]
)
