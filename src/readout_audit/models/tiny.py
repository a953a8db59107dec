"""Random-weight models a few thousand parameters large: every family's code path, without its weights.

They answer nothing sensible. They exist so that engines, preflight and the whole pipeline can be run, and
compared with each other, on any machine.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from readout_audit.errors import AuditError
from readout_audit.tokens.loading import load_tokenizer

ANSWERS = ("yes", "Yes", "no", "No")
_SPACE = "▁"
_IMAGE_EDGE, _PATCH = 56, 14


def metaspace_tokenizer(words: tuple[str, ...] = ()) -> Any:
    """Return a small LLaMA-like tokenizer: characters, and the eight answer forms whole.

    Args:
        words: further words that become whole pieces, with and without a space in front.
    """
    from tokenizers import Tokenizer, decoders, normalizers, processors
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast

    whole = (*ANSWERS, *words)
    inside = [(word[:cut], word[cut]) for word in whole for cut in range(1, len(word))]
    # Longest first: a word's beginning must not take the space before the whole word can.
    spaced = [(_SPACE, word) for word in sorted(whole, key=len, reverse=True)]
    merges = list(dict.fromkeys([*inside, *spaced]))
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


def byte_level_tokenizer() -> Any:
    """Return a Qwen2-like tokenizer: bytes, the eight answer forms whole, chat markers, no start token."""
    from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import BPE
    from transformers import PreTrainedTokenizerFast

    space = "Ġ"
    merges = [
        pair
        for word in ANSWERS
        for pair in [*((word[:cut], word[cut]) for cut in range(1, len(word))), (space, word)]
    ]
    pieces = [*sorted(pre_tokenizers.ByteLevel.alphabet()), *dict.fromkeys("".join(pair) for pair in merges)]
    backend = Tokenizer(BPE({piece: place for place, piece in enumerate(pieces)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    markers = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>"]
    backend.add_special_tokens([AddedToken(marker, special=True) for marker in [*markers, "<|image_pad|>"]])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens={"image_token": "<|image_pad|>"},
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = (
        "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
        "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% for item in message['content'] %}"
        "{% if item['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}"
        "{{ item['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
    )
    return tokenizer


def word_tokenizer() -> Any:
    """Return a BERT-like tokenizer of characters, as a Q-Former wants one: [CLS] text [SEP]."""
    from tokenizers import Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import WordPiece
    from transformers import PreTrainedTokenizerFast

    marks = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[DEC]"]
    characters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    pieces = [*marks, *characters, *(f"##{character}" for character in characters)]
    backend = Tokenizer(WordPiece({piece: place for place, piece in enumerate(pieces)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        cls_token="[CLS]",
        sep_token="[SEP]",
        pad_token="[PAD]",
        unk_token="[UNK]",
        mask_token="[MASK]",
    )


def _text_sizes(vocabulary: int) -> dict[str, Any]:
    """Return the sizes of a tiny decoder, every width a multiple of 64 so that it can be quantised."""
    return {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": vocabulary,
        "max_position_embeddings": 2048,
    }


def _vision_sizes() -> dict[str, Any]:
    """Return the sizes of a tiny vision tower: 16 patches."""
    return {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "image_size": _IMAGE_EDGE,
        "patch_size": _PATCH,
    }


def _edge() -> dict[str, int]:
    return {"height": _IMAGE_EDGE, "width": _IMAGE_EDGE}


def _special(tokenizer: Any) -> dict[str, Any]:
    """Return the tokenizer's special ids, as a config takes them."""
    return {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}


def _image_id(tokenizer: Any) -> int:
    """Return the placeholder's id; not every tokenizer that has one names it."""
    entries = tokenizer.get_vocab()
    known = [getattr(tokenizer, "image_token", None), "<image>", "<|image_pad|>"]
    return int(next(entries[token] for token in known if token in entries))


