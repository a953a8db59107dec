"""mPLUG-Owl2 as one model of transformers: images, prompts and decoder together (docs/mplug-owl2.md §1 to §5)."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.cache_utils import Cache, DynamicCache
from transformers.masking_utils import create_causal_mask
from transformers.modeling_outputs import BaseModelOutputWithPast, CausalLMOutputWithPast
from transformers.modeling_utils import slice_logits_to_keep
from transformers.models.llama.modeling_llama import LlamaRMSNorm
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.output_capturing import capture_outputs

from readout_audit.errors import AuditError
from readout_audit.models.mplug_owl2.abstractor import VisualAbstractor
from readout_audit.models.mplug_owl2.configuration import MplugOwl2Config, check_config
from readout_audit.models.mplug_owl2.language import DecoderAttention, DecoderLayer, rotary_tables, route
from readout_audit.models.mplug_owl2.splicing import (
    IMAGE_TOKEN_ID,
    PaddedPrompts,
    expand_ids,
    pad_prompts,
    splice,
)
from readout_audit.models.mplug_owl2.vision import VisionModel


class MplugOwl2PreTrainedModel(PreTrainedModel):  # type: ignore[misc]
    """What loading and saving need to know."""

    config_class = MplugOwl2Config
    base_model_prefix = "model"
    main_input_name = "input_ids"
    input_modalities = ("image", "text")
    _no_split_modules = ("DecoderLayer", "VisionLayer", "AbstractorLayer")
    _supports_sdpa = True
    # A checkpoint may hold these; all three are computed when used (§1.3, §3.4, §9.2).
    _keys_to_ignore_on_load_unexpected = (r"\.rotary_emb\.inv_freq$", r"\.attention\.[qk]_pos_embed$")
    _can_record_outputs = {"hidden_states": DecoderLayer, "attentions": DecoderAttention}  # noqa: RUF012

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Also draw the four parameters that belong to no layer of torch (only for models made without weights)."""
        super()._init_weights(module)
        for name, parameter in module.named_parameters(recurse=False):
            if name in ("cls_token", "position_embedding", "query_embeds", "vit_eos"):
                init.normal_(parameter, mean=0.0, std=self.config.initializer_range)


class MplugOwl2Model(MplugOwl2PreTrainedModel):
    """Everything but the output head."""

    def __init__(self, config: MplugOwl2Config) -> None:
        check_config(config)
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config, index) for index in range(config.num_hidden_layers))
        self.norm = LlamaRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.vision_model = VisionModel(config)
        self.visual_abstractor = VisualAbstractor(config)
        self.post_init()

    def encode_images(self, pixel_values: Tensor) -> Tensor:
        """Map `[images, 3, size, size]` to the vectors the decoder reads, `[images, queries + 1, width]` (§2, §3)."""
        if pixel_values.shape[0] == 0:
            return pixel_values.new_empty(0, self.config.vectors_per_image, self.config.hidden_size)
        patches = self.vision_model.embeddings.patch_embed.weight
        vectors: Tensor = self.visual_abstractor(self.vision_model(pixel_values.to(patches)))
        return vectors

    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")  # type: ignore[untyped-decorator]
    @capture_outputs  # type: ignore[untyped-decorator]
    def forward(
        self,
        inputs_embeds: Tensor,
        modality_indicators: Tensor | None = None,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        cache: Cache | None = None,
        use_cache: bool = True,
        **_: Any,
    ) -> BaseModelOutputWithPast:
        """Run the decoder; arguments and result as in `MplugOwl2ForCausalLM.forward`."""
        if cache is None and use_cache:
            cache = DynamicCache()
        seen = cache.get_seq_length() if cache is not None else 0
        if position_ids is None:
            index = torch.arange(inputs_embeds.shape[1], device=inputs_embeds.device)
            position_ids = (seen + index)[None]
        # Without position ids: from them this function would guess packed sequences, which the caller masks himself.
        mask = create_causal_mask(
            config=self.config, inputs_embeds=inputs_embeds, attention_mask=attention_mask, cache=cache
        )
        rotary = rotary_tables(self.config, position_ids, inputs_embeds.dtype)
        routing = route(modality_indicators)
        x = inputs_embeds
        for layer in self.layers:
            x = layer(x, routing, rotary, mask, cache)
        return BaseModelOutputWithPast(last_hidden_state=self.norm(x), cache=cache)


