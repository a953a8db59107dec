"""A sample of one model-template pair, asked now, by the stages that a run asks with.

For `diagnose` before there are records. Questions, pictures, token maps and answers are made by the pipeline's own
stages, one after the other, under `results/diagnosed/`. Answers are kept where a run keeps them and under
the same fingerprint, so that the run that follows asks none of them again.
"""

import contextlib
import shlex
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from readout_audit.config.load import load_plan, merged
from readout_audit.config.plan import Cell
from readout_audit.config.preparation import known_names
from readout_audit.config.wiring import Wiring
from readout_audit.config.wiring.paths import FETCHED
from readout_audit.contracts import QUESTIONS
from readout_audit.errors import AuditError
from readout_audit.fetch.images import images_asked
from readout_audit.fetch.preflight import check_network, check_source
from readout_audit.fileio import read_table, write_table

FOLDER = "diagnosed"
"""Folder of results/ for what is made here; no run may have this name."""

DEFINITIONS = tuple(Path(f"config/{name}.yaml") for name in ("models", "templates", "datasets", "config"))


class Pair(NamedTuple):
    """What is asked: None takes what the run configuration says (precision: its first one)."""

    model: str
    template: str
    dataset: str
    precision: str | None = None
    device: str = "auto"
    reference: str | None = None


class Sampled(NamedTuple):
    """The records of a sample, and the model whose ids the legacy readouts copy there: none behind a server."""

    records: Path
    reference: str | None


def ask_sample(pair: Pair, runs: Sequence[Path], questions: int, seed: int) -> Sampled:
    """Ask a seeded sample of distinct questions and return where its records are.

    Works in the current folder, which must be the project's.

    Args:
        pair: what to ask, and how.
        runs: run configurations, read over config/config.yaml, the last one strongest.
        questions: how many distinct questions of the dataset to draw without replacement.
        seed: of the draw.

    Raises:
        AuditError: a name is unknown, a file cannot be had, or the model fails its checks.
    """
    plan = plan_of(pair, runs)
    cell = plan.cells[0]
    folder, names = Path("results", FOLDER, cell.path), SimpleNamespace(**cell._asdict())
    served = plan.is_served(cell.model)
    check_reachable(plan, [*missing_questions(plan, names), *([] if served else missing_model(plan, names))])
    asked = folder / "questions.parquet"
    write_table(asked, draw(question_table(plan, cell), questions, seed), QUESTIONS)
    if not served or plan.api_images(names):
        find_pictures(plan, names, asked, folder)
    records = folder / "records.parquet"
    if served:
        from readout_audit.stages import ask_api

        ask_api.main([*plan.api_words(names), "--questions", str(asked), "--output", str(records)])
        return Sampled(records, None)
    ask(plan, names, asked, records, folder)
    return Sampled(records, plan.reference)


def plan_of(pair: Pair, runs: Sequence[Path]) -> Wiring:
    """Return the checked plan of a run that asks this pair alone."""
    missing = [path for path in DEFINITIONS if not path.is_file()]
    if missing:
        raise AuditError(
            f"{missing[0]}: not there; call this in the project's folder, or name it with --root."
        )
    config = merged([*DEFINITIONS, *runs])
    splits = config["known_datasets"].get(pair.dataset, {}).get("splits", config["splits"])
    config |= {
        "records_from": "inference",
        "records_folder": None,
        "datasets": [pair.dataset],
        "splits": list(splits),
        "models": [pair.model],
        "precisions": [pair.precision or config["precisions"][0]],
        "templates": [pair.template],
        "extra_cells": [],
        "reference_model": pair.model,
        "labels": ["pope"],
        "subsets": [],
        "claims": False,
        "diagnostic": False,
        "predictions": [],
        "signals": {**config["signals"], "compute": False, "models": []},
        "inference": {**config["inference"], "device": pair.device, "shards": 1, "verify_sample": 0},
        "tables": [],
        "figures": [],
    }
    wanted = reference_of(pair, merged([*DEFINITIONS, *runs]))
    plan = load_plan(config, Path("workflow/schemas"), known_names())
    return Wiring({**plan.config, "run": FOLDER, "reference_model": wanted})


