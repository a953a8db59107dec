"""What a schema cannot say: that names are known, that they fit together, and that folders are there.

Each check yields one sentence per fault; `load_plan` reports the first. They run while the workflow is
parsed, because Snakemake calls a file that exists up to date even when no rule could make it any more.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readout_audit.api.settings import ApiSettings
from readout_audit.config.plan import SERVED, Plan, missing_records
from readout_audit.config.schema import closest
from readout_audit.errors import AuditError

Config = Mapping[str, Any]


SPLITS = ("random", "popular", "adversarial")
"""The splits that POPE's samplers draw."""

MODELS = "config/models.yaml"
DATASETS = "config/datasets.yaml"
TEMPLATES = "config/templates.yaml"

TAKEN = ("benchmarks", "diagnosed", "fetched", "random-models", "retrained")
"""Folders of results/ and logs/ that belong to no run."""

DIAGNOSED_READOUT = "legacy_8tok"
"""The readout whose set maxima the authors' diagnostic file holds."""

PRECISIONS = ("fp32", "bf16", "fp16", "int8", "nf4")

ADAPTER_OF_SERVERS = "openai"

_LISTED = 12
"""So many names are read out; of more, the sentence says where they stand."""


@dataclass(frozen=True)
class Known:
    """The names that the package's registries know.

    `order_bound` are the tables and figures that need the order in which questions were asked,
    `signal_bound` those that need signals -> the kinds of file they read;
    `served_by` kinds of file that the authors' own files give, too -> "answers" (predictions) or "diagnostic";
    `corrections` those that a file may hold the answers of;
    `release_bound` the tables and figures that compare two releases;
    `counted_models` and `counted_readouts` the models and readouts whose printed scores the project holds,
    `published_readouts` those that the published decisions are of.
    """

    adapters: frozenset[str]
    engines: frozenset[str]
    readouts: frozenset[str]
    tables: frozenset[str]
    figures: frozenset[str]
    order_bound: frozenset[str]
    signal_bound: Mapping[str, frozenset[str]]
    served_by: Mapping[str, str]
    corrections: frozenset[str]
    release_bound: frozenset[str]
    counted_models: frozenset[str]
    counted_readouts: frozenset[str]
    published_readouts: frozenset[str]


def unknown(
    key: str, names: Iterable[str], known: Iterable[str], which: str, listing: str = "", remedy: str = ""
) -> Iterator[str]:
    """Yield a sentence for every name that is not known.

    Args:
        key: the key that holds the names.
        names: what it holds.
        known: what it may hold.
        which: what is wrong with another name, after "which", such as "is not a readout".
        listing: where the known names are listed, for when they are many.
        remedy: what else can be done, such as " or add it to models".
    """
    choices = sorted(known)
    few = not listing or len(choices) <= _LISTED
    for name in names:
        if name not in choices:
            choose = (
                f"choose from {', '.join(choices)}" if few else f"{listing} lists the {len(choices)} names"
            )
            yield f"{key} names {name!r}, which {which}{closest(name, choices)}; " + (
                f"{choose}{remedy}." if choices else "there is none to choose from: define one or remove it."
            )


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


def check_releases(config: Config, known: Known) -> Iterator[str]:
    """Every file of a release can be made or fetched, and its pictures are defined."""
    for name, entry in config["known_datasets"].items():
        key = f"known_datasets.{name}"
        for split, file in entry["splits"].items():
            if "path" not in file and not ("url" in file and "mirror" in file):
                yield (
                    f"{key}.splits.{split} says neither where its file is fetched nor where it is made; "
                    f"give it url and mirror, or path."
                )
        undefined = "known_images does not define"
        yield from unknown(f"{key}.images", [entry["images"]], config["known_images"], undefined, DATASETS)
    for name, images in config["known_images"].items():
        if "path" not in images and not {"url", "mirror", "folder_key", "fetched"} <= images.keys():
            yield f"known_images.{name} must have url, mirror, folder_key and fetched, or path; add what is missing."
        elif ("{run}" in images.get("path", "")) != ("pictures" in images):
            yield (
                f"known_images.{name} must have pictures, and a path with {{run}}, or neither; that many pictures are "
                f"drawn into the path."
            )