def _llava(folder: Path, tokenizer: Any) -> None:
    """Write a tiny LLaVA-1.5."""
    from transformers import (
        CLIPVisionConfig,
        LlamaConfig,
        LlavaConfig,
        LlavaForConditionalGeneration,
        LlavaProcessor,
    )
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    config = LlavaConfig(
        vision_config=CLIPVisionConfig(**_vision_sizes()).to_dict(),
        text_config=LlamaConfig(**_text_sizes(len(tokenizer) + 6), **_special(tokenizer)).to_dict(),
        image_token_id=_image_id(tokenizer),
        image_seq_length=(_IMAGE_EDGE // _PATCH) ** 2,
    )
    processor = LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size={"shortest_edge": _IMAGE_EDGE}, crop_size=_edge()),
        tokenizer=tokenizer,
        patch_size=_PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    _save(LlavaForConditionalGeneration(config), processor, folder)


def _llava_next(folder: Path, tokenizer: Any) -> None:
    """Write a tiny LLaVA-1.6 around a Mistral decoder: up to four tiles and the whole."""
    from transformers import (
        CLIPVisionConfig,
        LlavaNextConfig,
        LlavaNextForConditionalGeneration,
        LlavaNextProcessor,
        MistralConfig,
    )
    from transformers.models.llava_next.image_processing_pil_llava_next import LlavaNextImageProcessorPil

    grids = [[_IMAGE_EDGE * rows, _IMAGE_EDGE * columns] for rows, columns in ((1, 2), (2, 1), (2, 2))]
    text = MistralConfig(**_text_sizes(len(tokenizer) + 6), **_special(tokenizer), sliding_window=None)
    config = LlavaNextConfig(
        vision_config=CLIPVisionConfig(**_vision_sizes()).to_dict(),
        text_config=text.to_dict(),
        image_token_index=_image_id(tokenizer),
        image_grid_pinpoints=grids,
        image_seq_length=(_IMAGE_EDGE // _PATCH) ** 2,
    )
    processor = LlavaNextProcessor(
        image_processor=LlavaNextImageProcessorPil(
            size={"shortest_edge": _IMAGE_EDGE}, crop_size=_edge(), image_grid_pinpoints=grids
        ),
        tokenizer=tokenizer,
        patch_size=_PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    _save(LlavaNextForConditionalGeneration(config), processor, folder)


def _qwen2_vl(folder: Path, tokenizer: Any) -> None:
    """Write a tiny Qwen2-VL; pictures become 4 to 64 merged patches."""
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    text = {
        **_text_sizes(len(tokenizer) + 10),
        "bos_token_id": None,
        "eos_token_id": tokenizer.eos_token_id,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]},
    }
    vision = {"depth": 2, "embed_dim": 64, "hidden_size": 64, "num_heads": 4, "patch_size": _PATCH}
    config = Qwen2VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=_image_id(tokenizer),
        vision_start_token_id=tokenizer.convert_tokens_to_ids("<|vision_start|>"),
        vision_end_token_id=tokenizer.convert_tokens_to_ids("<|vision_end|>"),
    )
    patch = (2 * _PATCH) ** 2
    _save(Qwen2VLForConditionalGeneration(config), tokenizer, folder)
    Qwen2VLImageProcessorPil(size={"shortest_edge": 4 * patch, "longest_edge": 64 * patch}).save_pretrained(
        folder
    )


def _instructblip(folder: Path, tokenizer: Any) -> None:
    """Write a tiny InstructBLIP with four query tokens and a Q-Former vocabulary of our own."""
    from transformers import InstructBlipConfig, InstructBlipForConditionalGeneration, LlamaConfig
    from transformers.models.blip.image_processing_pil_blip import BlipImageProcessorPil

    words = word_tokenizer()
    text = LlamaConfig(**_text_sizes(len(tokenizer) + 6), **_special(tokenizer))
    config = InstructBlipConfig(
        vision_config={**_vision_sizes(), "initializer_range": 0.02},
        qformer_config={
            "vocab_size": len(words),
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
        },
        text_config=text.to_dict(),
        num_query_tokens=4,
        image_token_index=_image_id(tokenizer),
    )
    network = InstructBlipForConditionalGeneration(config)
    torch.nn.init.normal_(network.query_tokens)
    _save(network, tokenizer, folder)
    words.save_pretrained(folder / "qformer_tokenizer")
    BlipImageProcessorPil(size=_edge()).save_pretrained(folder)


