"""What preflight holds prompts against: pinned for the paper's five models, and true of their real tokenizers."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from readout_audit.models.mplug_owl2.prompts import encode_prompt
from readout_audit.models.mplug_owl2.splicing import IMAGE_TOKEN_ID
from readout_audit.models.mplug_owl2.tokenizer import load_tokenizer as load_as_owl
from readout_audit.models.templates import PROBE_QUESTION, Template, render
from readout_audit.tokens.loading import load_tokenizer

FOLDERS = {
    "llava-1.5-7b": "llava-1.5-7b-hf",
    "llava-1.6-mistral-7b": "llava-v1.6-mistral-7b-hf",
    "instructblip-vicuna-7b": "instructblip-vicuna-7b",
    "qwen2-vl-7b-instruct": "qwen2-vl-7b-instruct",
    # LLaMA-2's vocabulary, read as mPLUG-Owl2's loader reads it.
    "mplug-owl2-llama2-7b": "llava-1.5-7b-hf",
}


def known(root: Path) -> dict[str, Any]:
    text = (root / "config/templates.yaml").read_text(encoding="utf-8")
    templates: dict[str, Any] = yaml.safe_load(text)["known_templates"]
    return templates


def test_every_prompt_of_the_papers_models_is_pinned(root: Path) -> None:
    for model in FOLDERS:
        for name, entry in known(root)[model].items():
            assert len(entry["pinned"]["first_ids"]) == 5, (model, name)
            # A text is its own pin; what a chat template renders to could change with the checkpoint.
            assert ("prompt" in entry["pinned"]) == entry["chat"], (model, name)


@pytest.mark.parametrize("model", FOLDERS)
def test_the_pins_are_what_the_real_tokenizers_give(root: Path, shared: Path, model: str) -> None:
    folder = shared / "mirror/tokenizers" / FOLDERS[model]
    if not folder.is_dir():
        pytest.skip(f"the mirrored tokenizer of {model} is not there")
    owl = model.startswith("mplug")
    tokenizer = load_as_owl(folder) if owl else load_tokenizer(folder)
    for name, entry in known(root)[model].items():
        template = Template.from_dict({**entry, "name": name})
        prompt = render(template, PROBE_QUESTION, tokenizer, folder)
        assert prompt == template.pinned.get("prompt", prompt)
        ids = encode_prompt(tokenizer, prompt) if owl else tokenizer.encode(prompt)
        picture = {IMAGE_TOKEN_ID, *tokenizer.convert_tokens_to_ids(["<image>", "<|image_pad|>"])}
        text = [i for i in ids if i not in picture or i == tokenizer.unk_token_id]
        assert text[:5] == template.pinned["first_ids"], (name, text[:8])
