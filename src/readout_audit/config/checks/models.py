"""Checks of checkpoints, servers, and the signals that are measured of a model."""

from collections.abc import Iterator
from pathlib import Path

from readout_audit.api.settings import ApiSettings
from readout_audit.config.checks.known import MODELS, Config, Known, unknown
from readout_audit.config.plan import Plan
from readout_audit.errors import AuditError

ADAPTER_OF_SERVERS = "openai"


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