def reference_of(pair: Pair, config: dict[str, Any]) -> str:
    """Return whose ids the legacy readouts copy: the one asked for, the run's where its tokenizer is here, or the model.

    Raises:
        AuditError: the one asked for is not known, or its tokenizer is not here.
    """
    name = pair.reference or str(config["reference_model"])
    known = name in config["known_models"]
    if known and Path(Wiring(config).checkpoint(name), "tokenizer_config.json").is_file():
        return name
    if pair.reference is None:
        return pair.model
    raise AuditError(
        f"--reference {name}: "
        + ("its tokenizer is not here; ask it first" if known else "config/models.yaml does not define it")
        + ", or leave the option out."
    )


def question_table(plan: Wiring, cell: Cell) -> pa.Table:
    """Build the question table of the dataset and return it."""
    from readout_audit.stages import build_questions, fetch_file, make_demo_world, sample_questions

    names = SimpleNamespace(dataset=cell.dataset)
    if cell.dataset in plan.sampled_datasets:
        words = [*shlex.split(plan.sampling_arguments(names)), "--annotations", plan.annotations(names)]
        sample_questions.main([*words, "--folder", f"results/{FOLDER}/sampled/{cell.dataset}"])
    elif plan.release(cell.dataset)["generated"]:
        make_demo_world.main(["--output", f"results/{FOLDER}/world"])
    for path in missing_questions(plan, names):
        arguments = plan.fetch_arguments(SimpleNamespace(path=path))
        words = ["--lock", f"{FETCHED}/lock.json", "--output", f"{FETCHED}/{path}"]
        fetch_file.main([*shlex.split(arguments), *words])
    table = Path("results", FOLDER, "questions", f"{cell.dataset}.parquet")
    words = ["--dataset", cell.dataset, *shlex.split(plan.question_arguments(names))]
    words += ["--known", "config/datasets.yaml", "--output", str(table)]
    build_questions.main([*words, "--report", str(table.with_suffix(".json"))])
    return read_table(table, QUESTIONS, "the question table")


def draw(table: pa.Table, questions: int, seed: int) -> pa.Table:
    """Return `questions` rows that ask different things, in the table's order.

    Raises:
        AuditError: the dataset has fewer distinct questions.
    """
    uids = table["uid"].to_pylist()
    first: dict[str, int] = {}
    for row, uid in enumerate(uids):
        first.setdefault(uid, row)
    if not 0 < questions <= len(first):
        raise AuditError(
            f"{questions} questions were asked for; {table['dataset'][0]} has {len(first)} different ones."
        )
    rows = np.array(list(first.values()))
    chosen = np.random.default_rng(seed).choice(len(rows), size=questions, replace=False)
    return table.take(pa.array(rows[np.sort(chosen)]))


def missing_questions(plan: Wiring, names: SimpleNamespace) -> list[str]:
    """Return the question files that have to be fetched, by their paths under resources/fetched/."""
    fetched = [file for file in plan.question_files(names) if file.startswith(f"{FETCHED}/")]
    return [file.removeprefix(f"{FETCHED}/") for file in fetched if not Path(file).is_file()]


def missing_model(plan: Wiring, names: SimpleNamespace) -> list[str]:
    """Return the manifest of the checkpoint, by its path under resources/fetched/, if that has to be fetched."""
    entry, manifest = plan.model(names.model), f"models/{names.model}.json"
    here = entry.get("random") or entry["folder"] is not None or Path(FETCHED, manifest).is_file()
    return [] if here else [manifest]


