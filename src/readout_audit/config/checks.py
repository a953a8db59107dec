"""What a schema cannot say: that names are known, that they fit together, and that folders are there.

Each check yields one sentence per fault; `load_plan` reports the first. They run while the workflow is
parsed, because Snakemake calls a file that exists up to date even when no rule could make it any more.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from readout_audit.config.plan import Plan, missing_records
from readout_audit.config.schema import closest

Config = Mapping[str, Any]


@dataclass(frozen=True)
class Known:
    """The names that the package's registries know.

    `order_bound` are the tables and figures that need the order in which questions were asked,
    `signal_bound` those that need signals;
    `counted_models` the models whose printed scores the project holds, `published_models` those whose
    decisions were published.
    """

    adapters: frozenset[str]
    engines: frozenset[str]
    readouts: frozenset[str]
    tables: frozenset[str]
    figures: frozenset[str]
    order_bound: frozenset[str]
    signal_bound: frozenset[str]
    counted_models: frozenset[str]
    published_models: frozenset[str]


def unknown(key: str, names: Iterable[str], known: Iterable[str], where: str) -> Iterator[str]:
    """Yield a sentence for every name that is not known."""
    choices = sorted(known)
    for name in names:
        if name not in choices:
            listed = ", ".join(choices) if len(choices) <= 12 else f"{len(choices)} names in {where}"
            yield f"{key} names {name!r}, which {where} does not have{closest(name, choices)}; known are {listed}."


def check_names(config: Config, known: Known) -> Iterator[str]:
    """Every name in the lists of a run is defined somewhere."""
    yield from unknown("models", config["models"], config["known_models"], "models.yaml")
    yield from unknown("reference_model", [config["reference_model"]], config["known_models"], "models.yaml")
    yield from unknown("datasets", config["datasets"], config["known_datasets"], "datasets.yaml")
    yield from unknown("readouts", config["readouts"], known.readouts, "the readout registry")
    yield from unknown("tables", config["tables"], known.tables, "the table registry")
    yield from unknown("figures", config["figures"], known.figures, "the figure registry")
    yield from unknown(
        "inference.engine", [config["inference"]["engine"]], known.engines, "the engine registry"
    )
    yield from unknown("gap_pair", config["gap_pair"], config["readouts"], "this run's readouts")


def check_cells(config: Config, known: Known) -> Iterator[str]:
    """Extra cells are well formed and no cell is named twice."""
    precisions = ("fp32", "bf16", "fp16", "int8", "nf4")
    crossed = {
        f"{model}/{precision}/{template}"
        for model in config["models"]
        for precision in config["precisions"]
        for template in config["templates"]
    }
    for text in config["extra_cells"]:
        parts = text.split("/")
        if len(parts) != 3 or not all(parts):
            yield f"extra_cells has {text!r}, which must read model/precision/template, such as llava-1.5-7b/nf4/paper."
            continue
        yield from unknown("extra_cells", parts[:1], config["known_models"], "models.yaml")
        if parts[1] not in precisions:
            yield f"extra_cells has {text!r}: {parts[1]!r} is no precision; choose one of {', '.join(precisions)}."
        if text in crossed:
            yield f"extra_cells has {text!r}, which models, precisions and templates already give; remove it."


def check_splits(config: Config, known: Known) -> Iterator[str]:
    """Every release has every split of the run."""
    for dataset in config["datasets"]:
        has = config["known_datasets"][dataset]["splits"]
        for split in config["splits"]:
            if split not in has:
                yield (
                    f"splits names {split!r}, which dataset {dataset} does not have{closest(split, has)}; "
                    f"it has {', '.join(has)}."
                )


def check_templates(config: Config, known: Known) -> Iterator[str]:
    """Every (model, template) that is asked has a prompt."""
    for model, _, template in Plan(config).asked:
        prompts = config["known_templates"].get(model)
        if prompts is None:
            yield f"model {model} has no template in templates.yaml; add one under known_templates.{model}."
        elif template not in prompts:
            yield (
                f"templates names {template!r}, which model {model} does not have{closest(template, prompts)}; "
                f"it has {', '.join(prompts)}."
            )


def check_prompts(config: Config, known: Known) -> Iterator[str]:
    """A prompt has its question once, and comes from a text or from the chat template, not both."""
    for model, prompts in config["known_templates"].items():
        for name, prompt in prompts.items():
            key = f"known_templates.{model}.{name}"
            if prompt["chat"] != (prompt["text"] is None):
                yield f"{key} must have either a text or chat: true, not both and not neither."
            elif prompt["text"] is not None and prompt["text"].count("{question}") != 1:
                yield f"{key}.text must hold {{question}} exactly once."
            elif prompt["text"] is not None and prompt["suffix"]:
                yield f"{key}.suffix belongs to chat templates; write it into the text instead."


def check_models(config: Config, known: Known) -> Iterator[str]:
    """A model's weights come from one place, its family is known, and a local folder is there."""
    for name, entry in config["known_models"].items():
        key = f"known_models.{name}"
        yield from unknown(f"{key}.adapter", [entry["adapter"]], known.adapters, "the model registry")
        if sum(bool(entry.get(place)) for place in ("repository", "folder", "random")) != 1:
            yield f"{key} must have one of a repository, a folder or random, and only one."
        elif entry["folder"] is not None and entry["revision"] is not None:
            yield f"{key}.revision belongs to a repository; a folder is identified by its content, so remove it."
    if config["records_from"] == "inference":
        for name in Plan(config).models:
            folder = config["known_models"][name]["folder"]
            if folder is not None and not (Path(folder) / "config.json").is_file():
                yield f"known_models.{name}.folder is {folder!r}, where there is no config.json; name a checkpoint folder."


