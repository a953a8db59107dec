"""Subcommands about asking: `verify-engine` and `preflight`. Heavy imports wait until one is called."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from readout_audit.errors import AuditError
from readout_audit.logs import logging_to

LOGGER = logging.getLogger(__name__)


def verify_engine(
    records: Annotated[Path, typer.Argument(help="Record file of one cell.")],
    images: Annotated[Path, typer.Option(help="Folder of its image files.")],
    checkpoint: Annotated[Path, typer.Option(help="Folder of its model.")],
    sample: Annotated[int, typer.Option(help="How many questions to ask again.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the sample.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Ask a sample of a record file's questions again, one by one, and say what differs."""
    from readout_audit.stages import verify_engine as stage

    with logging_to(None):
        found = stage.run(records, images, checkpoint, sample, seed, device)
    typer.echo(stage.summary(found))
    for entry in [*found["flips"], *found["decision_flips"]]:
        typer.echo(
            f"  {entry['image']}: {entry['question']} {entry.get('readout', 'first token')} recorded "
            f"{entry['recorded']}, sequential {entry['sequential']}, margin {entry['margin']:.4f} "
            f"({entry['steps']:.1f} steps)"
        )
    for entry in found["unanswered"]:
        typer.echo(f"  question {entry['uid']}: no second answer ({entry['reason']})")
    if not found["passed"]:
        raise typer.Exit(1)


def preflight(
    model: Annotated[str, typer.Argument(help="Name of a model in config/models.yaml.")],
    precision: Annotated[str | None, typer.Option(help="fp32, bf16, fp16, int8 or nf4.")] = None,
    compute_dtype: Annotated[
        str | None, typer.Option(help="float32, bfloat16 or float16; for int8, nf4.")
    ] = None,
    image_mode: Annotated[str | None, typer.Option(help="as_is or pad.")] = None,
    attention: Annotated[str | None, typer.Option(help="sdpa or eager.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    config: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Run configuration with entries of its own; repeatable."),
    ] = None,
    root: Annotated[Path, typer.Option(help="Folder that holds config/, workflow/ and resources/.")] = Path(),
) -> None:
    """Load a model and check it under each of its templates, as a job does before it asks anything.

    The first precision of the configuration, its compute dtype, image mode and attention, unless given here.
    """
    entry, templates, settings = configured(root, model, config or [])
    if entry.get("server"):
        raise AuditError(
            f"{model} is behind a server, which loads no weights here; readout-audit diagnose --model {model} asks it."
        )
    folder = checkpoint_folder(root, model, entry)
    asked = settings["inference"]
    how = (
        precision or settings["precisions"][0],
        compute_dtype or asked["compute_dtype"],
        image_mode or asked["image_mode"],
        attention or asked["attention"],
        device,
    )
    with logging_to(None):
        for line in checked(model, entry["adapter"], folder, templates, how):
            typer.echo(line)


def configured(
    root: Path, model: str, runs: Sequence[Path] = ()
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return a model's entry of config/models.yaml, its prompts of config/templates.yaml, and the whole configuration.

    Args:
        root: the project's folder.
        model: its name.
        runs: run configurations, read over those of config/; they may define models and prompts, too.

    Raises:
        AuditError: a file is not there or is malformed, or the model or its prompts are not defined.
    """
    from readout_audit.config.load import merged
    from readout_audit.config.schema import check_against_schema

    files = {name: root / "config" / f"{name}.yaml" for name in ("models", "templates")}
    schemas = {name: root / "workflow" / "schemas" / f"{name}.schema.yaml" for name in files}
    base = root / "config/config.yaml"
    for path in (*files.values(), base, *schemas.values()):
        if not path.is_file():
            raise AuditError(f"{path}: not there; run this in the project's folder or give --root.")
    config = merged([*files.values(), base, *runs])
    found = []
    for name, path in files.items():
        known = config[f"known_{name}"]
        check_against_schema(known, schemas[name], f"known_{name}.")
        if model not in known:
            read = " or ".join(str(file) for file in (path, *runs))
            raise AuditError(
                f"{read}: model {model!r} is not known; choose one of {', '.join(sorted(known))}."
            )
        found.append(known[model])
    return found[0], found[1], config


def checkpoint_folder(root: Path, model: str, entry: dict[str, Any]) -> Path:
    """Return the folder of a model's checkpoint.

    Raises:
        AuditError: nothing is there yet; the sentence names the command that brings it.
    """
    if entry["folder"]:
        folder = root / str(entry["folder"])
        if not folder.is_dir():
            raise AuditError(
                f"known_models.{model}.folder is {entry['folder']!r}, and there is no such folder; name the one that holds "
                "the checkpoint."
            )
        return folder
    if entry.get("random"):
        folder, marker = root / "results/random-models" / model, "config.json"
        command = f"snakemake {folder / marker} --cores 1 --configfile config/families.yaml"
        if not (folder / marker).is_file():
            raise AuditError(f"{model}: the stand-in has not been made; make it with `{command}`.")
        return folder
    folder = root / "resources/fetched/models" / model
    # The manifest is written last: a folder without it is a fetch that was cut short.
    if not folder.with_name(f"{model}.json").is_file():
        raise AuditError(
            f"{model}: not fetched ({folder.with_name(f'{model}.json')} is not there); fetch it with `snakemake all "
            f"--cores 1 --until fetch_images fetch_model`, with the --configfile of a run that names it."
        )
    return folder


def checked(
    name: str, adapter: str, folder: Path, templates: dict[str, Any], how: tuple[str, str, str, str, str]
) -> list[str]:
    """Return one line per template that passes preflight.

    Raises:
        AuditError: a check failed.
    """
    from readout_audit.inference.estimate import weights_line
    from readout_audit.inference.shared_prefix import SharedPrefix
    from readout_audit.inference.verification import check_engine
    from readout_audit.models import preflight as checks
    from readout_audit.models.base import ModelSpec
    from readout_audit.models.precision import QUANTISED, choose_device
    from readout_audit.models.templates import Template
    from readout_audit.tokens import tokenmap

    precision, compute, image_mode, attention, device = how
    known = {key: Template.from_dict({**value, "name": key}) for key, value in templates.items()}
    dtype = compute if precision in QUANTISED else None
    spec = ModelSpec(name, folder, precision, dtype, image_mode, attention, choose_device(device))
    LOGGER.info("%s: %s", name, weights_line(folder, precision, dtype, spec.device))
    model = checks.load(adapter, spec)
    with checks.explained(f"preflight of {name}", spec, checks.processor_of(model)):
        token_map = tokenmap.build(name, folder, known)
    engine = SharedPrefix(model, 16, 1)
    lines = []
    for key, template in known.items():
        found = checks.run(model, template, token_map)
        check_engine(engine, template, folder, precision, dtype)
        ids = token_map["in_context"][key]
        lines.append(
            f"{name} {precision} {key}: passed; {found.n_image_tokens} image tokens, first ids "
            f"{found.first_input_ids}, yes {ids['yes']}, no {ids['no']}"
        )
    return lines