def check_reachable(plan: Wiring, paths: Sequence[str]) -> None:
    """Look before a fetch whether it can succeed: its own attempts take minutes and end in a chain of errors.

    Args:
        plan: of the pair.
        paths: what is fetched, as it lies under resources/fetched/.

    Raises:
        AuditError: the mirror lacks it, or without a mirror its host cannot be reached.
    """
    mirror = plan.config["mirror"]
    fault = check_source(paths, Path(mirror) if mirror else None)
    if fault:
        raise AuditError(unreachable(paths, fault))


def unreachable(missing: Sequence[str], fault: str) -> str:
    """Return a sentence about what is not here and cannot be had now, and the command that brings it."""
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return (
        f"not here yet: {missing[0]}{more}; {fault.rstrip('.')}; or fetch everything beforehand by "
        f"`snakemake all --cores 1 --until fetch_images fetch_model`, with the --configfile of a run that names it."
    )


def find_pictures(plan: Wiring, names: SimpleNamespace, asked: Path, folder: Path) -> None:
    """Fetch the pictures of the sample, and no others, unless they are drawn here.

    Raises:
        AuditError: one is not here yet, and the host it would be fetched from cannot be reached.
    """
    from readout_audit.stages import fetch_images

    name = plan.release(names.dataset)["images"]
    images = plan.config["known_images"][name]
    if "path" in images:
        return
    there = Path(plan.image_folder(names))
    missing = [picture for picture in images_asked([asked]) if not (there / picture).is_file()]
    downloads = plan.config["mirror"] is None and images["url"] and str(there) == images["fetched"]
    fault = check_network([images["url"]]) if missing and downloads else None
    if fault:
        raise AuditError(unreachable(missing, fault))
    words = shlex.split(plan.image_arguments(SimpleNamespace(images=name)))
    fetch_images.main(["--questions", str(asked), *words, "--output", str(folder / "images.json")])


def find_checkpoint(plan: Wiring, names: SimpleNamespace) -> Path:
    """Return the model's folder, made or fetched if it is not there."""
    entry, folder = plan.model(names.model), Path(plan.checkpoint(names.model))
    if entry.get("random"):
        from readout_audit.stages import make_tiny_model

        make_tiny_model.main([*shlex.split(plan.random_arguments(names)), "--folder", str(folder)])
    elif missing_model(plan, names):
        from readout_audit.stages import fetch_model

        words = ["--model", names.model, *shlex.split(plan.model_arguments(names))]
        words += ["--lock", f"{FETCHED}/lock.json", "--folder", str(folder)]
        fetch_model.main([*words, "--output", f"{FETCHED}/models/{names.model}.json"])
    return folder


def ask(plan: Wiring, names: SimpleNamespace, asked: Path, records: Path, folder: Path) -> None:
    """Make the token maps and ask the model the sample."""
    from readout_audit.stages import ask_model, map_tokens

    checkpoint = find_checkpoint(plan, names)
    tokens, reference = folder / "tokens.json", folder / "reference_tokens.json"
    maps = [(names.model, plan.template_json(names), tokens), (plan.reference, "{}", reference)]
    for model, templates, output in maps:
        words = ["--model", model, "--tokenizer", plan.checkpoint(model)]
        map_tokens.main([*words, "--templates", templates, "--output", str(output)])
    ask_model.main(
        [
            *("--settings", plan.settings_json(names), "--questions", str(asked)),
            *("--images", plan.image_folder(names), "--checkpoint", str(checkpoint)),
            *("--tokens", str(tokens), "--reference-tokens", str(reference)),
            *("--parts", "results/.parts", "--shard", "1", "--of", "1"),
            *("--code", plan.inference_digest(names), "--device", str(plan.config["inference"]["device"])),
            *("--output", str(records)),
        ]
    )


def in_project(root: Path) -> contextlib.AbstractContextManager[None]:
    """Work in the project's folder; the configuration's paths count from there."""
    if not root.is_dir():
        raise AuditError(f"--root {root}: not a folder.")
    return contextlib.chdir(root)
