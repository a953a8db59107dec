"""Random-weight models a few thousand parameters large: every family's code path, without its weights.

They answer nothing sensible. They exist so that engines, preflight and the whole pipeline can be run, and
compared with each other, on any machine.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from readout_audit.errors import AuditError

ANSWERS = ("yes", "Yes", "no", "No")
_SPACE = "▁"
_IMAGE_EDGE, _PATCH = 56, 14


def metaspace_tokenizer() -> Any:
    """Return a LLaMA-like tokenizer of about 110 pieces: characters, and the eight answer forms whole."""
    from tokenizers import Tokenizer, decoders, normalizers, processors
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast

    merges = [
        pair
        for word in ANSWERS
        for pair in [*((word[:cut], word[cut]) for cut in range(1, len(word))), (_SPACE, word)]
    ]
    characters = [_SPACE, "\n", *(chr(code) for code in range(33, 127))]
    pieces = ["<unk>", "<s>", "</s>", *characters, *dict.fromkeys("".join(pair) for pair in merges)]
    ids = {piece: place for place, piece in enumerate(pieces)}
    backend = Tokenizer(BPE(ids, merges, unk_token="<unk>", fuse_unk=True))
    backend.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE), normalizers.Replace(" ", _SPACE)])
    backend.decoder = decoders.Sequence(
        [decoders.Replace(_SPACE, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", ids["<s>"])]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        pad_token="<pad>",
        extra_special_tokens={"image_token": "<image>"},
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = (
        "{% for message in messages %}USER: {% for item in message['content'] %}"
        "{% if item['type'] == 'image' %}<image>\n{% else %}{{ item['text'] }}{% endif %}{% endfor %}"
        "{% endfor %} ASSISTANT:"
    )
    return tokenizer


def _text_sizes(vocabulary: int, layers: int = 2) -> dict[str, Any]:
    """Return the sizes of a tiny decoder, every width a multiple of 64 so that it can be quantised."""
    return {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": vocabulary,
        "max_position_embeddings": 2048,
    }


def _vision_sizes() -> dict[str, Any]:
    """Return the sizes of a tiny CLIP tower: 16 patches."""
    return {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "image_size": _IMAGE_EDGE,
        "patch_size": _PATCH,
    }


def _clip_images(**changes: Any) -> Any:
    """Return a CLIP image processor for the tiny tower."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    edge = {"height": _IMAGE_EDGE, "width": _IMAGE_EDGE}
    return CLIPImageProcessorPil(**{"size": {"shortest_edge": _IMAGE_EDGE}, "crop_size": edge, **changes})


def _llava(folder: Path, seed: int) -> None:
    """Write a tiny LLaVA-1.5."""
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )

    tokenizer = metaspace_tokenizer()
    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**_vision_sizes()).to_dict(),
        text_config=LlamaConfig(**_text_sizes(len(tokenizer) + 6), **_special(tokenizer)).to_dict(),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        image_seq_length=(_IMAGE_EDGE // _PATCH) ** 2,
    )
    processor = LlavaProcessor(
        image_processor=_clip_images(),
        tokenizer=tokenizer,
        patch_size=_PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    _save(LlavaForConditionalGeneration, config, processor, folder, seed)


def _special(tokenizer: Any) -> dict[str, int]:
    """Return the tokenizer's special ids, as a config takes them."""
    return {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}


def _save(network_class: Any, config: Any, processor: Any, folder: Path, seed: int) -> None:
    """Write seeded random weights, config and processor."""
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    network = network_class(config).eval()
    spread(network)
    torch.random.set_rng_state(state)
    network.save_pretrained(folder)
    processor.save_pretrained(folder)


def spread(network: torch.nn.Module, gain: float = 8.0) -> None:
    """Scale up the linear layers of a fresh network, so that its logits differ by prompt and picture.

    At the usual initial scale a tiny network gives nearly the same logits whatever it is shown.
    """
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Embedding):
                module.weight.mul_(gain)


FAMILIES: dict[str, Callable[[Path, int], None]] = {"llava": _llava}
"""Adapter name -> how its tiny model is written."""


def build(family: str, folder: Path, seed: int = 0) -> None:
    """Write a tiny checkpoint of `family` into `folder`.

    Args:
        family: an adapter name of `registry.ADAPTERS`.
        folder: made if need be.
        seed: of the random weights.
    """
    if family not in FAMILIES:
        raise AuditError(f"there is no tiny model of family {family!r}; choose one of {', '.join(FAMILIES)}.")
    FAMILIES[family](folder, seed)
