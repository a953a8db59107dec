"""Checks of where answers come from: folders, records made elsewhere, and the authors' own files."""

import os
from collections.abc import Iterator
from pathlib import Path

from readout_audit.config.checks.known import DATASETS, Config, Known, unknown
from readout_audit.config.given import missing_files, unanswered
from readout_audit.config.plan import Plan

DIAGNOSED_READOUT = "legacy_8tok"
"""The readout whose set maxima the authors' diagnostic file holds."""


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
        plan = Plan(config)
        missing = missing_files(plan)
        if missing:
            yield (
                f"records_folder is {folder!r}, where {missing[0].relative_to(folder)} is missing (files missing in "
                f"all: {len(missing)}); add them, or ask for fewer datasets, models, precisions or templates."
            )
            return
        yield from unanswered(plan)
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