def check_folders(config: Config, known: Known) -> Iterator[str]:
    """Folders that the run names are there and can be read."""
    for key in ("mirror", "coco_val2014", "records_folder"):
        folder = config[key]
        if folder is None:
            continue
        if not Path(folder).is_dir():
            yield f"{key} is {folder!r}, which is not a folder; correct the path or set it to null."
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
                f"records_folder {folder!r} lacks {missing[0].relative_to(folder)} ({len(missing)} files missing); "
                f"add them or name fewer datasets, models, precisions or templates."
            )
    if source in ("published", "counts"):
        yield from _check_printed(config, known, source)


def _check_printed(config: Config, known: Known, source: str) -> Iterator[str]:
    """Published and printed answers exist for few cells and few readouts."""
    if config["datasets"] != ["coco-2023-10"]:
        yield f"records_from {source!r} holds answers to coco-2023-10 only; set datasets: [coco-2023-10]."
    models = known.counted_models if source == "counts" else known.published_models
    yield from unknown("models", config["models"], models, f"records_from {source!r}")
    if source == "counts":
        for key in ("tables", "figures"):
            for name in sorted(set(config[key]) & known.order_bound):
                yield f"{key} names {name!r}, which needs the order of the questions; printed counts have none, so remove it."


def check_reference(config: Config, known: Known) -> Iterator[str]:
    """The model whose ids are copied is one of the run's."""
    if config["records_from"] == "inference":
        asked = [model for model, _, _ in Plan(config).asked]
        if config["reference_model"] not in asked:
            yield f"reference_model is {config['reference_model']!r}, which this run does not ask; add it to models."


def check_signals(config: Config, known: Known) -> Iterator[str]:
    """Signals are measured of models that are asked, with CLIPs that are known and there."""
    signals = config["signals"]
    yield from unknown("signals.models", signals["models"], config["known_models"], "models.yaml")
    if not signals["compute"] or config["records_from"] != "inference":
        return
    asked = [model for model, _, _ in Plan(config).asked]
    yield from unknown("signals.models", signals["models"], asked, "this run")
    for key in ("clip_b32", "clip_l14_336"):
        name = signals[key]
        if name is None:
            continue
        yield from unknown(f"signals.{key}", [name], config["known_clips"], "models.yaml")
        folder = config["known_clips"].get(name, {}).get("folder")
        if folder is not None and not (Path(folder) / "config.json").is_file():
            yield f"known_clips.{name}.folder is {folder!r}, where there is no config.json; name a checkpoint folder."
    if signals["text_prompt"].count("{noun}") != 1:
        yield "signals.text_prompt must hold {noun} exactly once."


def check_measured(config: Config, known: Known) -> Iterator[str]:
    """Tables and figures of corrections and the probe need signals."""
    if Plan(config).measured_cells:
        return
    for key in ("tables", "figures"):
        for name in config[key]:
            if name in known.signal_bound:
                yield f"{key} names {name!r}, which needs signals, and this run measures none; set signals.compute or remove it."


def check_labels(config: Config, known: Known) -> Iterator[str]:
    """RePOPE re-annotates COCO's POPE only."""
    if "repope" in config["labels"]:
        for dataset in config["datasets"]:
            if (
                config["known_datasets"][dataset]["image_namespace"]
                != config["known_labels"]["repope"]["image_namespace"]
            ):
                yield f"labels names 'repope', which re-annotates COCO images only, not those of {dataset}; remove one."


CHECKS: tuple[Callable[[Config, Known], Iterator[str]], ...] = (
    check_names,
    check_cells,
    check_splits,
    check_templates,
    check_prompts,
    check_models,
    check_folders,
    check_source,
    check_reference,
    check_labels,
    check_signals,
    check_measured,
)
"""In this order: later checks rely on the names that earlier ones have found to be known."""
