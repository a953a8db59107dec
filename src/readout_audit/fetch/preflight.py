"""Is what the due fetch jobs need there? Each check returns one sentence about what is missing, or None."""

import os
import shutil
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from readout_audit.fetch.download import DISK_MARGIN

ADDRESSES: Mapping[str, str] = {
    "pope": "https://raw.githubusercontent.com",
    "repope": "https://raw.githubusercontent.com",
    "published": "https://raw.githubusercontent.com",
    "models": "https://huggingface.co",
    "images": "http://images.cocodataset.org",
}
"""First part of a path inside a mirror -> where such files are fetched from without one."""

_PORTS = {"http": 80, "https": 443}
_PATIENCE = 5.0


def check_source(
    paths: Iterable[str],
    mirror: Path | None,
    addresses: Mapping[str, str] = ADDRESSES,
    timeout: float = _PATIENCE,
) -> str | None:
    """Return a sentence if files that are due can be had neither from the mirror nor from the network.

    Args:
        paths: paths inside a mirror; `models/<name>.json`, the manifest of a checkpoint, stands for its folder.
        mirror: mirror folder; with one the network is not asked.
        addresses: first part of a path -> address of its host.
        timeout: seconds to wait for a host.
    """
    wanted = sorted(_as_mirrored(path) for path in paths)
    if mirror is not None:
        return check_mirror(wanted, mirror)
    kinds = dict.fromkeys(path.partition("/")[0] for path in wanted)
    return check_network([_address(kind, addresses) for kind in kinds if kind in addresses], timeout)


def _as_mirrored(path: str) -> str:
    """Return where a fetched path lies in a mirror: a checkpoint's manifest stands for its folder."""
    return path.removesuffix(".json") if path.startswith("models/") else path


def _address(kind: str, addresses: Mapping[str, str]) -> str:
    """Return the address of a kind of file; the hub's may be set as its own client has it."""
    return os.environ.get("HF_ENDPOINT", addresses[kind]) if kind == "models" else addresses[kind]


def check_mirror(paths: Iterable[str], mirror: Path) -> str | None:
    """Return a sentence that names the first path a mirror lacks, and how many more."""
    missing = [path for path in paths if not (mirror / path).exists()]
    if not missing:
        return None
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return (
        f"the mirror {mirror} lacks {missing[0]}{more}; put what is missing there, or set mirror to null to "
        f"fetch from the network."
    )


def check_network(urls: Iterable[str], timeout: float = _PATIENCE) -> str | None:
    """Return a sentence that names the first host which cannot be reached; each host is asked once.

    Where a proxy is set for the scheme, the proxy is what must be reachable.
    """
    for host, port in dict.fromkeys(_reached(url) for url in urls):
        try:
            socket.create_connection((host, port), timeout=timeout).close()
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
            return (
                f"{host} cannot be reached ({reason}), and files are due to be fetched from there; connect this "
                f"machine to the network, or name a folder that holds them under mirror."
            )
    return None


def _reached(url: str) -> tuple[str, int]:
    """Return host and port that a request for `url` connects to."""
    parts = urlsplit(url)
    name = f"{parts.scheme}_proxy"
    proxy = os.environ.get(name) or os.environ.get(name.upper())
    reached = urlsplit(proxy if "://" in proxy else f"http://{proxy}") if proxy else parts
    return reached.hostname or "", reached.port or _PORTS.get(reached.scheme, 443)


def check_disk_space(folder: Path, needed: int = DISK_MARGIN) -> str | None:
    """Return a sentence if `needed` bytes do not fit on the disk of `folder`, which need not exist yet."""
    absolute = folder.absolute()
    existing = next(place for place in [absolute, *absolute.parents] if place.exists())
    free = shutil.disk_usage(existing).free
    if free >= needed:
        return None
    return (
        f"{folder} needs {needed / 1e9:.1f} GB and its disk has {free / 1e9:.1f} GB free; make room, or link the "
        f"folder to a larger disk."
    )