def check_own_files(config: Config, known: Known) -> Iterator[str]:
    """Question files, annotations and pictures of one's own are there, where this run asks about them."""
    if config["records_from"] != "inference":
        return
    for name in config["datasets"]:
        entry, key = config["known_datasets"][name], f"known_datasets.{name}"
        files = {f"splits.{split}.path": entry["splits"][split].get("path", "") for split in config["splits"]}
        if "sampled" in entry:
            yield from _check_sampled(name, files)
            files = {"sampled.annotations": entry["sampled"]["annotations"]}
        for where, path in files.items():
            if path and "{run}" not in path and not Path(path).is_file():
                yield f"{key}.{where} is {path!r}, which is not a file; correct the path."
        folder = config["known_images"][entry["images"]].get("path", "")
        if folder and "{run}" not in folder and not Path(folder).is_dir():
            yield f"known_images.{entry['images']}.path is {folder!r}, which is not a folder; correct the path."


def _check_sampled(name: str, files: Mapping[str, str]) -> Iterator[str]:
    """The files of drawn questions lie where they are written, under the splits that are drawn."""
    for where, path in files.items():
        split = where.split(".")[1]
        wanted = f"results/{{run}}/sampled/{name}/{split}.json"
        if split not in SPLITS:
            yield (
                f"known_datasets.{name}.splits names {split!r}, but what is sampled has {', '.join(SPLITS)}; "
                f"choose from these."
            )
        elif path != wanted:
            yield f"known_datasets.{name}.{where} is {path!r}, but what is sampled lies at {wanted}; write that."


def check_pictures(config: Config, known: Known) -> Iterator[str]:
    """Pictures that have no address are in a mirror."""
    if config["records_from"] != "inference" or config["mirror"] is not None:
        return
    for dataset in config["datasets"]:
        name = config["known_datasets"][dataset]["images"]
        images = config["known_images"][name]
        own = config[images["folder_key"]] if images.get("folder_key") else None
        if "path" not in images and images["url"] is None and own is None:
            yield (
                f"mirror is null, but the pictures of dataset {dataset} cannot be downloaded one by one; "
                f"put them into {Path(images['mirror']).parent}/ of a mirror folder and set mirror to that folder."
            )


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


def check_models(config: Config, known: Known) -> Iterator[str]:
    """Weights come from one place, a model's family is known, and a local folder is there."""
    checkpoints = [
        (f"{part}.{name}", entry)
        for part in ("known_models", "known_clips")
        for name, entry in config[part].items()
    ]
    for key, entry in checkpoints:
        if "adapter" in entry:
            adapters = {ADAPTER_OF_SERVERS} if entry.get("server") else known.adapters
            yield from unknown(f"{key}.adapter", [entry["adapter"]], adapters, "is not an adapter")
        if sum(bool(entry.get(place)) for place in ("repository", "folder", "random", "server")) != 1:
            kinds = "repository, folder, random and server" if "adapter" in entry else "repository and folder"
            yield f"{key} must have exactly one of {kinds}; set the others to null or leave them out."
        elif entry["folder"] is not None and entry["revision"] is not None:
            yield f"{key}.revision belongs to a repository; a folder is identified by its content, so remove it."
        elif entry.get("server") and entry["revision"] is not None:
            yield f"{key}.revision belongs to a repository; a served model's own stands under server, so move it."
    if config["records_from"] == "inference":
        for name in Plan(config).local_models:
            folder = config["known_models"][name]["folder"]
            yield from _check_checkpoint(f"known_models.{name}", folder)


def _check_checkpoint(key: str, folder: str | None) -> Iterator[str]:
    """A checkpoint's own folder holds one."""
    if folder is not None and not (Path(folder) / "config.json").is_file():
        yield f"{key}.folder is {folder!r}, where there is no config.json; name a folder that holds a checkpoint."


def check_servers(config: Config, known: Known) -> Iterator[str]:
    """What is asked of a server can be asked: address, request fields and prompts are ones that it takes."""
    plan = Plan(config)
    if config["records_from"] != "inference":
        return
    for model, precision, template in plan.asked:
        if plan.is_served(model):
            try:
                ApiSettings.parse(plan.settings(model, precision, template))
            except AuditError as error:
                yield f"known_models.{model}: {str(error).rstrip('.')}."


def check_folders(config: Config, known: Known) -> Iterator[str]:
    """Folders that the run names are there and can be read."""
    for key in ("mirror", "coco_val2014", "records_folder"):
        folder = config[key]
        if folder is None:
            continue
        if not Path(folder).is_dir():
            home = " (~ is not replaced by your home folder here)" if folder.startswith("~") else ""
            yield f"{key} is {folder!r}, which is not a folder{home}; correct the path or set it to null."
        elif not os.access(folder, os.R_OK | os.X_OK):
            yield f"{key} is {folder!r}, which you may not read; change its permissions."


