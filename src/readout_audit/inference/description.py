"""The description that travels with a record file: what was asked, of what, and by which ids it can be read."""

import platform
from importlib.metadata import version
from typing import Any

from readout_audit.inference.images import HOW_READ
from readout_audit.inference.settings import Settings
from readout_audit.models.preflight import Preflight

_LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "numpy", "pillow")

SCHEMA = 1
"""Version of the record file's layout."""


def library_versions(settings: Settings) -> dict[str, str]:
    """Return the versions of what can change a logit."""
    names = [*_LIBRARIES]
    if settings.value["precision"] in ("int8", "nf4"):
        names.append("bitsandbytes")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def token_sets(token_map: dict[str, Any], reference: dict[str, Any], template: str) -> dict[str, Any]:
    """Return the ids that readouts may use, by rule.

    `legacy` holds the reference model's ids of the eight forms, copied to this model as the published
    scripts did; the other rules are this model's own.
    """
    return {
        "legacy": {"model": reference["model"], **reference["vocabulary"]},
        "single": token_map["single"],
        "scan": token_map["scan"],
        "in_context": token_map["in_context"][template],
    }


def candidate_ids(sets: dict[str, Any], rows: int) -> tuple[list[int], list[int]]:
    """Return the ids whose logits are kept, sorted, and those of them left out.

    Args:
        sets: what `token_sets` returned.
        rows: rows of the output head; ids beyond it have no logit (a reference model's ids may be).
    """
    wanted = {
        int(token_id)
        for answer in ("yes", "no")
        for token_id in (
            *(item for item in sets["legacy"][answer].values() if item is not None),
            *(item for rule in ("single", "scan", "in_context") for item in sets[rule][answer]),
        )
    }
    return sorted(i for i in wanted if i < rows), sorted(i for i in wanted if i >= rows)


def model_facts(
    preflight: Preflight,
    versions: dict[str, str],
    eos_ids: frozenset[int],
    special_tokens: list[str],
    candidate_pieces: dict[str, str | None],
) -> dict[str, Any]:
    """Return what only a loaded model can tell, for the record file's description."""
    return {
        # What this vocabulary has at the reference model's ids, too; null where it has nothing.
        "candidate_pieces": candidate_pieces,
        "parameter_dtypes": preflight.parameter_dtypes,
        "first_input_ids": preflight.first_input_ids,
        "image_processing": preflight.processing,
        "probe": {
            "prompt": preflight.prompt,
            "n_image_tokens": preflight.n_image_tokens,
            "pixels_sha256": preflight.pixels_sha256,
        },
        "decoding": {"rule": "argmax of raw logits, lowest id on a tie", "end_ids": sorted(eos_ids)},
        "special_tokens": sorted(set(special_tokens)),
        "versions": versions,
    }


def describe(
    settings: Settings,
    revision: str,
    token_map: dict[str, Any],
    sets: dict[str, Any],
    candidates: list[int],
    without_logit: list[int],
    facts: dict[str, Any],
) -> dict[str, Any]:
    """Return the record file's metadata, stable from run to run.

    Args:
        settings: how it was asked.
        revision: of the model.
        token_map: of the model.
        sets: what `token_sets` returned.
        candidates: ids whose logits were kept.
        without_logit: ids of the sets that are beyond the output head.
        facts: what `model_facts` returned.
    """
    source = "repository" if settings.value["repository"] else "folder"
    template = settings.template.name
    return {
        "schema": SCHEMA,
        "model": settings.value["model"],
        source: settings.value[source],
        "revision": revision,
        "adapter": settings.value["adapter"],
        "settings_id": settings.settings_id,
        "settings": settings.value,
        "candidate_ids": candidates,
        "ids_without_logit": without_logit,
        "token_sets": sets,
        "reference_model": sets["legacy"]["model"],
        "token_map": {**token_map, "in_context": {template: token_map["in_context"][template]}},
        "logits_dtype": "as computed by the model, stored as float32",
        "image_reading": HOW_READ,
        **facts,
    }
