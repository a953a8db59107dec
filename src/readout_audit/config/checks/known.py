"""The names that a configuration may use, and the sentence for one that it may not."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from readout_audit.config.schema import closest

Config = Mapping[str, Any]

MODELS = "config/models.yaml"
DATASETS = "config/datasets.yaml"
TEMPLATES = "config/templates.yaml"

PRECISIONS = ("fp32", "bf16", "fp16", "int8", "nf4")

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