class MplugOwl2ForCausalLM(MplugOwl2PreTrainedModel):
    """The model with its untied output head."""

    def __init__(self, config: MplugOwl2Config) -> None:
        super().__init__(config)
        self.model = MplugOwl2Model(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """Return the embedding table."""
        return self.model.embed_tokens

    def get_output_embeddings(self) -> nn.Module:
        """Return the output head, which quantisation leaves alone."""
        return self.lm_head

    def encode_images(self, pixel_values: Tensor) -> Tensor:
        """Map `[images, 3, size, size]` to `[images, queries + 1, width]`; independent of any prompt."""
        return self.model.encode_images(pixel_values)

    def pad_prompts(
        self, prompts: Sequence[Sequence[int]], padding_side: Literal["left", "right"] = "left"
    ) -> PaddedPrompts:
        """Put prompts, -200 once for each image, into one batch with their images expanded.

        Raises:
            AuditError: an id is outside the vocabulary.
        """
        self._check_ids(prompts)
        expanded = [expand_ids(prompt, self.config.vectors_per_image) for prompt in prompts]
        return pad_prompts(expanded, padding_side, self.model.embed_tokens.weight.device)

    def splice(self, input_ids: Tensor, images: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Embed expanded ids and put the image vectors in their places (§4).

        Args:
            input_ids: `[batch, L]`, -200 at every vector of an image.
            images: `[images, queries + 1, width]` from `encode_images`, over all rows in order; None for none.

        Returns:
            `inputs_embeds` `[batch, L, width]` and `modality_indicators` `[batch, L]` for the prompt pass.

        Raises:
            AuditError: placeholders and image vectors do not match in number.
        """
        if images is None:
            images = torch.empty(0, self.config.vectors_per_image, self.config.hidden_size)
        return splice(input_ids, images, self.model.embed_tokens)

    def _check_ids(self, prompts: Sequence[Sequence[int]]) -> None:
        """Refuse ids that the embedding table does not have, before a GPU reports them as an assertion."""
        vocabulary = self.config.vocab_size
        for prompt in prompts:
            for token in prompt:
                if token != IMAGE_TOKEN_ID and not 0 <= token < vocabulary:
                    raise AuditError(
                        f"Token id {token} is outside the model's vocabulary of {vocabulary}; "
                        f"use the tokenizer.model published with the weights."
                    )

    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")  # type: ignore[untyped-decorator]
    def forward(
        self,
        input_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        modality_indicators: Tensor | None = None,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        cache: Cache | None = None,
        use_cache: bool = True,
        logits_to_keep: int | Tensor = 0,
        **kwargs: Any,
    ) -> CausalLMOutputWithPast:
        """Run the decoder and the output head.

        Args:
            input_ids: `[batch, n]` text ids; prompts with images come as `inputs_embeds` from `splice`.
            inputs_embeds: `[batch, n, width]`, in place of `input_ids`.
            modality_indicators: `[batch, n]`, 0 text, 1 image; None means text, right for all after the prompt (§5.3).
            position_ids: `[batch or 1, n]`, counted with the image expansion; None continues from the cache's length.
            attention_mask: `[batch, cached + n]`, 0 at padding, or `[batch, 1, n, cached + n]` ready to use: added to
                the scores (or, under sdpa, true where attention is allowed).
            cache: keys (rotated) and values so far; grows in place. `past_key_values` is its deprecated name.
            use_cache: make a cache where none is given.
            logits_to_keep: as in transformers: the number of last positions, or the positions, through the head.
            **kwargs: `output_hidden_states`, `output_attentions` (the latter under `eager` only).

        Returns:
            Logits `[batch, kept, vocabulary]` in the model's type, the cache, and what was asked for.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give input_ids or inputs_embeds, and not both.")
        if inputs_embeds is None:
            inputs_embeds = self.model.embed_tokens(input_ids)
        outputs = self.model(
            inputs_embeds=inputs_embeds,
            modality_indicators=modality_indicators,
            position_ids=position_ids,
            attention_mask=attention_mask,
            cache=cache,
            use_cache=use_cache,
            **kwargs,
        )
        kept = slice_logits_to_keep(outputs.last_hidden_state, logits_to_keep)
        return CausalLMOutputWithPast(
            logits=self.lm_head(kept),
            cache=outputs.cache,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
        )
