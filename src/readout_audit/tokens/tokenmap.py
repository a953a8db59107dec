"""The token map: every id that could be read as yes or no, by every rule that has been used to find one.

Four rules, kept apart because they disagree: the vocabulary entries of the eight forms (the published
lists), `encode` of the forms (Listing 1 keeps those of one token), the id an answer takes after the
rendered prompt, and a scan of the whole vocabulary. Sets are sorted lists of distinct ids; looking up
goes through `get_vocab()`, since `convert_tokens_to_ids` returns the unknown token for a missing piece.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from readout_audit.errors import AuditError
from readout_audit.models.templates import CLEAN, PROBE_QUESTION, Template, render
from readout_audit.tokens.forms import CAPITALS, FORMS
from readout_audit.tokens.loading import load_tokenizer, tokenizer_hashes
from readout_audit.tokens.surface import (
    BYTE_LEVEL_SPACE,
    SENTENCEPIECE_SPACE,
    bare_word,
    is_byte_level,
    surface,
)

LOGGER = logging.getLogger(__name__)

TokenSets = dict[str, list[int]]
"""{"yes": sorted ids, "no": sorted ids}."""


def build(model: str, folder: Path, templates: Mapping[str, Template]) -> dict[str, Any]:
    """Return the token map of the tokenizer in `folder`.

    Args:
        model: the model's name in the config; only copied.
        folder: holds the tokenizer.
        templates: prompt templates by name.

    Raises:
        AuditError: the tokenizer cannot be loaded, a template's `answer_boundary` is not as declared,
            or yes and no share an id.
    """
    tokenizer = load_tokenizer(folder)
    result: dict[str, Any] = {
        "model": model,
        "tokenizer_sha256": tokenizer_hashes(folder),
        "vocabulary_size": len(tokenizer),
        "vocabulary": vocabulary(tokenizer),
        "encode": encodings(tokenizer),
        "single": single(tokenizer),
        "scan": scan(tokenizer),
        "in_context": {
            name: in_context(template, tokenizer, folder) for name, template in sorted(templates.items())
        },
    }
    for rule, sets in [("single", result["single"]), ("scan", result["scan"]), *result["in_context"].items()]:
        check_disjoint(sets, f"{model}: the {rule} rule")
    result["pieces"] = pieces(tokenizer, mentioned_ids(result))
    return result


def vocabulary(tokenizer: Any) -> dict[str, dict[str, int | None]]:
    """Return the id of each form's vocabulary entry: "yes" -> `yes`, " yes" -> `▁yes` or `Ġyes`.

    Null where the vocabulary has no such piece.
    """
    entries = tokenizer.get_vocab()
    space = BYTE_LEVEL_SPACE if is_byte_level(tokenizer) else SENTENCEPIECE_SPACE
    return {
        answer: {form: entries.get(form.replace(" ", space)) for form in forms}
        for answer, forms in FORMS.items()
    }


def encodings(tokenizer: Any) -> dict[str, list[int]]:
    """Return `encode(form)` without special tokens for the twelve forms of yes and no."""
    forms = [form for answer in FORMS for form in (*FORMS[answer], *CAPITALS[answer])]
    return {form: encode(tokenizer, form) for form in forms}


def encode(tokenizer: Any, text: str) -> list[int]:
    """Return the ids of `text`, no special tokens added."""
    return [int(item) for item in tokenizer.encode(text, add_special_tokens=False)]


def single(tokenizer: Any) -> TokenSets:
    """Return the ids of the four forms that `encode` to exactly one token (Listing 1)."""
    return {
        answer: sorted({ids[0] for form in forms if len(ids := encode(tokenizer, form)) == 1})
        for answer, forms in FORMS.items()
    }


def scan(tokenizer: Any) -> TokenSets:
    """Return every ordinary piece whose surface, trimmed and casefolded, is yes or no.

    Trimmed: white space, punctuation and symbols at the ends. Special tokens are left out.
    """
    byte_level, special = is_byte_level(tokenizer), set(tokenizer.all_special_ids)
    found: dict[str, list[int]] = {"yes": [], "no": []}
    for piece, token_id in tokenizer.get_vocab().items():
        word = bare_word(surface(piece, byte_level))
        if word in found and token_id not in special:
            found[word].append(token_id)
    return {answer: sorted(ids) for answer, ids in found.items()}


def in_context(template: Template, tokenizer: Any, folder: Path) -> TokenSets:
    """Return the first ids that yes, Yes, no and No take after the rendered prompt.

    With and without a joining space under a `clean` boundary. A form that swallows the prompt's last id
    is continued, id for id, by its bare piece: that is what stands here for it. Under `merges` (a prompt
    that ends in a space) all of them are bare pieces.

    Raises:
        AuditError: the boundary is not as declared, or yes and no share a first id.
    """
    prompt = render(template, PROBE_QUESTION, tokenizer, folder)
    swallowing = swallowing_forms(prompt, tokenizer)
    check_boundary(template, swallowing)
    entries, before = tokenizer.get_vocab(), len(encode(tokenizer, prompt))
    sets: TokenSets = {}
    for answer, forms in FORMS.items():
        if template.answer_boundary == CLEAN:
            bare = [form for form in forms if form in swallowing]
            ids = {encode(tokenizer, prompt + form)[before] for form in forms if form not in swallowing}
        else:
            bare, ids = [form for form in forms if not form.startswith(" ")], set()
        sets[answer] = sorted(ids | {entries[form] for form in bare if form in entries})
    check_disjoint(sets, f"template {template.name}: the ids after the prompt")
    return sets


def swallowing_forms(prompt: str, tokenizer: Any) -> list[str]:
    """Return the forms that change the prompt's own ids when they are appended to it."""
    before = encode(tokenizer, prompt)
    return [
        form
        for forms in FORMS.values()
        for form in forms
        if (ids := encode(tokenizer, prompt + form))[: len(before)] != before or len(ids) == len(before)
    ]


