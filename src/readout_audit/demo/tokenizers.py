"""The demo models' vocabularies: two in the manner of LLaMA, one in the manner of Qwen2.

Merges are learned here and not by a library, so that the ids depend on this file alone. In all three the
words yes, Yes, no, No are single tokens, with and without a space in front of them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from readout_audit.datasets.sampling import question_text
from readout_audit.demo.world import CATEGORIES

SPACE = "▁"
"""Stands for a space in the LLaMA-like vocabularies, as in SentencePiece."""

ANSWERS = ("yes", "Yes", "no", "No")
_ANSWER_WEIGHT = 150
_DRAWN_WEIGHT = 4

METASPACE_MERGES = 299
BYTE_LEVEL_MERGES = 250

_PIECES = re.compile(rf"{SPACE}?[A-Za-z]+|{SPACE}?[^A-Za-z{SPACE}]|{SPACE}")
_QWEN_PIECES = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

# fmt: off
COCO_NAMES = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee",
    "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple",
    "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote", "keyboard",
    "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase",
    "scissors", "teddy bear", "hair drier", "toothbrush",
)
# fmt: on
"""COCO's eighty names: all of them can be written in few tokens, those never drawn included."""


def corpus() -> list[str]:
    """Return the sentences that the merges are learned from: questions, prompts and short captions.

    The thirty drawn categories come `_DRAWN_WEIGHT` more times than the rest, so that most of them are
    written in one piece.
    """
    names = [*COCO_NAMES, *[category.name for category in CATEGORIES] * _DRAWN_WEIGHT]
    questions = [question_text(name) for name in names]
    prompts = [
        form.format(question)
        for question in questions
        for form in (
            "USER: \n{} Answer yes or no only.\nASSISTANT:",
            "[INST] \n{} [/INST]",
            "user\n{}\nassistant\n",
            "Question: {} Short answer:",
        )
    ]
    captions = [f"The picture shows a {name}." for name in names]
    return prompts + captions + ["system\nYou are a helpful assistant."]


def learn_merges(words: Mapping[tuple[str, ...], int], count: int) -> list[tuple[str, str]]:
    """Learn `count` byte-pair merges; of equally frequent pairs the alphabetically first is merged.

    Args:
        words: symbols of a word -> how often it occurs.
        count: number of merges.
    """
    merges: list[tuple[str, str]] = []
    current = dict(words)
    while len(merges) < count:
        pairs: Counter[tuple[str, str]] = Counter()
        for symbols, weight in current.items():
            for pair in pairwise(symbols):
                pairs[pair] += weight
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        merged: Counter[tuple[str, ...]] = Counter()
        for symbols, weight in current.items():
            merged[_apply(symbols, best)] += weight
        current = dict(merged)
    return merges


def _apply(symbols: tuple[str, ...], pair: tuple[str, str]) -> tuple[str, ...]:
    """Replace each occurrence of `pair` in `symbols` by its join, from the left."""
    joined: list[str] = []
    position = 0
    while position < len(symbols):
        if symbols[position : position + 2] == pair:
            joined.append("".join(pair))
            position += 2
        else:
            joined.append(symbols[position])
            position += 1
    return tuple(joined)


def _weigh(words: Iterable[str], answers: Iterable[str]) -> dict[tuple[str, ...], int]:
    """Count the words; the answers weigh enough to become single pieces, and no more."""
    counts: Counter[tuple[str, ...]] = Counter(tuple(word) for word in words)
    for answer in answers:
        counts[tuple(answer)] += _ANSWER_WEIGHT
    return dict(counts)


def metaspace_tokenizer(order_seed: int | None = None) -> PreTrainedTokenizerFast:
    """Build a LLaMA-like tokenizer: a space is part of the piece, one is put before every text.

    The pipeline is that of the llava-hf files (prepend and replace, no pre-tokenizer, BOS by the
    post-processor), so `encode("Yes")` is the piece ▁Yes and `encode(" Yes")` is ▁ and ▁Yes.

    Args:
        order_seed: None puts the ids in the order of learning; a seed shuffles all but the special ones.
    """
    sentences = [(SPACE + sentence.replace(" ", SPACE)) for sentence in corpus()]
    words = (word for sentence in sentences for word in _PIECES.findall(sentence))
    merges = learn_merges(
        _weigh(words, [prefix + answer for answer in ANSWERS for prefix in ("", SPACE)]), METASPACE_MERGES
    )
    alphabet = [SPACE, "\n", *(chr(code) for code in range(33, 127))]
    pieces = ["".join(merge) for merge in merges] + alphabet
    if order_seed is not None:
        pieces = [pieces[position] for position in np.random.default_rng(order_seed).permutation(len(pieces))]
    vocabulary = {piece: index for index, piece in enumerate(["<unk>", "<s>", "</s>", *pieces])}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", vocabulary["<s>"])]
    )
    _add_special(tokenizer, ["<unk>", "<s>", "</s>", "<image>", "<pad>"])
    return _wrap(tokenizer, bos="<s>", eos="</s>", pad="<pad>", unk="<unk>", image="<image>")


def byte_level_tokenizer() -> PreTrainedTokenizerFast:
    """Build a Qwen2-like tokenizer: byte-level pieces, no BOS, chat markers as special tokens."""
    splitter = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_QWEN_PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    words = (word for sentence in corpus() for word, _ in splitter.pre_tokenize_str(sentence))
    merges = learn_merges(
        _weigh(words, [prefix + answer for answer in ANSWERS for prefix in ("", "Ġ")]), BYTE_LEVEL_MERGES
    )
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet()) + ["".join(merge) for merge in merges]
    vocabulary = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = splitter
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    markers = [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
        "<|vision_start|>",
        "<|vision_end|>",
        "<|image_pad|>",
    ]
    _add_special(tokenizer, markers)
    return _wrap(tokenizer, bos=None, eos="<|im_end|>", pad="<|endoftext|>", unk=None, image="<|image_pad|>")


def _add_special(tokenizer: Tokenizer, contents: Iterable[str]) -> None:
    """Register special tokens: never split, never normalised, new ones at the end of the vocabulary."""
    tokenizer.add_special_tokens(
        [AddedToken(content, special=True, normalized=False) for content in contents]
    )


def _wrap(
    tokenizer: Tokenizer, bos: str | None, eos: str, pad: str, unk: str | None, image: str
) -> PreTrainedTokenizerFast:
    """Give a tokenizer the names transformers knows its special tokens by."""
    named = {"bos_token": bos, "eos_token": eos, "pad_token": pad, "unk_token": unk}
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        extra_special_tokens={"image_token": image},
        **{name: token for name, token in named.items() if token is not None},
    )
