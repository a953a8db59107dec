"""The two demo CLIPs: what each is made of, its tokenizer and its image processor.

They stand where CLIP-B/32 and CLIP-L/14-336 stand in a real run: one with few large patches, one with more
small ones. Both are `CLIPModel` and read any text of letters, digits and common marks, letter by letter.
"""

import string
from pathlib import Path
from typing import NamedTuple

import torch
from tokenizers import Tokenizer, normalizers, processors
from tokenizers.models import BPE
from transformers import CLIPConfig, CLIPModel, PreTrainedTokenizerFast
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

from readout_audit.demo.scenes import SIDE
from readout_audit.errors import AuditError

CONTEXT = 48
"""Most tokens of a text, start and end included."""

START, END, UNKNOWN = "<|startoftext|>", "<|endoftext|>", "<|unknown|>"
_SPACE = "▁"


class ClipRecipe(NamedTuple):
    """What makes one demo CLIP; sizes of its vision part, in pixels and channels."""

    name: str
    seed: int
    patch: int
    width: int
    layers: int


RECIPES: dict[str, ClipRecipe] = {
    recipe.name: recipe
    for recipe in (
        ClipRecipe("tiny-clip-b", seed=11, patch=21, width=64, layers=3),
        ClipRecipe("tiny-clip-l", seed=12, patch=12, width=96, layers=3),
    )
}

HEADS = 4
TEXT_WIDTH, TEXT_LAYERS = 64, 2
PROJECTION = 64


def get_recipe(name: str) -> ClipRecipe:
    """Return the recipe of a demo CLIP.

    Raises:
        AuditError: there is none of that name.
    """
    if name not in RECIPES:
        raise AuditError(f"{name!r} is not a demo CLIP; there are {', '.join(RECIPES)}.")
    return RECIPES[name]


def build_tokenizer() -> PreTrainedTokenizerFast:
    """Build a tokenizer that spells: one token per letter, lower case, between start and end."""
    characters = [_SPACE, *string.ascii_lowercase, *string.digits, *"'-.,?!:()/"]
    ids = {piece: place for place, piece in enumerate([START, END, UNKNOWN, *characters])}
    backend = Tokenizer(BPE(ids, [], unk_token=UNKNOWN))
    backend.normalizer = normalizers.Sequence([normalizers.Lowercase(), normalizers.Replace(" ", _SPACE)])
    backend.post_processor = processors.TemplateProcessing(
        single=f"{START} $A {END}", special_tokens=[(START, ids[START]), (END, ids[END])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=START,
        eos_token=END,
        pad_token=END,
        unk_token=UNKNOWN,
        model_max_length=CONTEXT,
    )


def build_image_processor() -> CLIPImageProcessorPil:
    """Build the image processor, CLIP's own at the side of the demo's pictures."""
    return CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})


def build_model(recipe: ClipRecipe) -> CLIPModel:
    """Build the untrained model, its weights drawn from the recipe's seed."""
    tokenizer = build_tokenizer()
    special = {name: getattr(tokenizer, name) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": TEXT_WIDTH,
        "intermediate_size": 2 * TEXT_WIDTH,
        "num_hidden_layers": TEXT_LAYERS,
        "num_attention_heads": HEADS,
        "max_position_embeddings": CONTEXT,
        "projection_dim": PROJECTION,
        **special,
    }
    vision = {
        "hidden_size": recipe.width,
        "intermediate_size": 4 * recipe.width,
        "num_hidden_layers": recipe.layers,
        "num_attention_heads": HEADS,
        "image_size": SIDE,
        "patch_size": recipe.patch,
        "projection_dim": PROJECTION,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=PROJECTION))


def save(model: CLIPModel, folder: Path) -> None:
    """Write a checkpoint folder as CLIPs are published: weights, configuration, tokenizer, processor."""
    model.save_pretrained(folder)
    build_tokenizer().save_pretrained(folder)
    build_image_processor().save_pretrained(folder)
