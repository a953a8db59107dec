"""The columns of a signals file: what an instrumented pass measures of each distinct question.

One row per distinct uid; rows join records on it, in any order. Lists of logits are parallel to
`metadata["candidate_ids"]`, the same ids as in the record file's metadata, so that every readout and every
correction can be applied to them later. Nothing here is a decision, and no layer window or map to [0, 1] is
chosen: that is done right of this file, without a model.

File metadata (`fileio.table_metadata`), beside what a record file says of its model:
    candidate_ids: sorted ids.
    vocabulary_size: entries of the distribution whose entropy is taken.
    n_layers, n_heads: of the language decoder; the lists over layers have these lengths.
    settings: everything the numbers depend on, among it
        `text_prompt` ("{noun}"), `clip_b32`, `clip_l14_336` (model and revision, null where not run),
        `clip_patch_norm` (whether patches pass CLIP's final layer norm before the projection; false in the authors' code),
        `vcd` ({"noise_step", "seed"}; null where not run), `vcd_uniform` ({"seed", "side"}; null where not run),
        `authors_window` ([first, end), positions in the sequence the decoder sees: [1, 577]),
        `entropy_layers` ([first, end), counted from 0: [14, 20]).
    settings_id: hash of `settings`.
    record_settings_id: the `settings_id` of the records these signals belong to.
"""

import pyarrow as pa

_LOGITS = pa.list_(pa.float32())

SIGNALS = pa.schema(
    [
        pa.field("uid", pa.string(), nullable=False),
        pa.field("image", pa.string(), nullable=False),
        pa.field("image_sha256", pa.string()),  # of the file's bytes; null where it could not be read
        pa.field(
            "status", pa.string(), nullable=False
        ),  # ok | invalid: the model gave nothing that can be read
        pa.field("reason", pa.string()),  # why invalid; where ok, why a signal is missing
        # The noun that CLIP and the object entropy are about.
        pa.field("noun", pa.string()),  # null where the question could not be parsed
        pa.field("noun_reason", pa.string()),  # how it was found against the pattern, or why it was not
        # The answer position of this pass, to be compared with the main records.
        pa.field("answer_argmax_id", pa.int32()),
        pa.field("answer_candidate_logits", _LOGITS),
        pa.field("log_z", pa.float32()),  # log-sum-exp over the vocabulary
        pa.field("entropy", pa.float32()),  # of the answer-position distribution, nats
        pa.field("entropy_normalised", pa.float32()),  # entropy / log(vocabulary_size), in [0, 1]
        pa.field("logit_mean", pa.float32()),  # over the vocabulary
        pa.field("logit_sd", pa.float32()),  # over the vocabulary, divisor n
        pa.field("logit_min", pa.float32()),
        pa.field("logit_max", pa.float32()),
        # The greedy continuation: step 0 is the answer position, the midpoint is step (number of tokens) // 2.
        pa.field("midpoint_step", pa.int32()),  # null where the continuation has one token
        pa.field("midpoint_candidate_logits", _LOGITS),
        # After each decoder layer through the final norm and the unembedding, layer by layer:
        # n_layers * len(candidate_ids) values.
        pa.field("layer_candidate_logits", _LOGITS),
        # Cosine similarities of the noun's text embedding.
        pa.field("clip_b32_patches", pa.float32()),  # largest over the projected patch features
        pa.field("clip_b32_image", pa.float32()),  # whole image
        pa.field("clip_b32_crops", pa.float32()),  # largest over the authors' 4 x 4 crops and the whole image
        pa.field("clip_l_patches", pa.float32()),  # largest over the 576 projected patch features
        pa.field("clip_l_cls", pa.float32()),  # projected CLS, the image embedding
        # Second passes.
        pa.field("vcd_candidate_logits", _LOGITS),  # the image after diffusion noise (Leng et al. 2024)
        pa.field("vcd_uniform_candidate_logits", _LOGITS),  # an image of uniform noise (the authors' code)
        # Attention of the last prompt token, SUMMED over positions, layer by layer, head by head:
        # n_layers * n_heads values.
        pa.field("attention_image", _LOGITS),  # the positions that hold image embeddings
        pa.field("attention_window", _LOGITS),  # settings["authors_window"], cut at the end of the sequence
        pa.field("n_image_positions", pa.int32()),
        pa.field("image_start", pa.int32()),  # first position that holds an image embedding, from 0
        # Entropy of attention over positions, divided by log(number of positions), in [0, 1]. The attention is
        # averaged over heads, layers and the words' positions, then made to sum to one. Suffix: the positions
        # attended to, as above. Null where the question has no such word.
        pa.field(
            "answer_attention_entropy_image", pa.float32()
        ),  # last prompt token, settings["entropy_layers"]
        pa.field("answer_attention_entropy_window", pa.float32()),
        pa.field("noun_attention_entropy_image", pa.float32()),  # tokens of the noun, all layers
        pa.field("noun_attention_entropy_window", pa.float32()),
        pa.field("spatial_attention_entropy_image", pa.float32()),  # tokens of spatial words, all layers
        pa.field("spatial_attention_entropy_window", pa.float32()),
        pa.field(
            "spatial_attention_mean_image", pa.float32()
        ),  # mean over positions, heads, layers and words
        pa.field("spatial_attention_mean_window", pa.float32()),
        # The same from every word of question and suffix outside the authors' stop list ("object" in their code).
        pa.field("words_attention_entropy_window", pa.float32()),
        pa.field("first_attention_entropy_image", pa.float32()),  # null: position 0 sees nothing later
    ]
)
"""One row per distinct uid. A signal that was not measured is null, never zero."""