def _mplug_owl2(folder: Path, tokenizer: Any) -> None:
    """Write a tiny mPLUG-Owl2; an image takes five vectors."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    from readout_audit.models.mplug_owl2.configuration import MplugOwl2Config
    from readout_audit.models.mplug_owl2.model import MplugOwl2ForCausalLM

    vision = {**_vision_sizes(), "num_channels": 3, "layer_norm_eps": 1e-6}
    abstractor = {
        "num_learnable_queries": 4,
        "hidden_size": 64,
        "encoder_hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
        "layer_norm_eps": 1e-6,
        "grid_size": _IMAGE_EDGE // _PATCH,
    }
    sizes = {**_text_sizes(len(tokenizer)), "num_key_value_heads": 4, "rms_norm_eps": 1e-5, "rope_theta": 1e4}
    described = {**sizes, "visual_config": {"visual_model": vision, "visual_abstractor": abstractor}}
    network = MplugOwl2ForCausalLM(MplugOwl2Config(**described, **_special(tokenizer)))
    _save(network, tokenizer, folder)
    (folder / "config.json").write_text(
        json.dumps({"model_type": "mplug_owl2", **described, **_special(tokenizer)})
    )
    CLIPImageProcessorPil(size={"shortest_edge": _IMAGE_EDGE}, crop_size=_edge()).save_pretrained(folder)


def _save(network: torch.nn.Module, processor: Any, folder: Path) -> None:
    """Write weights and config, and a processor or tokenizer."""
    spread(network)
    saved: Any = network
    saved.save_pretrained(folder)
    processor.save_pretrained(folder)


def spread(network: torch.nn.Module, gain: float = 8.0) -> None:
    """Scale up the linear layers of a fresh network, so that its logits differ by prompt and picture.

    At the usual initial scale a tiny network gives nearly the same logits whatever it is shown.
    """
    with torch.no_grad():
        for module in network.modules():
            if isinstance(module, torch.nn.Linear | torch.nn.Embedding):
                module.weight.mul_(gain)


FAMILIES: dict[str, tuple[Callable[[Path, Any], None], Callable[[], Any]]] = {
    "generic": (_llava, metaspace_tokenizer),
    "instructblip": (_instructblip, metaspace_tokenizer),
    "llava": (_llava, metaspace_tokenizer),
    "llava_next": (_llava_next, metaspace_tokenizer),
    "mplug_owl2": (_mplug_owl2, metaspace_tokenizer),
    "qwen2_vl": (_qwen2_vl, byte_level_tokenizer),
}
"""Adapter name -> how its tiny model is written, and the tokenizer it gets unless it is given another."""


def build(family: str, folder: Path, seed: int = 0, tokenizer: Path | None = None) -> None:
    """Write a tiny checkpoint of `family` into `folder`.

    Args:
        family: an adapter name of `registry.ADAPTERS`.
        folder: made if need be.
        seed: of the random weights.
        tokenizer: folder of a real tokenizer to use in place of the small one.
    """
    if family not in FAMILIES:
        raise AuditError(f"there is no tiny model of family {family!r}; choose one of {', '.join(FAMILIES)}.")
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    write, own = FAMILIES[family]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        write(folder, own() if tokenizer is None else real_tokenizer(family, tokenizer))


def real_tokenizer(family: str, folder: Path) -> Any:
    """Return the tokenizer in `folder`, read as a checkpoint of `family` would be."""
    if family == "mplug_owl2":
        from readout_audit.models.mplug_owl2.tokenizer import load_tokenizer as load_as_owl

        return load_as_owl(folder)
    return load_tokenizer(folder)
