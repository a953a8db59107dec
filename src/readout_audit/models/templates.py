"""Prompt templates: the exact text a question is wrapped in."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from readout_audit.errors import AuditError

CLEAN, MERGES = "clean", "merges"
PROBE_QUESTION = "Is there a dog in the image?"
"""The question that preflight and the token map render; pinned prompts are renderings of it."""

_KEYS = {"name", "text", "chat", "suffix", "answer_boundary", "pinned"}


@dataclass(frozen=True)
class Template:
    """One prompt template.

    Attributes:
        name: its name in the config.
        text: the prompt around `{question}`; empty when the model's own chat template is used.
        chat: whether the prompt is the chat template around one image and the question.
        suffix: appended to the question where it stands in the prompt (" Answer yes or no only.").
        answer_boundary: `clean` when the prompt's ids are a prefix of the ids of prompt + answer,
            `merges` when the prompt ends in a space that the answer's first piece swallows.
        pinned: optional expectations on `PROBE_QUESTION`: {"prompt": text, "first_ids": [ints]}, the ids without
            the picture's.
    """

    name: str
    text: str = ""
    chat: bool = False
    suffix: str = ""
    answer_boundary: str = CLEAN
    pinned: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> "Template":
        """Build a template from its JSON form.

        Raises:
            AuditError: an unknown key, neither or both of text and chat, no `{question}`, the suffix
                written out twice, or an unknown answer boundary.
        """
        name = value.get("name", "?")
        surplus = sorted(set(value) - _KEYS)
        if surplus:
            raise AuditError(f"template {name}: unknown keys {', '.join(surplus)}.")
        template = cls(**{key: item for key, item in value.items() if item is not None})
        if bool(template.text) == bool(template.chat):
            raise AuditError(f"template {name}: give either a text or chat: true, not both and not neither.")
        if template.text and template.text.count("{question}") != 1:
            raise AuditError(f"template {name}: its text must hold {{question}} exactly once.")
        if template.suffix and template.suffix.strip() in template.text:
            raise AuditError(f"template {name}: the suffix {template.suffix!r} is already part of its text.")
        if template.answer_boundary not in (CLEAN, MERGES):
            raise AuditError(
                f"template {name}: answer_boundary is {template.answer_boundary!r}, not {CLEAN} or {MERGES}."
            )
        return template


def render(template: Template, question: str, tokenizer: Any, folder: Path) -> str:
    """Return the prompt text of `question`, image placeholder not yet expanded.

    Args:
        template: what to wrap the question in.
        question: the exact question.
        tokenizer: the model's tokenizer; only its chat template is used, and only for `chat` templates.
        folder: the checkpoint folder, where the chat template may lie in a file of its own.
    """
    asked = question + template.suffix
    if template.text:
        return template.text.replace("{question}", asked)
    content = [{"type": "image"}, {"type": "text", "text": asked}]
    rendered = tokenizer.apply_chat_template(
        [{"role": "user", "content": content}],
        chat_template=chat_template(tokenizer, folder),
        add_generation_prompt=True,
        tokenize=False,
    )
    return str(rendered)


def chat_template(tokenizer: Any, folder: Path) -> str:
    """Return the checkpoint's chat template: of its processor if there is one, else of its tokenizer."""
    jinja, legacy = folder / "chat_template.jinja", folder / "chat_template.json"
    if jinja.is_file():
        return jinja.read_text(encoding="utf-8")
    if legacy.is_file():
        return str(json.loads(legacy.read_text(encoding="utf-8"))["chat_template"])
    own = getattr(tokenizer, "chat_template", None)
    if not isinstance(own, str):
        raise AuditError(f"{folder}: there is no chat template, so a chat prompt cannot be rendered.")
    return own