def check_source(config: Config, known: Known) -> Iterator[str]:
    """The source of the records fits the rest."""
    source, folder = config["records_from"], config["records_folder"]
    if (source == "files") != (folder is not None):
        yield (
            "records_from is 'files', but records_folder is null; name the folder that holds records/ and questions/."
            if source == "files"
            else f"records_folder is set, but records_from is {source!r}; set it to null or use records_from: files."
        )
        return
    if source == "files":
        missing = missing_records(Plan(config))
        if missing:
            yield (
                f"records_folder is {folder!r}, where {missing[0].relative_to(folder)} is missing (files missing in "
                f"all: {len(missing)}); add them, or ask for fewer datasets, models, precisions or templates."
            )
    if source in ("published", "counts"):
        yield from _check_printed(config, known, source)


def _check_printed(config: Config, known: Known, source: str) -> Iterator[str]:
    """Published and printed answers exist for few cells and few readouts."""
    if config["datasets"] != ["coco-2023-10"]:
        yield f"records_from: {source} has answers to coco-2023-10 only; set datasets: [coco-2023-10]."
    yield from _check_counted(config, known) if source == "counts" else _check_published(config)
    readouts = known.counted_readouts if source == "counts" else known.published_readouts
    yield from unknown("readouts", config["readouts"], readouts, f"records_from: {source} has no answers of")
    if source == "counts":
        for key in ("tables", "figures"):
            for name in sorted(set(config[key]) & known.order_bound):
                yield f"{key} names {name!r}, which needs the order of the questions, and printed counts have none; remove it."


def _check_counted(config: Config, known: Known) -> Iterator[str]:
    """Printed counts are of single cells."""
    for model, precision, template in Plan(config).asked:
        yield from unknown("models", [model], known.counted_models, "records_from: counts has no answers of")
        if (precision, template) != ("nf4", "authors"):
            yield (
                f"precisions, templates or extra_cells ask for {model}/{precision}/{template}, but records_from: "
                f"counts has {model}/nf4/authors only; ask for that alone."
            )


def _check_published(config: Config) -> Iterator[str]:
    """The authors published decisions of few cells, some on one split alone."""
    by_cell = {
        (entry["model"], entry["precision"], entry["template"]): entry
        for entry in config["known_published"].values()
    }
    models = {model for model, _, _ in by_cell}
    for cell in Plan(config).asked:
        yield from unknown("models", [cell[0]], models, "records_from: published has no answers of")
        if cell not in by_cell:
            held = [other for other in by_cell if other[0] == cell[0]]
            alone = "; ask for that alone" if len(held) == 1 else "; ask for those alone"
            yield (
                f"precisions, templates or extra_cells ask for {'/'.join(cell)}, but records_from: published has "
                f"{' and '.join('/'.join(other) for other in held)} only{alone}."
            )
            continue
        has = by_cell[cell]["splits"]
        if not set(config["splits"]) & set(has):
            yield from unknown("splits", config["splits"], has, f"{cell[0]}'s published answers do not have")


def check_predictions(config: Config, known: Known) -> Iterator[str]:
    """The authors' further files are known and belong to the run's cells."""
    undefined = f"{DATASETS} does not define"
    yield from unknown("predictions", config["predictions"], config["known_predictions"], undefined, DATASETS)
    for name, entry in config["known_predictions"].items():
        key = f"known_predictions.{name}"
        if entry["correction"] is not None:
            yield from unknown(
                f"{key}.correction", [entry["correction"]], known.corrections, "is not a correction"
            )
        if (entry["split"] is None) != (entry["holds"] == "tokenizer"):
            yield f"{key}.split must name a split where questions were asked and be null for a tokenizer; correct it."
    if config["predictions"] and config["records_from"] != "published":
        yield (
            f"predictions names {config['predictions'][0]!r}, but records_from is {config['records_from']!r}; set "
            "predictions: [] or use records_from: published."
        )
    asked = set(Plan(config).asked)
    for name in config["predictions"]:
        entry = config["known_predictions"][name]
        cell = (entry["model"], entry["precision"], entry["template"])
        if entry["holds"] != "tokenizer" and (cell not in asked or entry["split"] not in config["splits"]):
            yield (
                f"predictions names {name!r}, which is about {'/'.join(cell)} on {entry['split']}; ask for that cell "
                f"and split, or remove {name}."
            )


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


