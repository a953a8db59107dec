"""Checks of releases, label sets, pictures, and questions of one's own."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from readout_audit.config.checks.known import DATASETS, Config, Known, unknown
from readout_audit.config.plan import Plan

SPLITS = ("random", "popular", "adversarial")
"""The splits that POPE's samplers draw."""


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