def check_boundary(template: Template, swallowing: list[str]) -> None:
    """Refuse a template whose prompt meets the answer otherwise than it declares.

    Clean: every form with a joining space leaves the prompt's ids alone, and so does some glued form. A
    few glued forms may not (Qwen has a piece `:no`); they are logged.
    """
    glued = [form for forms in FORMS.values() for form in forms if not form.startswith(" ")]
    clean = not any(form.startswith(" ") for form in swallowing) and set(swallowing) != set(glued)
    if template.answer_boundary == CLEAN and not clean:
        raise AuditError(
            f"template {template.name}: answer_boundary is declared clean, but appending {swallowing[0]!r} "
            f"changes the prompt's own ids; declare merges or end the prompt without a space."
        )
    if template.answer_boundary != CLEAN and clean:
        raise AuditError(
            f"template {template.name}: answer_boundary is declared {template.answer_boundary}, but answers "
            f"extend the prompt's ids; declare {CLEAN}."
        )
    if clean and swallowing:
        LOGGER.warning("template %s: %s, glued to the prompt, joins its last id", template.name, swallowing)


def check_disjoint(sets: TokenSets, what: str) -> None:
    """Refuse sets of which one is empty or which share an id."""
    shared = sorted(set(sets["yes"]) & set(sets["no"]))
    if shared:
        raise AuditError(f"{what} gives yes and no the same ids {shared}; no logit can tell them apart.")
    for answer, ids in sets.items():
        if not ids:
            raise AuditError(f"{what} finds no token for {answer}.")


def mentioned_ids(token_map: Mapping[str, Any]) -> list[int]:
    """Return every id in a token map, sorted."""
    ids = {item for forms in token_map["vocabulary"].values() for item in forms.values() if item is not None}
    ids |= {item for encoded in token_map["encode"].values() for item in encoded}
    rules = [token_map["single"], token_map["scan"], *token_map["in_context"].values()]
    return sorted(ids | {item for sets in rules for answer in sets.values() for item in answer})


def pieces(tokenizer: Any, ids: list[int]) -> dict[str, str]:
    """Return the vocabulary piece of each id, keyed by the id as text."""
    return {str(token_id): tokenizer.convert_ids_to_tokens(token_id) for token_id in ids}