def check_signals(config: Config, known: Known) -> Iterator[str]:
    """Signals are measured of models that are asked, with CLIPs that are known and there."""
    signals = config["signals"]
    undefined = f"{MODELS} does not define"
    yield from unknown("signals.models", signals["models"], config["known_models"], undefined, MODELS)
    for key in ("authors_window", "entropy_layers"):
        first, end = signals[key]
        if first >= end:
            yield f"signals.{key} is [{first}, {end}], but must end after it starts; write the smaller number first."
    if not signals["compute"] or config["records_from"] != "inference":
        return
    asked = [model for model, _, _ in Plan(config).asked]
    yield from unknown(
        "signals.models", signals["models"], asked, "this run does not ask", "", " or add it to models"
    )
    for name in signals["models"]:
        if Plan(config).is_served(name):
            yield f"signals.models names {name!r}, whose inside a server does not show; remove it."
    for key in ("clip_b32", "clip_l14_336"):
        name = signals[key]
        if name is None:
            continue
        yield from unknown(f"signals.{key}", [name], config["known_clips"], undefined, MODELS)
        if name in config["known_clips"]:
            yield from _check_checkpoint(f"known_clips.{name}", config["known_clips"][name]["folder"])
    if signals["text_prompt"].count("{noun}") != 1:
        yield "signals.text_prompt must hold {noun} exactly once; write it where the object's name goes."


def check_measured(config: Config, known: Known) -> Iterator[str]:
    """Tables and figures of corrections and the probe need signals, or the authors' files in their place."""
    plan = Plan(config)
    if plan.measured_cells:
        return
    source = config["records_from"]
    served = {entry["holds"] for entry in plan.predictions.values()}
    served |= {"diagnostic"} if plan.diagnosed_cells else set()
    lacks = " (the mirror lacks files that predictions names)" if plan.left_out else ""
    remedy = (
        "set signals.compute: true and name models under signals.models, or remove it"
        if source in ("inference", "files")
        else f"records_from: {source} has none, so remove it{lacks}"
    )
    for key in ("tables", "figures"):
        for name in config[key]:
            kinds = known.signal_bound.get(name, frozenset())
            if any(known.served_by.get(kind) not in served for kind in kinds):
                yield f"{key} names {name!r}, which needs signals (a second pass over the models); {remedy}."


def check_diagnostic(config: Config, known: Known) -> Iterator[str]:
    """A published diagnostic file is there for a model of the run, and about one of its splits."""
    if not config["diagnostic"]:
        return
    published = config["known_published"]
    held = {name: entry["diagnostic"]["split"] for name, entry in published.items() if "diagnostic" in entry}
    asked = [name for name in held if name in config["models"]]
    if config["records_from"] != "published":
        yield (
            f"diagnostic is true, but records_from is {config['records_from']!r}; set diagnostic to false, "
            f"or records_from to published."
        )
    elif not asked:
        yield (
            f"diagnostic is true, but no model of the run has a diagnostic file; set it to false, or add one of "
            f"{', '.join(held)} to models."
        )
    elif DIAGNOSED_READOUT not in config["readouts"]:
        yield f"diagnostic is true, but readouts lacks {DIAGNOSED_READOUT}, whose logits the file holds; add it."
    for name in asked:
        if held[name] not in config["splits"]:
            yield (
                f"diagnostic is true, but splits lacks {held[name]}, which the diagnostic file of {name} is about; "
                f"add it."
            )


def check_release_pair(config: Config, known: Known) -> Iterator[str]:
    """A table of what differs between releases needs two that ask about the same pictures."""
    if Plan(config).release_pairs:
        return
    for key in ("tables", "figures"):
        for name in config[key]:
            if name in known.release_bound:
                yield (
                    f"{key} names {name!r}, which compares two releases of the same questions; name two in datasets, "
                    f"such as coco-2023-10 and coco-2023-11, or remove it."
                )


def check_labels(config: Config, known: Known) -> Iterator[str]:
    """RePOPE re-annotates COCO's POPE only, and its files are fetched only where questions are."""
    if "repope" in config["labels"]:
        if config["records_from"] in ("files", "counts"):
            yield f"labels names 'repope', which records_from: {config['records_from']} cannot use; remove repope from labels."
        for dataset in config["datasets"]:
            if (
                config["known_datasets"][dataset]["image_namespace"]
                != config["known_labels"]["repope"]["image_namespace"]
            ):
                yield (
                    f"labels names 'repope', which has labels for POPE's own COCO questions and none for {dataset}; "
                    f"remove repope from labels, or {dataset} from datasets."
                )


CHECKS: tuple[Callable[[Config, Known], Iterator[str]], ...] = (
    check_names,
    check_cells,
    check_releases,
    check_splits,
    check_templates,
    check_prompts,
    check_models,
    check_servers,
    check_folders,
    check_own_files,
    check_pictures,
    check_source,
    check_predictions,
    check_reference,
    check_labels,
    check_signals,
    check_diagnostic,
    check_measured,
    check_release_pair,
)
"""In this order: later checks rely on the names that earlier ones have found to be known."""
