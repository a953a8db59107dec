"""Checks of what a run asks: its names, its cells, its splits, and the prompts of its models."""

import re
from collections.abc import Iterator

from readout_audit.config.checks.known import (
    DATASETS,
    MODELS,
    PRECISIONS,
    TEMPLATES,
    Config,
    Known,
    unknown,
)
from readout_audit.config.plan import SERVED, Plan

TAKEN = ("benchmarks", "diagnosed", "fetched", "random-models", "retrained")
"""Folders of results/ and logs/ that belong to no run."""


def check_names(config: Config, known: Known) -> Iterator[str]:
    """Every name in the lists of a run is defined somewhere."""
    undefined = f"{MODELS} does not define"
    yield from unknown("models", config["models"], config["known_models"], undefined, MODELS)
    reference = [config["reference_model"]]
    yield from unknown("reference_model", reference, config["known_models"], undefined, MODELS)
    undefined = f"{DATASETS} does not define"
    yield from unknown("datasets", config["datasets"], config["known_datasets"], undefined, DATASETS)
    further = [name for name in config["labels"] if name != "pope"]
    yield from unknown("labels", further, config["known_labels"], undefined, DATASETS)
    yield from unknown("readouts", config["readouts"], known.readouts, "is not a readout", "docs/readouts.md")
    for key, names in (("tables", known.tables), ("figures", known.figures)):
        yield from unknown(
            key, config[key], names, f"is not one of the {key}", f"src/readout_audit/{key}/registry.py"
        )
    yield from unknown("inference.engine", [config["inference"]["engine"]], known.engines, "is not an engine")
    yield from unknown(
        "gap_pair",
        config["gap_pair"],
        config["readouts"],
        "readouts does not list",
        "",
        " or add it to readouts",
    )
    if config["run"] in TAKEN:
        yield f"run is {config['run']!r}, a name that results/ uses for something else; choose another name."


def check_cells(config: Config, known: Known) -> Iterator[str]:
    """Extra cells are well formed and no cell is named twice."""
    plan = Plan({**config, "extra_cells": []})
    crossed = {"/".join(cell) for cell in plan.asked}
    for text in config["extra_cells"]:
        parts = text.split("/")
        if len(parts) != 3 or not all(parts):
            yield f"extra_cells has {text!r}, but must have model/precision/template, such as llava-1.5-7b/nf4/paper."
            continue
        yield from unknown(
            "extra_cells", parts[:1], config["known_models"], f"{MODELS} does not define", MODELS
        )
        precisions = (SERVED,) if plan.is_served(parts[0]) else PRECISIONS
        if parts[1] not in precisions:
            yield f"extra_cells has {text!r}, but {parts[1]!r} is no precision; choose from {', '.join(precisions)}."
        if text in crossed:
            yield f"extra_cells has {text!r}, which models, precisions and templates already give; remove it."


def check_splits(config: Config, known: Known) -> Iterator[str]:
    """Every release and label set has every split of the run, and some split has every subset."""
    sets = {f"dataset {name}": config["known_datasets"][name]["splits"] for name in config["datasets"]}
    for name in config["labels"]:
        if name != "pope":
            sets[f"label set {name}"] = config["known_labels"][name]["splits"]
    for owner, has in sets.items():
        yield from unknown("splits", config["splits"], has, f"{owner} does not have")
    asked = [
        config["known_datasets"][dataset]["splits"][split].get("rows")
        for dataset in config["datasets"]
        for split in config["splits"]
    ]
    for size in config["subsets"]:
        if None not in asked and size > max(asked):
            yield f"subsets has {size}, but the largest split has {max(asked)} questions; choose a smaller number."


def check_templates(config: Config, known: Known) -> Iterator[str]:
    """Every (model, template) that is asked has a prompt."""
    for model, _, template in Plan(config).asked:
        prompts = config["known_templates"].get(model)
        if prompts is None:
            yield f"model {model} has no template in {TEMPLATES}; add one under known_templates.{model}."
        else:
            key = "templates" if template in config["templates"] else "extra_cells"
            yield from unknown(
                key, [template], prompts, f"model {model} does not have", "", f" or add it to {TEMPLATES}"
            )


def check_prompts(config: Config, known: Known) -> Iterator[str]:
    """A prompt has its question once, and comes from a text or from the chat template, not both."""
    for model, prompts in config["known_templates"].items():
        for name, prompt in prompts.items():
            key = f"known_templates.{model}.{name}"
            if prompt["chat"] != (prompt["text"] is None):
                yield f"{key} must have either a text and chat: false, or chat: true and text: null; correct one of them."
            elif prompt["text"] is not None and prompt["text"].count("{question}") != 1:
                yield f"{key}.text must hold {{question}} exactly once; write it where the question goes."
            elif prompt["text"] is not None and prompt["suffix"]:
                yield f"{key}.suffix belongs to chat templates; write it into the text instead."
            for stray in re.findall(r"\{\w+\}", f"{prompt['text'] or ''}{prompt['suffix']}"):
                if stray != "{question}" or prompt["text"] is None:
                    yield f"{key} holds {stray}, which the model would read as it stands; remove it."


def check_reference(config: Config, known: Known) -> Iterator[str]:
    """The model whose ids are copied is one of the run's."""
    if config["records_from"] == "inference":
        plan = Plan(config)
        asked = list(dict.fromkeys(model for model, _, _ in plan.asked))
        local = [model for model in asked if not plan.is_served(model)]
        reference = config["reference_model"]
        if reference not in asked:
            yield (
                f"reference_model is {reference!r}, which this run does not ask; add it to models "
                f"or choose from {', '.join(asked)}."
            )
        elif plan.is_served(reference) and local:
            yield (
                f"reference_model is {reference!r}, whose token ids a server does not tell; "
                f"choose from {', '.join(local)}."
            )
