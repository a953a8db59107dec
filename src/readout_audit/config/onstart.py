"""What has to be there before the first job runs: checked after the graph is known, and only for what is due.

Each check gives one sentence or nothing. They run on the machine where Snakemake runs, so a GPU is asked
for only if the jobs run there too; on a cluster the job itself looks.
"""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from readout_audit.api.credentials import ApiKey
from readout_audit.claims.evidence import RELEASE
from readout_audit.config.forecast import forecast
from readout_audit.config.plan import SERVED
from readout_audit.config.wiring import Wiring
from readout_audit.config.wiring.paths import FETCHED
from readout_audit.errors import AuditError
from readout_audit.fetch.preflight import check_disk_space, check_source

GPU_RULES = frozenset({"ask_model", "compute_signals", "verify_engine"})
FETCH_RULES = frozenset({"fetch_file", "fetch_images", "fetch_model"})

_HELD: list[IO[str]] = []
"""The open lock file: the lock ends with the process that holds it, however it ends."""


def check_start(plan: Wiring, workflow: Any) -> None:
    """Take the run's lock, check what the due jobs need and say what they are going to ask.

    On a fault the process ends with one sentence.

    Args:
        plan: the checked plan.
        workflow: Snakemake's workflow, its graph built.
    """
    for name, path in plan.left_out.items():
        print(
            f"The mirror lacks {path}: {name} is left out, and what it would show reads not_run.",
            file=sys.stderr,
        )
    if plan.is_strange_to_paper:
        print(
            f"claims: true, but the run asks none of the paper's models about {RELEASE}: what the paper measured will "
            "read not_run, above the run's own findings; set claims to false.",
            file=sys.stderr,
        )
    if plan.paper_only_tables:
        print(
            f"claims: false, so the run leaves out {', '.join(plan.paper_only_tables)}, whose rows are the paper's.",
            file=sys.stderr,
        )
    due = [(job.rule.name, str(job.output[0])) for job in workflow.dag.needrun_jobs() if job.output]
    for fault in _faults(plan, due, workflow.local_exec):
        sys.exit(f"error: {fault}")
    for line in forecast(plan, due):
        print(line, file=sys.stderr)


def _faults(plan: Wiring, due: list[tuple[str, str]], local: bool) -> Iterator[str]:
    """Yield what is in the way, in the order in which it is worth mending."""
    held = hold_lock(Path("results") / plan.run / ".lock")
    if held:
        yield held
    rules = {rule for rule, _ in due}
    for model in plan.served_models:
        if any(rule == "ask_api" and f"/{model}/{SERVED}/" in output for rule, output in due):
            yield from server_faults(plan, model)
    if local and rules & GPU_RULES and plan.config["inference"]["device"] == "cuda" and not has_gpu():
        yield (
            f"run {plan.run} asks its models on a GPU, and nvidia-smi finds none here; run it where there is one, "
            f"set inference.device to cpu, or rescore records made elsewhere with records_from: files."
        )
    paths = [
        path for rule, output in due if rule in FETCH_RULES for path in fetched_paths(plan, rule, output)
    ]
    if paths:
        yield from _fetch_faults(plan, paths)


def server_faults(plan: Wiring, model: str) -> Iterator[str]:
    """Yield what keeps a served model from being asked: its key is not set, or nothing listens at its address."""
    server = plan.server(model)
    try:
        ApiKey(server["key_variable"])
    except AuditError as error:
        yield f"model {model}: {error}"
    parts = urlsplit(server["url"])
    if parts.scheme in getproxies() and not proxy_bypass(str(parts.hostname)):
        return  # only the proxy can tell
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((str(parts.hostname), port), timeout=10).close()
    except OSError as error:
        yield (
            f"model {model}: nothing answers at {server['url']} ({error.strerror or error}); start the server, or "
            f"correct known_models.{model}.server.url."
        )


def fetched_paths(plan: Wiring, rule: str, output: str) -> list[str]:
    """Return what a fetch job looks for in a mirror: its file, or for pictures their folder.

    Nothing is looked for where the pictures are in a folder of one's own.
    """
    if rule != "fetch_images":
        return [output.removeprefix(f"{FETCHED}/")]
    images = plan.config["known_images"][Path(output).stem]
    own = plan.config[images["folder_key"]] if images["folder_key"] else None
    return [] if own else [str(Path(images["mirror"]).parent)]


def _fetch_faults(plan: Wiring, paths: list[str]) -> Iterator[str]:
    """Yield what keeps the due files from being fetched."""
    mirror = plan.config["mirror"]
    for check in (check_source(paths, Path(mirror) if mirror else None), check_disk_space(Path(FETCHED))):
        if check:
            yield check


def hold_lock(path: Path) -> str | None:
    """Take the lock file `path` for the life of this process; return a sentence if another process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stream = path.open("a+", encoding="utf-8")
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        stream.seek(0)
        owner = stream.read().strip() or "unknown"
        stream.close()
        return f"process {owner} is already running this run ({path}); wait for it, or end it."
    stream.truncate(0)
    stream.write(str(os.getpid()))
    stream.flush()
    _HELD.append(stream)
    return None


def has_gpu() -> bool:
    """Tell whether nvidia-smi lists a GPU on this machine."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return False
    try:
        listed = subprocess.run([command, "-L"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return listed.returncode == 0 and "GPU" in listed.stdout
